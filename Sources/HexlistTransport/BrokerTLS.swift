import HexlistModel
package import NIOSSL

/// The TLS configuration of connections to an MQTT broker.
package struct BrokerTLS: Sendable {
    package let context: NIOSSLContext

    /// Blocks while it reads the file of certificates.
    /// - Parameters:
    ///   - identity: the identity whose certificate is used to log in; `nil` to log in with a password. With a certificate, TLS 1.3 is
    ///     required, otherwise TLS 1.2: in TLS 1.3, the data signed in the handshake begins with a label that no letter has, so a broker
    ///     cannot obtain a signature that is valid for a letter.
    ///   - caFile: a file with the certificates that may sign the broker's certificate; `nil` for those of the system.
    /// - Throws: an error of the TLS library, for example if the file is missing.
    package init(identity: Identity?, caFile: String?) throws {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.minimumTLSVersion = identity == nil ? .tlsv12 : .tlsv13
        if let caFile { configuration.trustRoots = .file(caFile) }
        if let identity {
            configuration.certificateChain = [.certificate(try NIOSSLCertificate(bytes: identity.certificate, format: .der))]
            configuration.privateKey = .privateKey(try NIOSSLPrivateKey(bytes: identity.privateKey, format: .der))
        }
        configuration.renegotiationSupport = .none
        context = try NIOSSLContext(configuration: configuration)
    }
}
