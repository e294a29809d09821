import NIOCore

/// Connects a `PeerConnection` to the end of its channel's pipeline.
final class PeerConnectionHandler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let connection: PeerConnection

    init(_ connection: PeerConnection) { self.connection = connection }

    func handlerAdded(context: ChannelHandlerContext) { connection.installed(context) }

    func handlerRemoved(context: ChannelHandlerContext) { connection.removed() }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) { connection.bytesArrived(unwrapInboundIn(data)) }

    func channelReadComplete(context: ChannelHandlerContext) { connection.burstEnded() }

    func channelWritabilityChanged(context: ChannelHandlerContext) { connection.writabilityChanged() }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { connection.failed(error) }

    func channelInactive(context: ChannelHandlerContext) { connection.channelEnded() }

    func read(context: ChannelHandlerContext) {
        if connection.mayRead() { context.read() }
    }
}
