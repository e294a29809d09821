import Crypto
public import HexlistModel
import SwiftASN1
import X509

/// The private key of this installation, and its self-signed certificate (Docs/Protocol.md, "Identity").
public struct Identity: Sendable {
    /// The SHA-256 of the key's SubjectPublicKeyInfo. The trust of peers is bound to it.
    public let fingerprint: Fingerprint
    /// DER of the certificate.
    let certificate: [UInt8]
    /// DER of the private key (PKCS #8).
    let privateKey: [UInt8]

    /// The DER of the key's SubjectPublicKeyInfo, 91 bytes.
    public var keyInfo: [UInt8] {
        (try? P256.Signing.PrivateKey(derRepresentation: privateKey)).map { Array($0.publicKey.derRepresentation) } ?? []
    }

    /// Signs a message with the key: ECDSA with P-256 and SHA-256, as r ‖ s, 64 bytes. Each message must begin with a label for its
    /// purpose, so that a signature for one purpose is never valid for another.
    @Sendable public func signature(of message: [UInt8]) throws -> [UInt8] {
        Array(try P256.Signing.PrivateKey(derRepresentation: privateKey).signature(for: message).rawRepresentation)
    }

    /// Derives a secret of 32 bytes from the key. It is the same as long as the identity is, and does not reveal the key.
    /// - Parameter purpose: the label of the purpose. Each purpose has another one.
    public func secret(for purpose: String) -> [UInt8] {
        Array(HMAC<SHA256>.authenticationCode(for: Array(purpose.utf8), using: SymmetricKey(data: privateKey)))
    }

    public var peerID: PeerID { fingerprint.peerID }

    /// The name of the file with key and certificate (PEM, mode 0600) in the state folder.
    public static let fileName = "identity.pem"

    /// Reads the identity.
    /// - Parameter folder: the state folder.
    /// - Returns: `nil` if there is no identity. The caller decides whether to create one.
    /// - Throws: `HexlistError` `identity` if the file exists but cannot be used. For example, it is not a regular file, belongs to another
    ///   user or is readable by others, is truncated, has no P-256 key, or has a certificate of another key.
    public static func load(from folder: String) throws -> Identity? {
        let path = "\(folder)/\(fileName)"
        guard let bytes = try IdentityFile.read(path) else { return nil }
        do {
            return try Identity(pem: bytes)
        } catch {
            throw HexlistError(.identity, "\(path) cannot be used: \(error)", hint: IdentityFile.restore)
        }
    }

    /// Creates an identity, and stores it durably and atomically.
    /// - Parameter folder: the state folder, which must exist.
    /// - Throws: `HexlistError` `identity` if an identity exists or cannot be written.
    public static func create(in folder: String) throws -> Identity {
        let identity = try ephemeral()
        try IdentityFile.create("\(folder)/\(fileName)", in: folder, contents: Array(identity.pem.utf8))
        return identity
    }

    /// Replaces the identity by a new one, atomically.
    /// - Parameter folder: the state folder.
    /// - Throws: `HexlistError` `identity` if the new identity cannot be written. The old one then stays.
    public static func replace(in folder: String) throws -> Identity {
        let identity = try ephemeral()
        try IdentityFile.replace("\(folder)/\(fileName)", in: folder, contents: Array(identity.pem.utf8))
        return identity
    }

    /// Stores the identity of a backup in a folder that has none.
    /// - Parameter pem: the bytes that `pemBytes` had.
    /// - Throws: `HexlistError` `identity` if the bytes are not an identity or cannot be written.
    public static func restore(_ pem: [UInt8], in folder: String) throws -> Identity {
        let identity: Identity
        do {
            identity = try Identity(pem: pem)
        } catch {
            throw HexlistError(
                .identity, "The identity in the backup cannot be used: \(error)", hint: "Nothing was changed. Take another backup.")
        }
        try IdentityFile.create("\(folder)/\(fileName)", in: folder, contents: pem)
        return identity
    }

    /// Key and certificate as PEM. Secret: anyone who has them can act as this installation.
    public var pemBytes: [UInt8] { Array(pem.utf8) }

    /// The certificate as PEM, without the key.
    public var certificatePEM: String { PEMDocument(type: Self.certificateType, derBytes: certificate).pemString + "\n" }

    /// Creates an identity that is not stored.
    public static func ephemeral() throws -> Identity {
        try make(key: P256.Signing.PrivateKey())
    }

    /// Creates an identity with a given key.
    /// - Throws: an error of the certificate library; none is known for valid keys.
    static func make(key: P256.Signing.PrivateKey, validity: CertificateValidity = .allTimes) throws -> Identity {
        let info = key.publicKey.derRepresentation
        let fingerprint = try SubjectPublicKey.fingerprint(ofKeyInfo: info)
        let name = try DistinguishedName { CommonName(fingerprint.peerID.description) }
        let certificate = try Certificate(
            version: .v3, serialNumber: Certificate.SerialNumber(), publicKey: Certificate.PublicKey(key.publicKey),
            notValidBefore: validity.from, notValidAfter: validity.until, issuer: name, subject: name,
            signatureAlgorithm: .ecdsaWithSHA256,
            extensions: Certificate.Extensions { Critical(KeyUsage(digitalSignature: true)) },
            issuerPrivateKey: Certificate.PrivateKey(key))
        var serializer = DER.Serializer()
        try serializer.serialize(certificate)
        return Identity(
            fingerprint: fingerprint, certificate: serializer.serializedBytes, privateKey: Array(key.derRepresentation))
    }

    private init(fingerprint: Fingerprint, certificate: [UInt8], privateKey: [UInt8]) {
        self.fingerprint = fingerprint
        self.certificate = certificate
        self.privateKey = privateKey
    }

    /// Reads key and certificate from PEM.
    /// - Throws: `PEMFault`.
    init(pem bytes: [UInt8]) throws {
        guard let documents = try? PEMDocument.parseMultiple(pemString: String(decoding: bytes, as: UTF8.self)) else {
            throw PEMFault.damaged
        }
        guard let keyDocument = documents.first(where: { $0.discriminator == Self.keyType }) else { throw PEMFault.missing("key") }
        guard let certificate = documents.first(where: { $0.discriminator == Self.certificateType })?.derBytes else {
            throw PEMFault.missing("certificate")
        }
        guard let key = try? P256.Signing.PrivateKey(derRepresentation: keyDocument.derBytes) else { throw PEMFault.notP256 }
        let fingerprint = try SubjectPublicKey.fingerprint(ofKeyInfo: key.publicKey.derRepresentation)
        guard let named = try? SubjectPublicKey.fingerprint(ofCertificate: certificate) else { throw PEMFault.certificate }
        guard named == fingerprint else { throw PEMFault.mismatch }
        self.init(fingerprint: fingerprint, certificate: certificate, privateKey: Array(key.derRepresentation))
    }

    var pem: String {
        let documents = [
            PEMDocument(type: Self.keyType, derBytes: privateKey), PEMDocument(type: Self.certificateType, derBytes: certificate),
        ]
        return documents.map { $0.pemString + "\n" }.joined()
    }

    private static let keyType = "PRIVATE KEY"
    private static let certificateType = "CERTIFICATE"

    enum PEMFault: Error, CustomStringConvertible {
        case damaged, missing(String), notP256, certificate, mismatch

        var description: String {
            switch self {
            case .damaged: "it is not PEM, or cut off."
            case .missing(let part): "it holds no \(part)."
            case .notP256: "its key is not a P-256 key."
            case .certificate: "its certificate cannot be read, or is not one of a P-256 key."
            case .mismatch: "its key and its certificate do not belong together."
            }
        }
    }
}
