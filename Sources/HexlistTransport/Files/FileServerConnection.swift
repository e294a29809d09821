public import HexlistModel
public import NIOCore
import NIOHTTP1

/// The receiver of requests of a `FileServerConnection`. Called on the connection's event loop.
public protocol FileServerDelegate: AnyObject {
    /// A request came; `answer` is called once, then or later.
    func received(_ request: FileRequest, on connection: FileServerConnection)
    /// The connection is gone. The last call.
    func closed(_ connection: FileServerConnection)
}

/// A connection on which a peer fetches files: HTTP/1.1, one request after the other.
///
/// Files are read off the event loop, no more than `FileLimits.pieces` pieces ahead of what the kernel takes.
/// Confined to its event loop; that makes it `Sendable`.
public final class FileServerConnection: @unchecked Sendable {
    public let peer: Fingerprint
    public let remoteAddress: String
    public let eventLoop: any EventLoop

    private enum State {
        /// Before the first request, or between two.
        case idle
        /// The request is with the delegate.
        case asked(FileRequest, keepsAlive: Bool)
        case sending(Sending)
        /// The last answer is on its way; the connection closes behind it.
        case closing
        case closed
    }

    private struct Sending {
        var source: any FileSource
        /// The bytes that are not read yet.
        var left: Range<Int64>
        /// Pieces read, or being read, that the kernel has not taken.
        var pieces = 0
        var isReading = false
        var keepsAlive: Bool
        var sent: (@Sendable () -> Void)?
    }

    private let channel: any Channel
    private let gate: ChannelGate
    private let threads: FileThreads
    private var state = State.idle
    private var context: ChannelHandlerContext?
    private var deadline: NIODeadline
    private var timer: Scheduled<Void>?
    private var delegate: (any FileServerDelegate)?

    init(channel: any Channel, gate: ChannelGate, peer: Fingerprint, remoteAddress: String, threads: FileThreads, firstHead: TimeAmount) {
        self.channel = channel
        self.gate = gate
        self.peer = peer
        self.remoteAddress = remoteAddress
        self.threads = threads
        eventLoop = channel.eventLoop
        deadline = .now() + firstHead
    }

    /// Adds the handlers of HTTP at the end of the channel's pipeline.
    func install(replacing handshake: HandshakeHandler) throws {
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandlers([
            HTTPResponseEncoder(),
            ByteToMessageHandler(HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes, limitConfiguration: FileLimits.decoder)),
            HTTPServerPipelineHandler(),
            FileServerHandler(self),
        ])
        pipeline.removeHandler(handshake, promise: nil)
        watch()
    }

    /// Sets the receiver of requests, which is held until the connection is closed.
    public func serve(with delegate: any FileServerDelegate) {
        eventLoop.preconditionInEventLoop()
        if case .closed = state { return delegate.closed(self) }
        self.delegate = delegate
    }

    /// Closes at once, whatever is on its way.
    public func abort() {
        eventLoop.preconditionInEventLoop()
        gate.abort()
    }

    // MARK: Requests

    fileprivate func installed(_ context: ChannelHandlerContext) { self.context = context }

    fileprivate func received(_ head: HTTPRequestHead) {
        guard case .idle = state else { return }
        let fields = head.headers
        let lengths = fields[canonicalForm: "content-length"]
        guard fields["transfer-encoding"].isEmpty, fields["upgrade"].isEmpty, lengths.isEmpty || lengths == ["0"],
            head.method == .GET || head.method == .HEAD, head.uri.utf8.count <= FileLimits.headBytes
        else { return refuse() }
        let asked = ["range", "if-range", "if-none-match", "if-match"].map { fields[$0] }
        guard asked.allSatisfy({ $0.count <= 1 }) else { return refuse() }
        let request = FileRequest(
            isHead: head.method == .HEAD, target: head.uri, range: asked[0].first, ifRange: asked[1].first,
            ifNoneMatch: asked[2].first, ifMatch: asked[3].first)
        state = .asked(request, keepsAlive: head.isKeepAlive)
        progressed()
    }

    fileprivate func requestEnded() {
        guard case .asked(let request, _) = state else { return }
        guard let delegate else { return abort() }
        delegate.received(request, on: self)
    }

    /// Answers 400 and closes: for requests with a body, and for what is no HTTP.
    fileprivate func refuse() {
        switch state {
        case .idle, .asked: break
        case .sending, .closing, .closed: return abort()
        }
        state = .closing
        write(HTTPResponseHead(version: .http1_1, status: .badRequest, headers: ["Content-Length": "0", "Connection": "close"]))
        end(keepsAlive: false)
    }

    // MARK: Answers

    public func answer(_ answer: FileAnswer) {
        eventLoop.preconditionInEventLoop()
        guard case .asked(let request, let keepsAlive) = state else { return }
        var headers = HTTPHeaders(answer.fields)
        headers.add(name: "Content-Length", value: "\(answer.length)")
        if !keepsAlive { headers.add(name: "Connection", value: "close") }
        write(HTTPResponseHead(version: .http1_1, status: HTTPResponseStatus(statusCode: answer.status), headers: headers))
        progressed()
        guard !request.isHead, answer.length > 0 else {
            if !request.isHead { answer.sent?() }
            return end(keepsAlive: keepsAlive)
        }
        switch answer.body {
        case .text(let text):
            context?.write(NIOAny(HTTPServerResponsePart.body(.byteBuffer(ByteBuffer(string: text)))), promise: nil)
            end(keepsAlive: keepsAlive)
        case .file(let source, let range):
            state = .sending(Sending(source: source, left: range, keepsAlive: keepsAlive, sent: answer.sent))
            context?.flush()
            sendMore()
        }
    }

    private func write(_ head: HTTPResponseHead) { context?.write(NIOAny(HTTPServerResponsePart.head(head)), promise: nil) }

    /// Ends the answer; what was read of it has been written.
    private func end(keepsAlive: Bool) {
        state = keepsAlive ? .idle : .closing
        progressed()
        guard let context else { return }
        guard !keepsAlive else { return context.writeAndFlush(NIOAny(HTTPServerResponsePart.end(nil)), promise: nil) }
        let sent = eventLoop.makePromise(of: Void.self)
        sent.futureResult.assumeIsolated().whenComplete { _ in self.context?.close(promise: nil) }
        context.writeAndFlush(NIOAny(HTTPServerResponsePart.end(nil)), promise: sent)
    }

    /// Reads the next piece, if there is room for it.
    private func sendMore() {
        guard case .sending(var sending) = state, !sending.isReading else { return }
        guard !sending.left.isEmpty else {
            guard sending.pieces == 0 else { return }
            sending.sent?()
            return end(keepsAlive: sending.keepsAlive)
        }
        guard sending.pieces < FileLimits.pieces else { return }
        let count = min(sending.left.count, FileLimits.pieceBytes)
        let offset = sending.left.lowerBound
        sending.left = (offset + Int64(count))..<sending.left.upperBound
        sending.pieces += 1
        sending.isReading = true
        state = .sending(sending)
        let (source, isLast) = (sending.source, sending.left.isEmpty)
        threads.run(on: eventLoop) { try source.read(count, at: offset, isLast: isLast) }
            .assumeIsolated().whenComplete { self.pieceRead($0) }
    }

    private func pieceRead(_ result: Result<ByteBuffer, any Error>) {
        guard case .sending(var sending) = state else { return }
        guard case .success(let piece) = result, let context else { return abort() }
        sending.isReading = false
        state = .sending(sending)
        let taken = eventLoop.makePromise(of: Void.self)
        taken.futureResult.assumeIsolated().whenSuccess { self.pieceTaken() }
        context.writeAndFlush(NIOAny(HTTPServerResponsePart.body(.byteBuffer(piece))), promise: taken)
        sendMore()
    }

    private func pieceTaken() {
        guard case .sending(var sending) = state else { return }
        sending.pieces -= 1
        state = .sending(sending)
        progressed()
        sendMore()
    }

    // MARK: Time

    private func progressed() { deadline = .now() + FileLimits.idle }

    /// Closes a connection on which nothing happens. The deadline moves with each piece, the timer does not.
    private func watch() {
        timer = eventLoop.assumeIsolated().scheduleTask(deadline: deadline) {
            if NIODeadline.now() >= self.deadline { self.abort() } else { self.watch() }
        }
    }

    fileprivate func ended() {
        if case .closed = state { return }
        state = .closed
        context = nil
        timer?.cancel()
        timer = nil
        let delegate = delegate
        self.delegate = nil
        delegate?.closed(self)
    }
}

/// Connects a `FileServerConnection` to the end of its channel's pipeline.
private final class FileServerHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let connection: FileServerConnection

    init(_ connection: FileServerConnection) { self.connection = connection }

    func handlerAdded(context: ChannelHandlerContext) { connection.installed(context) }

    func handlerRemoved(context: ChannelHandlerContext) { connection.ended() }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head): connection.received(head)
        case .body: break  // its head was refused
        case .end: connection.requestEnded()
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if error is HTTPParserError { connection.refuse() } else { connection.abort() }
    }

    func channelInactive(context: ChannelHandlerContext) {
        connection.ended()
        context.fireChannelInactive()
    }
}
