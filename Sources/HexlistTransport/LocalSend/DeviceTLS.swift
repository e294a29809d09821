import Crypto
public import HexlistModel
import NIOCore
import NIOSSL

/// TLS for LocalSend devices: certificates on both sides, identified by the SHA-256 of their DER encoding. Their names, dates and
/// signatures are not checked, because devices have self-signed certificates. ALPN is `http/1.1` or absent, so that this port refuses
/// Hexlist peers, and the peer port refuses devices.
struct DeviceTLS: Sendable {
    /// Maximum bytes of a device's certificate.
    static let certificateBytes = 8 << 10
    static let alpn = "http/1.1"

    private let server: NIOSSLContext
    private let client: NIOSSLContext

    init(identity: Identity) throws {
        let certificate = try NIOSSLCertificate(bytes: identity.certificate, format: .der)
        let key = try NIOSSLPrivateKey(bytes: identity.privateKey, format: .der)
        var server = TLSConfiguration.makeServerConfiguration(certificateChain: [.certificate(certificate)], privateKey: .privateKey(key))
        server.minimumTLSVersion = .tlsv13
        // The protocols of Hexlist peers are listed too, so that their connections are recognised and refused.
        server.applicationProtocols = [Self.alpn, ProtocolLimits.alpn, ProtocolLimits.filesALPN, ProtocolLimits.filesServeALPN]
        self.server = try NIOSSLContext(configuration: Self.common(server))
        var client = TLSConfiguration.makeClientConfiguration()
        client.certificateChain = [.certificate(certificate)]
        client.privateKey = .privateKey(key)
        client.minimumTLSVersion = .tlsv12
        client.applicationProtocols = [Self.alpn]
        self.client = try NIOSSLContext(configuration: Self.common(client))
    }

    private static func common(_ configuration: TLSConfiguration) -> TLSConfiguration {
        var configuration = configuration
        configuration.maximumTLSVersion = .tlsv13
        // With `.none` the verification callback would not run, and servers would not request a certificate.
        configuration.certificateVerification = .noHostnameVerification
        configuration.trustRoots = .certificates([])
        configuration.verifySignatureAlgorithms = [
            .ecdsaSecp256R1Sha256, .ed25519, .rsaPssRsaeSha256, .rsaPssRsaeSha384, .rsaPssRsaeSha512, .rsaPkcs1Sha256,
        ]
        configuration.signingSignatureAlgorithms = [.ecdsaSecp256R1Sha256]
        configuration.renegotiationSupport = .none
        configuration.shutdownTimeout = PeerConnection.closeTime
        return configuration
    }

    func makeServerHandler() -> NIOSSLHandler {
        NIOSSLServerHandler(context: server) { certificates, promise in
            promise.succeed(certificates.count == 1 && DeviceCertificate(certificates[0]) != nil ? .certificateVerified : .failed)
        }
    }

    /// Creates a client handler that continues the handshake, and sends this machine's certificate, only to the expected server.
    /// - Parameter seen: called with the certificate of another server.
    func makeClientHandler(expecting fingerprint: Fingerprint, _ seen: @escaping @Sendable (Fingerprint) -> Void) throws -> NIOSSLHandler {
        try NIOSSLClientHandler(
            context: client, serverHostname: nil,
            customVerificationCallback: { certificates, promise in
                guard let certificate = certificates.first.flatMap(DeviceCertificate.init) else { return promise.succeed(.failed) }
                if certificate.fingerprint != fingerprint { seen(certificate.fingerprint) }
                promise.succeed(certificate.fingerprint == fingerprint ? .certificateVerified : .failed)
            })
    }
}

public struct DeviceCertificate: Sendable, Equatable {
    /// The SHA-256 of the certificate's DER encoding: the identity of the device.
    public let fingerprint: Fingerprint
    /// The fingerprint of the key, if it is a P-256 key, as of a Hexlist peer on the same machine.
    public let key: Fingerprint?

    init?(_ certificate: NIOSSLCertificate) {
        guard let der = try? certificate.toDERBytes() else { return nil }
        self.init(der: der)
    }

    /// - Returns: `nil` for more than `DeviceTLS.certificateBytes` bytes.
    init?(der: [UInt8]) {
        guard der.count <= DeviceTLS.certificateBytes, let fingerprint = Fingerprint(bytes: Array(SHA256.hash(data: der))) else {
            return nil
        }
        self.fingerprint = fingerprint
        key = try? SubjectPublicKey.fingerprint(ofCertificate: der)
    }
}

extension Identity {
    /// The identity of this installation for LocalSend devices.
    public var certificateFingerprint: Fingerprint? { DeviceCertificate(der: certificate)?.fingerprint }
}
