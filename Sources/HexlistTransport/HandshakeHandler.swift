import HexlistModel
import NIOCore
import NIOSSL
import NIOTLS

/// The reason why a TLS handshake failed.
enum HandshakeFault: Error, Equatable, CustomStringConvertible {
    /// The peer closed the connection during the handshake.
    case closed
    /// The peer is not a Hexlist peer, or has an incompatible version. The text gives the reason.
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

/// The result of a handshake: the key that the peer proved, and the negotiated protocol.
struct ProvenPeer {
    var fingerprint: Fingerprint
    var purpose: ConnectionProtocol
}

/// The protocol of a connection, as negotiated with ALPN.
enum ConnectionProtocol {
    /// Frames: `hexlist/1`.
    case session
    /// File transfer: the peer that dialled fetches files. `hexlist-files/1`.
    case files
    /// File transfer: the peer that dialled serves files. `hexlist-files-serve/1`.
    case servingFiles

    /// - Parameter alpn: the negotiated protocol; `nil` if both sides have none in common, in which case the handshake succeeds
    ///   nevertheless.
    init?(alpn: String?) {
        switch alpn {
        case ProtocolLimits.alpn: self = .session
        case ProtocolLimits.filesALPN: self = .files
        case ProtocolLimits.filesServeALPN: self = .servingFiles
        default: return nil
        }
    }
}

/// A channel handler that waits for the end of the TLS handshake, and then reads the proved key and the negotiated protocol.
final class HandshakeHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer

    private let tls: NIOSSLHandler
    private var completion: ((HandshakeHandler, Result<ProvenPeer, HandshakeFault>) -> Void)?

    /// - Parameter completion: called exactly once. After a success, it must replace this handler before it returns, because frames may
    ///   follow immediately.
    init(tls: NIOSSLHandler, completion: @escaping (HandshakeHandler, Result<ProvenPeer, HandshakeFault>) -> Void) {
        self.tls = tls
        self.completion = completion
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case TLSUserEvent.handshakeCompleted(let negotiated)? = event as? TLSUserEvent else {
            return context.fireUserInboundEventTriggered(event)
        }
        do {
            guard let purpose = ConnectionProtocol(alpn: negotiated) else {
                throw HandshakeFault.foreign("it speaks \(negotiated.map { TerminalText.clean($0, columns: 40) } ?? "no ALPN")")
            }
            end(.success(ProvenPeer(fingerprint: try SubjectPublicKey.fingerprint(of: tls.peerCertificate), purpose: purpose)))
        } catch {
            end(.failure(HandshakeFault(error)))
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { end(.failure(HandshakeFault(error))) }

    func channelInactive(context: ChannelHandlerContext) {
        end(.failure(.closed))
        context.fireChannelInactive()
    }

    private func end(_ result: Result<ProvenPeer, HandshakeFault>) {
        let completion = completion
        self.completion = nil
        completion?(self, result)
    }
}
