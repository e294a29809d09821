import Crypto
public import HexlistModel
import NIOCore
import NIOSSL

/// The TLS configuration for LocalSend devices. Both sides have certificates, which are identified by the SHA-256 of their DER. Names,
/// dates and signatures of certificates are not checked, because devices sign their certificates themselves. The ALPN protocol is
/// `http/1.1` or none. This port therefore refuses Hexlist peers, and the peer port refuses devices.
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
        // The protocols of Hexlist peers are in the list, so that connections of peers are recognised and refused.
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
        // With `.none`, the callback for verification would not be called, and servers would request no certificate.
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

    /// Creates a TLS handler for a dialled connection. Only if the server has the expected certificate, the handshake continues and this
    /// machine's certificate is sent.
    /// - Parameter seen: called with the fingerprint of any other certificate.
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

/// The certificate of a LocalSend device.
public struct DeviceCertificate: Sendable, Equatable {
    /// The SHA-256 of the certificate's DER. It identifies the device.
    public let fingerprint: Fingerprint
    /// The fingerprint of the certificate's key, if it is a P-256 key. A Hexlist peer on the same machine may use the same key.
    public let key: Fingerprint?

    init?(_ certificate: NIOSSLCertificate) {
        guard let der = try? certificate.toDERBytes() else { return nil }
        self.init(der: der)
    }

    /// - Returns: `nil` if the certificate has more than `DeviceTLS.certificateBytes` bytes.
    init?(der: [UInt8]) {
        guard der.count <= DeviceTLS.certificateBytes, let fingerprint = Fingerprint(bytes: Array(SHA256.hash(data: der))) else {
            return nil
        }
        self.fingerprint = fingerprint
        key = try? SubjectPublicKey.fingerprint(ofCertificate: der)
    }
}

extension Identity {
    /// The fingerprint that identifies this installation for LocalSend devices.
    public var certificateFingerprint: Fingerprint? { DeviceCertificate(der: certificate)?.fingerprint }
}
