import HexlistModel
package import NIOSSL

/// TLS towards a broker.
package struct BrokerTLS: Sendable {
    package let context: NIOSSLContext

    /// Blocks: reads the file of certificates.
    /// - Parameters:
    ///   - identity: the certificate to log in with, over TLS 1.3: the data that its handshake signs begins with a label that no letter
    ///     has, so that a broker cannot obtain the signature of a letter. `nil` to log in with a password, over TLS 1.2 or later.
    ///   - caFile: a file with the certificates that the broker's certificate is checked against; `nil` for those of the system.
    /// - Throws: an error of the TLS library, such as for a missing file.
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
