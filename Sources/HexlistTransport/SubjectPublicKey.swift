import Crypto
import HexlistModel
import NIOSSL
import SwiftASN1

/// Reads the public key of a peer's certificate, which is the only part that is used (Docs/Protocol.md, "Identity"). Names, dates,
/// extensions and the signature are ignored: TLS has proved that the peer has the private key.
enum SubjectPublicKey {
    enum Fault: Error, Equatable, CustomStringConvertible {
        case noCertificate
        case chain(Int)
        case unreadable
        case notP256

        var description: String {
            switch self {
            case .noCertificate: "no certificate was presented"
            case .chain(let count): "\(count) certificates were presented; a peer has exactly one"
            case .unreadable: "the certificate cannot be read"
            case .notP256: "the certificate's key is not a P-256 key"
            }
        }
    }

    /// The DER of a SubjectPublicKeyInfo with a P-256 key (RFC 5480), up to the two coordinates of 32 bytes. Only the uncompressed form is
    /// accepted, so each key has exactly one fingerprint.
    private static let p256Prefix: [UInt8] = [
        0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D,
        0x03, 0x01, 0x07, 0x03, 0x42, 0x00, 0x04,
    ]

    /// Returns the fingerprint of the key in a certificate.
    /// - Throws: `Fault`.
    static func fingerprint(of certificate: NIOSSLCertificate?) throws -> Fingerprint {
        guard let certificate else { throw Fault.noCertificate }
        // `extractPublicKey()` is not used, because it traps if the type of the key is unknown.
        guard let der = try? certificate.toDERBytes() else { throw Fault.unreadable }
        return try fingerprint(ofCertificate: der)
    }

    /// Returns the fingerprint of the key in a certificate.
    /// - Parameter der: the DER of the certificate.
    /// - Throws: `Fault`.
    static func fingerprint(ofCertificate der: [UInt8]) throws -> Fingerprint {
        guard let info = subjectPublicKeyInfo(ofCertificate: der) else { throw Fault.unreadable }
        guard info.count == p256Prefix.count + 64, info.starts(with: p256Prefix) else { throw Fault.notP256 }
        return try fingerprint(ofKeyInfo: info)
    }

    /// Returns the fingerprint of a key.
    /// - Parameter info: the DER of its SubjectPublicKeyInfo.
    static func fingerprint(ofKeyInfo info: some Collection<UInt8>) throws -> Fingerprint {
        guard let fingerprint = Fingerprint(bytes: Array(SHA256.hash(data: Array(info)))) else { throw Fault.unreadable }
        return fingerprint
    }

    /// Returns the field `subjectPublicKeyInfo` of a certificate with this structure:
    /// `Certificate { TBSCertificate { version?, serial, algorithm, issuer, validity, subject, subjectPublicKeyInfo, … }, … }`
    private static func subjectPublicKeyInfo(ofCertificate der: [UInt8]) -> ArraySlice<UInt8>? {
        guard let certificate = try? DER.parse(der), case .constructed(let fields) = certificate.content,
            let body = fields.first(where: { _ in true }), case .constructed(let members) = body.content
        else { return nil }
        let version = ASN1Identifier(tagWithNumber: 0, tagClass: .contextSpecific)
        let unversioned = members.drop { $0.identifier == version }
        return unversioned.dropFirst(5).first { _ in true }?.encodedBytes
    }
}
