import HTTPTypes
import HexlistAPI
import HexlistModel
import NIOCore
import NIOHTTP1
import NIOHTTPTypes

/// Closes connections that are idle, and connections whose request stays incomplete. It also handles `Expect: 100-continue`, which curl
/// sends before uploads, and answers invalid HTTP with an error in JSON.
///
/// A stream of hexes and a reply have no time limit, because they pause while the outbox is full or the caller reads slowly. If
/// `Limits.isStrict` is set, they have one. An upload has no time limit as long as bytes arrive.
final class ConnectionHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    /// Time limit for an idle connection, for the head of a request, for its body, and for the rest of a body after the reply.
    private let time: TimeAmount
    private let limits: Limits
    /// Maximum bytes of the body that is being received.
    private var maximumBody = 0
    private var bodyBytes = 0
    private var timer: Scheduled<Void>?
    /// Number of requests without a complete reply.
    private var requests = 0
    /// Whether the current body is an upload; each chunk of it restarts the time limit.
    private var isUpload = false
    private var fault: HexlistError?
    /// Whether the 400 reply to invalid HTTP was begun.
    private var hasRepliedToInvalidHTTP = false
    /// Whether the reply has `Connection: close`. The connection is closed when the reply was sent and the rest of the body was received.
    private var closesAfterReply = false
    /// Whether no body is being received: `false` from the head of a request until its last byte.
    private var isBodyComplete = true
    /// Number of bytes of the current body that were received after a reply with `Connection: close`.
    private var discardedBytes = 0

    /// The limits for the request bodies of a listener.
    struct Limits: Sendable {
        /// Maximum bytes of a body, after which the connection is closed.
        var maximumBody = Int.max
        /// The prefixes of the paths at which each body counts as an upload, each with the maximum bytes of such a body.
        var uploads: [(path: String, maximumBody: Int)] = []
        /// Whether the time limit also applies to streams of hexes and to pauses of a reply. Set for the peer port, to which every host on
        /// the network can connect.
        var isStrict = false
    }

    /// Maximum bytes of a refused body that are still received, so that the caller reads the reply. After more bytes the connection is
    /// closed.
    private static let discardedLimit = 4 << 20

    init(time: TimeAmount, _ limits: Limits = Limits()) { (self.time, self.limits) = (time, limits) }

    func handlerAdded(context: ChannelHandlerContext) { wait(context) }

    func handlerRemoved(context: ChannelHandlerContext) { timer?.cancel() }

    func channelInactive(context: ChannelHandlerContext) {
        timer?.cancel()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let request):
            guard !closesAfterReply else { return context.close(promise: nil) }
            requests += 1
            bodyBytes = 0
            isBodyComplete = false
            timer?.cancel()
            let uploads = limits.uploads.first { request.path?.hasPrefix($0.path) ?? false }
            maximumBody = uploads?.maximumBody ?? limits.maximumBody
            isUpload = uploads != nil || LocalAPI.isUpload(request.headerFields[.contentType])
            if limits.isStrict || !LocalAPI.isStream(request.headerFields[.contentType]) { wait(context) }
            if request.headerFields[.expect]?.lowercased() == "100-continue" {
                context.writeAndFlush(wrapOutboundOut(.head(HTTPResponse(status: .continue))), promise: nil)
            }
        case .body(let part):
            bodyBytes += part.readableBytes
            guard bodyBytes <= maximumBody else { return context.close(promise: nil) }
            if closesAfterReply {
                discardedBytes += part.readableBytes
                guard discardedBytes <= Self.discardedLimit else { return context.close(promise: nil) }
            }
            if isUpload, requests > 0 { wait(context) }
        case .end:
            isUpload = false
            isBodyComplete = true
            if requests > 0 { timer?.cancel() } else if closesAfterReply { return context.close(promise: nil) }
        }
        context.fireChannelRead(data)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if let error = error as? HTTPParserError { fault = Self.explain(error) }
        context.fireErrorCaught(error)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch unwrapOutboundIn(data) {
        case .head where fault != nil && requests == 0 && !hasRepliedToInvalidHTTP:
            // Hummingbird answers invalid HTTP with the status 400 and no body. This writes another head and a body in place of its head;
            // the end of its reply follows.
            hasRepliedToInvalidHTTP = true
            let error = fault ?? HexlistError(.badRequest, "")
            let body = ErrorJSON(error).jsonBytes
            let head = HTTPResponse(
                status: APIReply.status(of: error.code),
                headerFields: [.connection: "close", .contentType: LocalAPI.jsonType, .contentLength: "\(body.count)"])
            context.write(wrapOutboundOut(.head(head)), promise: nil)
            return context.write(wrapOutboundOut(.body(ByteBuffer(bytes: body))), promise: promise)
        case .head(let response) where response.headerFields[.connection] == "close": closesAfterReply = true
        case .body where limits.isStrict: wait(context)
        case .head, .body: break
        case .end where hasRepliedToInvalidHTTP:
            // The connection is closed, because nothing more is read from it: a caller that continued to write would block.
            context.writeAndFlush(data, promise: promise)
            return context.close(promise: nil)
        case .end:
            requests -= 1
            if requests <= 0 { wait(context) }
            guard closesAfterReply, isBodyComplete else { break }
            let (channel, written) = (context.channel, promise ?? context.eventLoop.makePromise(of: Void.self))
            written.futureResult.whenComplete { _ in channel.close(promise: nil) }
            return context.writeAndFlush(data, promise: written)
        }
        context.write(data, promise: promise)
    }

    static func explain(_ error: HTTPParserError) -> HexlistError {
        guard error == .headerOverflow else {
            return HexlistError(.badRequest, "This is not an HTTP/1.1 request.", hint: "Docs/API.md says more.")
        }
        return HexlistError(
            .headTooLarge, "The head of the request is too long.",
            hint: "`api.headerBytes` and `api.headerFields` of the configuration limit it.")
    }

    private func wait(_ context: ChannelHandlerContext) {
        timer?.cancel()
        let channel = context.channel
        timer = context.eventLoop.scheduleTask(in: time) { channel.close(promise: nil) }
    }
}
