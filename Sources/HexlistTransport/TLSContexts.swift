import HexlistModel
import NIOCore
import NIOSSL

/// The TLS of peers: version 1.3, P-256 certificates from both sides, ALPN `hexlist/1` (Docs/Protocol.md, "Identity").
struct TLSContexts: Sendable {
    let server: NIOSSLContext
    let client: NIOSSLContext

    init(identity: Identity) throws {
        let certificate = try NIOSSLCertificate(bytes: identity.certificate, format: .der)
        let key = try NIOSSLPrivateKey(bytes: identity.privateKey, format: .der)
        server = try NIOSSLContext(
            configuration: Self.hardened(
                .makeServerConfiguration(certificateChain: [.certificate(certificate)], privateKey: .privateKey(key))))
        var client = TLSConfiguration.makeClientConfiguration()
        client.certificateChain = [.certificate(certificate)]
        client.privateKey = .privateKey(key)
        self.client = try NIOSSLContext(configuration: Self.hardened(client))
    }

    private static func hardened(_ configuration: TLSConfiguration) -> TLSConfiguration {
        var configuration = configuration
        configuration.minimumTLSVersion = .tlsv13
        configuration.maximumTLSVersion = .tlsv13
        configuration.applicationProtocols = [ProtocolLimits.alpn]
        // `.none` would switch the verification callback off without a word, and a server would not ask for a certificate.
        configuration.certificateVerification = .noHostnameVerification
        configuration.trustRoots = .certificates([])
        configuration.verifySignatureAlgorithms = [.ecdsaSecp256R1Sha256]
        configuration.signingSignatureAlgorithms = [.ecdsaSecp256R1Sha256]
        configuration.renegotiationSupport = .none
        configuration.shutdownTimeout = PeerConnection.closeTime
        return configuration
    }

    /// Lets exactly one certificate with a P-256 key pass. A resumed session does not come through here, so the identity is
    /// read again from every finished handshake (`HandshakeHandler`).
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

    /// Offers no session of an earlier connection: every dial proves both keys anew.
    /// - Parameter isWanted: says whether the handshake goes on, once the server's certificate is there: before its key is proven, and
    ///   before the own certificate is sent. It must not touch the channel.
    func makeClientHandler(_ isWanted: @escaping (PeerID) -> Bool) throws -> NIOSSLHandler {
        try NIOSSLClientHandler(
            context: client, serverHostname: nil, customVerificationCallback: { Self.verify($0, $1, isWanted: isWanted) })
    }
}
