import HexlistModel
import NIOCore
import NIOSSL

/// The TLS configuration of connections between peers: TLS 1.3, a P-256 certificate of each peer, and the ALPN protocol `hexlist/1`,
/// `hexlist-files/1` or `hexlist-files-serve/1` (Docs/Protocol.md, "Identity" and "Files"). A dialer offers exactly one protocol.
struct TLSContexts: Sendable {
    let server: NIOSSLContext
    private let session: NIOSSLContext
    private let files: NIOSSLContext
    private let servingFiles: NIOSSLContext

    init(identity: Identity) throws {
        let certificate = try NIOSSLCertificate(bytes: identity.certificate, format: .der)
        let key = try NIOSSLPrivateKey(bytes: identity.privateKey, format: .der)
        server = try NIOSSLContext(
            configuration: Self.hardened(
                .makeServerConfiguration(certificateChain: [.certificate(certificate)], privateKey: .privateKey(key)),
                [ProtocolLimits.alpn, ProtocolLimits.filesALPN, ProtocolLimits.filesServeALPN]))
        var client = TLSConfiguration.makeClientConfiguration()
        client.certificateChain = [.certificate(certificate)]
        client.privateKey = .privateKey(key)
        session = try NIOSSLContext(configuration: Self.hardened(client, [ProtocolLimits.alpn]))
        files = try NIOSSLContext(configuration: Self.hardened(client, [ProtocolLimits.filesALPN]))
        servingFiles = try NIOSSLContext(configuration: Self.hardened(client, [ProtocolLimits.filesServeALPN]))
    }

    private static func hardened(_ configuration: TLSConfiguration, _ protocols: [String]) -> TLSConfiguration {
        var configuration = configuration
        configuration.minimumTLSVersion = .tlsv13
        configuration.maximumTLSVersion = .tlsv13
        configuration.applicationProtocols = protocols
        // With `.none`, the callback for verification would not be called, and servers would request no certificate.
        configuration.certificateVerification = .noHostnameVerification
        configuration.trustRoots = .certificates([])
        configuration.verifySignatureAlgorithms = [.ecdsaSecp256R1Sha256]
        configuration.signingSignatureAlgorithms = [.ecdsaSecp256R1Sha256]
        configuration.renegotiationSupport = .none
        configuration.shutdownTimeout = PeerConnection.closeTime
        return configuration
    }

    /// Accepts exactly one certificate, with a P-256 key. The callback is not called for a resumed TLS session, so `HandshakeHandler` reads
    /// the identity again after each handshake.
    private static func verify(
        _ certificates: [NIOSSLCertificate], _ promise: EventLoopPromise<NIOSSLVerificationResult>, isWanted: (PeerID) -> Bool
    ) {
        do {
            guard certificates.count == 1 else {
                throw certificates.isEmpty ? SubjectPublicKey.Fault.noCertificate : .chain(certificates.count)
            }
            let fingerprint = try SubjectPublicKey.fingerprint(of: certificates.first)
            promise.succeed(isWanted(fingerprint.peerID) ? .certificateVerified : .failed)
        } catch {
            promise.succeed(.failed)
        }
    }

    func makeServerHandler() -> NIOSSLHandler {
        NIOSSLServerHandler(context: server) { Self.verify($0, $1) { _ in true } }
    }

    /// Creates the TLS handler of a dialled connection. It resumes no earlier TLS session, so each dial proves both keys.
    /// - Parameters:
    ///   - purpose: determines the ALPN protocol.
    ///   - isWanted: whether to continue the handshake with the peer in the server's certificate. Called before the server has proved the
    ///     key, and before this machine's certificate is sent. It must not use the channel.
    func makeClientHandler(for purpose: ConnectionProtocol, _ isWanted: @escaping (PeerID) -> Bool) throws -> NIOSSLHandler {
        let context =
            switch purpose {
            case .session: session
            case .files: files
            case .servingFiles: servingFiles
            }
        return try NIOSSLClientHandler(
            context: context, serverHostname: nil, customVerificationCallback: { Self.verify($0, $1, isWanted: isWanted) })
    }
}
