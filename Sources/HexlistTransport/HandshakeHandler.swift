import HexlistModel
import NIOCore
import NIOSSL
import NIOTLS

/// Why a TLS handshake did not end in a peer.
enum HandshakeFault: Error, Equatable, CustomStringConvertible {
    /// The other side went away.
    case closed
    /// It is no Hexlist peer, or not one that this version understands.
    case foreign(String)

    init(_ error: any Error) {
        switch error {
        case let error as HandshakeFault: self = error
        case NIOSSLError.handshakeFailed(.sslError(let stack)) where stack.contains(.eofDuringHandshake): self = .closed
        case NIOSSLError.uncleanShutdown, is ChannelError, is IOError: self = .closed
        default: self = .foreign(TerminalText.clean("\(error)", columns: 200))
        }
    }

    var description: String {
        switch self {
        case .closed: "closed during the handshake"
        case .foreign(let why): why
        }
    }
}

/// Stands behind the TLS handler until the handshake is done, and reads from the finished session, resumed or not, whose key
/// it proved and what was negotiated.
final class HandshakeHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer

    private let tls: NIOSSLHandler
    private var completion: ((HandshakeHandler, Result<Fingerprint, HandshakeFault>) -> Void)?

    /// - Parameter completion: exactly once. After a success another handler must stand in this one's place when it returns,
    ///   for frames may follow at once.
    init(tls: NIOSSLHandler, completion: @escaping (HandshakeHandler, Result<Fingerprint, HandshakeFault>) -> Void) {
        self.tls = tls
        self.completion = completion
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case TLSUserEvent.handshakeCompleted(let negotiated)? = event as? TLSUserEvent else {
            return context.fireUserInboundEventTriggered(event)
        }
        do {
            guard negotiated == ProtocolLimits.alpn else {
                throw HandshakeFault.foreign("it speaks \(negotiated.map { TerminalText.clean($0, columns: 40) } ?? "no ALPN")")
            }
            end(.success(try SubjectPublicKey.fingerprint(of: tls.peerCertificate)))
        } catch {
            end(.failure(HandshakeFault(error)))
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { end(.failure(HandshakeFault(error))) }

    func channelInactive(context: ChannelHandlerContext) {
        end(.failure(.closed))
        context.fireChannelInactive()
    }

    private func end(_ result: Result<Fingerprint, HandshakeFault>) {
        let completion = completion
        self.completion = nil
        completion?(self, result)
    }
}
