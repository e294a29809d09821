import HTTPTypes
import NIOCore
import NIOHTTPTypes

/// Closes a connection that has no request for too long, and asks for the body of a request that waits to be asked
/// (`Expect: 100-continue`: curl, with what it uploads).
///
/// A request under way is never closed for being slow: a stream of hexes takes as long as its caller takes, and pauses
/// while the outbox is full.
final class ConnectionHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    private let idleTime: TimeAmount
    private var timer: Scheduled<Void>?
    private var requests = 0

    init(idleTime: TimeAmount) { self.idleTime = idleTime }

    func handlerAdded(context: ChannelHandlerContext) { wait(context) }

    func handlerRemoved(context: ChannelHandlerContext) { timer?.cancel() }

    func channelInactive(context: ChannelHandlerContext) {
        timer?.cancel()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if case .head(let request) = unwrapInboundIn(data) {
            requests += 1
            timer?.cancel()
            if request.headerFields[.expect]?.lowercased() == "100-continue" {
                context.writeAndFlush(wrapOutboundOut(.head(HTTPResponse(status: .continue))), promise: nil)
            }
        }
        context.fireChannelRead(data)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        if case .end = unwrapOutboundIn(data) {
            requests -= 1
            if requests <= 0 { wait(context) }
        }
        context.write(data, promise: promise)
    }

    private func wait(_ context: ChannelHandlerContext) {
        timer?.cancel()
        let channel = context.channel
        timer = context.eventLoop.scheduleTask(in: idleTime) { channel.close(promise: nil) }
    }
}
