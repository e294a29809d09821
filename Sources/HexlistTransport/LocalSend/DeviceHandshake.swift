import HexlistModel
import NIOCore
import NIOSSL
import NIOTLS

/// A channel handler on connections to and from LocalSend devices. It waits for the end of the TLS handshake, and then reads the proved
/// certificate.
final class DeviceHandshake: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer

    private let tls: NIOSSLHandler
    private var completion: ((DeviceHandshake, Result<DeviceCertificate, HandshakeFault>) -> Void)?

    /// - Parameter completion: called exactly once. After a success, it must replace this handler before it returns.
    init(tls: NIOSSLHandler, completion: @escaping (DeviceHandshake, Result<DeviceCertificate, HandshakeFault>) -> Void) {
        self.tls = tls
        self.completion = completion
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case TLSUserEvent.handshakeCompleted(let negotiated)? = event as? TLSUserEvent else {
            return context.fireUserInboundEventTriggered(event)
        }
        guard negotiated == nil || negotiated == DeviceTLS.alpn else { return end(.failure(.foreign("it speaks another protocol"))) }
        guard let certificate = tls.peerCertificate.flatMap(DeviceCertificate.init) else {
            return end(.failure(.foreign("no certificate was presented")))
        }
        end(.success(certificate))
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { end(.failure(HandshakeFault(error))) }

    func channelInactive(context: ChannelHandlerContext) {
        end(.failure(.closed))
        context.fireChannelInactive()
    }

    private func end(_ result: Result<DeviceCertificate, HandshakeFault>) {
        let completion = completion
        self.completion = nil
        completion?(self, result)
    }
}
