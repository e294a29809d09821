public import HexlistModel
public import NIOCore
import NIOHTTP1

/// Receives the requests on a `FileServerConnection`, on the event loop of the connection.
public protocol FileServerDelegate: AnyObject {
    /// Handles 1 to `FileLimits.requestsAtOnce` requests. The delegate calls `answer` once, immediately or later.
    func received(_ requests: [FileRequest], on connection: FileServerConnection)
    /// Called when the connection is closed. No other call follows.
    func closed(_ connection: FileServerConnection)
}

/// An HTTP/1.1 connection on which a peer fetches files. Requests are answered in order.
///
/// Pipelined requests are passed to the delegate in batches. The next batch follows when the kernel has accepted all responses. The socket
/// is not read while requests are unanswered, so a peer that does not read makes no memory grow. Large files are read on other threads, and
/// at most `FileLimits.pieces` chunks are in memory. Every member is used on its event loop only; that makes the class `Sendable`.
public final class FileServerConnection: @unchecked Sendable {
    public let peer: Fingerprint
    public let remoteAddress: String
    public let eventLoop: any EventLoop

    private enum State {
        /// No request is unanswered, and the kernel has accepted all responses.
        case idle
        /// The delegate is to answer this number of requests, which are the first ones of `requests`.
        case awaitingAnswers(Int)
        /// A large file is being sent. The responses in `answers` follow.
        case sending(Sending)
        /// All responses that exist were written, but the kernel has not accepted all of them.
        case flushing
        /// The last response is being sent. Then the connection is closed.
        case closing
        case closed
    }

    /// A request without a response.
    private struct Waiting {
        var request: FileRequest
        var keepsAlive: Bool
    }

    /// The state of sending a large file.
    private struct Sending {
        var source: any FileSource
        /// The range of the file that was not read yet.
        var left: Range<Int64>
        /// The number of chunks that are being read, or that the kernel has not accepted yet.
        var pieces = 0
        var isReading = false
        var keepsAlive: Bool
        var sent: (@Sendable () -> Void)?
    }

    private let channel: any Channel
    private let gate: ChannelGate
    private let threads: FileThreads
    private var state = State.idle
    /// The unanswered requests, in order. They are bounded by one read of the socket, because the socket is not read while there are any.
    private var requests = CircularBuffer<Waiting>()
    /// Responses that were not written yet. They answer the first elements of `requests`.
    private var answers = CircularBuffer<FileAnswer>()
    /// A request whose header was received, but not its end.
    private var partial: Waiting?
    private var isReadHeld = false
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

    /// Adds the handlers for HTTP, and this connection's own, at the end of the channel's pipeline.
    func install(replacing handshake: HandshakeHandler) throws {
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandlers([
            HTTPResponseEncoder(),
            ByteToMessageHandler(HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes, limitConfiguration: FileLimits.decoder)),
            FileServerHandler(self),
        ])
        pipeline.removeHandler(handshake, promise: nil)
        watch()
    }

    /// Sets the receiver of requests. It is retained until the connection is closed.
    public func serve(with delegate: any FileServerDelegate) {
        eventLoop.preconditionInEventLoop()
        if case .closed = state { return delegate.closed(self) }
        self.delegate = delegate
    }

    /// Closes the connection immediately.
    public func abort() {
        eventLoop.preconditionInEventLoop()
        gate.abort()
    }

    // MARK: Requests

    fileprivate func installed(_ context: ChannelHandlerContext) { self.context = context }

    fileprivate func received(_ head: HTTPRequestHead) {
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
        partial = Waiting(request: request, keepsAlive: head.isKeepAlive)
        progressed()
    }

    fileprivate func requestEnded() {
        guard let request = partial.take() else { return }
        requests.append(request)
    }

    /// Passes requests to the delegate, unless earlier ones are being answered.
    fileprivate func passRequests() {
        guard case .idle = state, !requests.isEmpty else { return }
        guard let delegate else { return abort() }
        let count = min(requests.count, FileLimits.requestsAtOnce)
        state = .awaitingAnswers(count)
        delegate.received(requests.prefix(count).map(\.request), on: self)
    }

    fileprivate func mayRead() -> Bool {
        isReadHeld = !requests.isEmpty
        return !isReadHeld
    }

    /// Refuses a request with a body, and invalid HTTP: answers with 400 and closes the connection. If other requests are unanswered, the
    /// connection is closed without an answer.
    fileprivate func refuse() {
        guard case .idle = state, requests.isEmpty else { return abort() }
        state = .closing
        write(HTTPResponseHead(version: .http1_1, status: .badRequest, headers: ["Content-Length": "0", "Connection": "close"]))
        writeEnd().assumeIsolated().whenComplete { _ in self.context?.close(promise: nil) }
        context?.flush()
    }

    // MARK: Responses

    /// Answers requests that were passed to the delegate: the first `answers.count` of them, but at least one. The other ones are passed to
    /// the delegate again.
    public func answer(_ answers: [FileAnswer]) {
        eventLoop.preconditionInEventLoop()
        guard case .awaitingAnswers(let count) = state else { return }
        precondition((1...count).contains(answers.count), "as many answers as requests, or fewer")
        self.answers += answers
        writeAnswers()
    }

    /// Writes responses in order. Stops after the first one with a large file, which is sent in chunks.
    private func writeAnswers() {
        while let answer = answers.popFirst(), let waiting = requests.popFirst() {
            var headers = HTTPHeaders(answer.fields)
            headers.add(name: "Content-Length", value: "\(answer.length)")
            if !waiting.keepsAlive { headers.add(name: "Connection", value: "close") }
            write(HTTPResponseHead(version: .http1_1, status: HTTPResponseStatus(statusCode: answer.status), headers: headers))
            progressed()
            let sent = waiting.request.isHead ? nil : answer.sent
            switch answer.body {
            case _ where waiting.request.isHead || answer.length == 0: break
            case .text(let text): context?.write(NIOAny(HTTPServerResponsePart.body(.byteBuffer(ByteBuffer(string: text)))), promise: nil)
            case .bytes(let bytes): context?.write(NIOAny(HTTPServerResponsePart.body(.byteBuffer(bytes))), promise: nil)
            case .file(let source, let range):
                state = .sending(Sending(source: source, left: range, keepsAlive: waiting.keepsAlive, sent: sent))
                context?.flush()
                return sendMore()
            }
            guard endAnswer(waiting.keepsAlive, sent) else { return }
        }
    }

    private func write(_ head: HTTPResponseHead) { context?.write(NIOAny(HTTPServerResponsePart.head(head)), promise: nil) }

    private func writeEnd() -> EventLoopFuture<Void> {
        let taken = eventLoop.makePromise(of: Void.self)
        guard let context else {
            taken.fail(ChannelError.ioOnClosedChannel)
            return taken.futureResult
        }
        context.write(NIOAny(HTTPServerResponsePart.end(nil)), promise: taken)
        return taken.futureResult
    }

    /// Ends a response that was written completely.
    /// - Parameter sent: called when the kernel has accepted the response.
    /// - Returns: whether another response can be written immediately.
    private func endAnswer(_ keepsAlive: Bool, _ sent: (@Sendable () -> Void)?) -> Bool {
        progressed()
        let isLast = !keepsAlive || answers.isEmpty
        guard isLast || sent != nil else {
            context?.write(NIOAny(HTTPServerResponsePart.end(nil)), promise: nil)
            return true
        }
        state = keepsAlive ? .flushing : .closing
        writeEnd().assumeIsolated().whenComplete { result in
            guard case .success = result else { return }
            sent?()
            if isLast { self.flushed() }
        }
        if isLast { context?.flush() }
        return !isLast
    }

    /// Called when the kernel has accepted all written bytes.
    private func flushed() {
        switch state {
        case .closing: context?.close(promise: nil)
        case .flushing:
            state = .idle
            progressed()
            if requests.isEmpty, isReadHeld {
                isReadHeld = false
                context?.read()
            }
            passRequests()
        case .idle, .awaitingAnswers, .sending, .closed: break
        }
    }

    /// Reads the next chunk of a large file, if fewer than `FileLimits.pieces` are in memory.
    private func sendMore() {
        guard case .sending(var sending) = state, !sending.isReading else { return }
        guard !sending.left.isEmpty else {
            guard sending.pieces == 0 else { return }
            if endAnswer(sending.keepsAlive, sending.sent) { writeAnswers() }
            return
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
            .assumeIsolated().whenComplete { self.chunkRead($0) }
    }

    private func chunkRead(_ result: Result<ByteBuffer, any Error>) {
        guard case .sending(var sending) = state else { return }
        guard case .success(let piece) = result, let context else { return abort() }
        sending.isReading = false
        state = .sending(sending)
        let taken = eventLoop.makePromise(of: Void.self)
        taken.futureResult.assumeIsolated().whenSuccess { self.chunkTaken() }
        context.writeAndFlush(NIOAny(HTTPServerResponsePart.body(.byteBuffer(piece))), promise: taken)
        sendMore()
    }

    private func chunkTaken() {
        guard case .sending(var sending) = state else { return }
        sending.pieces -= 1
        state = .sending(sending)
        progressed()
        sendMore()
    }

    // MARK: Time

    private func progressed() { deadline = .now() + FileLimits.idleTimeout }

    /// Closes the connection if it was idle for too long. Progress moves only the deadline; when the timer fires before the deadline, it is
    /// set again.
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
private final class FileServerHandler: ChannelDuplexHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    private let connection: FileServerConnection

    init(_ connection: FileServerConnection) { self.connection = connection }

    func handlerAdded(context: ChannelHandlerContext) { connection.installed(context) }

    func handlerRemoved(context: ChannelHandlerContext) { connection.ended() }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head): connection.received(head)
        case .body: break  // a request with a body was refused at its header
        case .end: connection.requestEnded()
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        connection.passRequests()
        context.fireChannelReadComplete()
    }

    func read(context: ChannelHandlerContext) {
        if connection.mayRead() { context.read() }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if error is HTTPParserError { connection.refuse() } else { connection.abort() }
    }

    func channelInactive(context: ChannelHandlerContext) {
        connection.ended()
        context.fireChannelInactive()
    }
}
