public import HexlistModel
public import NIOCore
import NIOHTTP1

/// The receiver of the answer to one request. Called on the connection's event loop.
public protocol FileClientDelegate: AnyObject {
    func answered(_ head: FileAnswerHead, on connection: FileClientConnection)
    /// There are bytes to take, or the end of the body is there: `takeBody()`.
    func bodyArrived(on connection: FileClientConnection)
    /// The connection is gone before the answer's end. The last call.
    func failed(_ fault: FileConnectionFault, on connection: FileClientConnection)
}

/// A connection on which this side fetches files from a peer: HTTP/1.1. Follows no redirect.
///
/// Several requests may be under way; the answers come in their order. The body is taken by the receiver, many bytes at once; while
/// `FileLimits.waitingBytes` wait, nothing is read. A receiver behind which others wait takes it as soon as it is told. Confined to its event
/// loop; that makes it `Sendable`.
public final class FileClientConnection: @unchecked Sendable {
    public let peer: Fingerprint
    public var eventLoop: any EventLoop { channel.eventLoop }

    private enum State {
        case idle
        case asked
        /// - Parameter left: the bytes of the body that have not arrived.
        case receiving(left: Int64)
        /// The body is here as a whole; some of it may still have to be taken.
        case complete
        case closed
    }

    private let channel: any Channel
    private let gate: ChannelGate
    private var context: ChannelHandlerContext?
    /// Of the first request that is under way.
    private var state = State.idle
    /// Bytes that came and were not taken: copied as it comes, since TLS decrypts into its buffer again once that is its own.
    private var body = ByteBuffer()
    private var notice: Scheduled<Void>?
    /// Bytes of the first answer's body that arrived, taken or not; of the last one if no request is under way.
    public private(set) var arrivedBytes: Int64 = 0
    private var isReadHeld = false
    /// Whether the receiver holds the bytes back, so that silence is not the peer's.
    private var isHolding = false
    /// Whether the channel went while the end of a body was not taken yet.
    private var isGone = false
    private var deadline = NIODeadline.now() + FileLimits.idle
    private var bytesSinceDeadline = 0
    private var timer: (task: Scheduled<Void>, at: NIODeadline)?
    private var receivers = Receivers()

    /// The receiver of the first answer, and those of the answers behind it.
    private struct Receivers {
        var first: (any FileClientDelegate)?
        var behind = CircularBuffer<any FileClientDelegate>()
    }

    init(channel: any Channel, gate: ChannelGate, peer: Fingerprint) {
        self.channel = channel
        self.gate = gate
        self.peer = peer
    }

    func install(replacing handshake: HandshakeHandler) throws {
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandlers([
            HTTPRequestEncoder(),
            ByteToMessageHandler(HTTPResponseDecoder(leftOverBytesStrategy: .dropBytes, limitConfiguration: FileLimits.decoder)),
            FileClientHandler(self),
        ])
        pipeline.removeHandler(handshake, promise: nil)
        try channel.syncOptions?.setOption(
            .recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: FileLimits.readBytes))
        watch()
    }

    /// Whether no request is under way.
    public var isIdle: Bool { if case .idle = state { !isGone } else { false } }

    public var isOpen: Bool { if case .closed = state { false } else { true } }

    /// Asks for a file. While other requests are under way the answer comes behind theirs.
    /// - Parameters:
    ///   - offset: the first byte that is wanted; 0 for all of the file.
    ///   - entityTag: the tag the file must have for a part of it; otherwise all of it comes.
    public func get(_ target: String, from offset: Int64, ifStill entityTag: String?, _ delegate: any FileClientDelegate) {
        eventLoop.preconditionInEventLoop()
        guard isOpen, !isGone, let context else { return eventLoop.assumeIsolated().execute { delegate.failed(.closed, on: self) } }
        var headers: HTTPHeaders = ["Host": "hexlist", "User-Agent": "hexlist/\(ProtocolLimits.appVersion)"]
        if offset > 0 {
            headers.add(name: "Range", value: "bytes=\(offset)-")
            if let entityTag { headers.add(name: "If-Range", value: entityTag) }
        }
        if case .idle = state {
            state = .asked
            receivers.first = delegate
            restart(FileLimits.answer)
        } else {
            receivers.behind.append(delegate)
        }
        let head = HTTPRequestHead(version: .http1_1, method: .GET, uri: target, headers: headers)
        context.write(NIOAny(HTTPClientRequestPart.head(head)), promise: nil)
        context.writeAndFlush(NIOAny(HTTPClientRequestPart.end(nil)), promise: nil)
    }

    /// Whether enough bytes arrived, or the last ones; otherwise `bodyArrived` is called in a moment.
    public var isWorthTaking: Bool {
        if case .complete = state { return true }
        return body.readableBytes >= FileLimits.worthwhileBytes
    }

    /// Takes the bytes that arrived. More are read.
    /// - Parameter bytes: gets them; the room it has is used for the next ones, without asking the kernel for memory again.
    /// - Returns: whether the body ends with them; then the connection is idle again.
    public func takeBody(into bytes: inout ByteBuffer) -> Bool {
        eventLoop.preconditionInEventLoop()
        bytes.clear()
        swap(&bytes, &body)
        if isHolding {
            isHolding = false
            restart(FileLimits.idle)
        }
        var isEnd = false
        if case .complete = state {
            isEnd = true
            receivers.first = receivers.behind.popFirst()
            state = isGone ? .closed : receivers.first == nil ? .idle : .asked
            body = ByteBuffer()
            if !isGone { restart(receivers.first == nil ? FileLimits.idle : FileLimits.answer) }
        }
        if isReadHeld {
            isReadHeld = false
            context?.read()
        }
        return isEnd
    }

    /// Closes at once. The receiver of the first answer is not told; those behind it are.
    public func abort() {
        eventLoop.preconditionInEventLoop()
        receivers.first = nil
        end(.closed)
        gate.abort()
    }

    /// Gives an answer up, whose receiver is told nothing more. Of a small one what comes is thrown away, and the connection stays; where more
    /// than that is still to come it is closed.
    public func giveUp(_ receiver: any FileClientDelegate) {
        eventLoop.preconditionInEventLoop()
        if let index = receivers.behind.firstIndex(where: { $0 === receiver }) {
            receivers.behind[index] = DiscardedAnswer()
        } else if receivers.first === receiver {
            let thrown = DiscardedAnswer()
            receivers.first = thrown
            switch state {
            case .receiving(let left) where left > FileLimits.sharedBytes: abort()
            case .complete: thrown.bodyArrived(on: self)
            case .idle, .asked, .receiving, .closed: break
            }
        }
    }

    // MARK: Answers

    fileprivate func installed(_ context: ChannelHandlerContext) { self.context = context }

    fileprivate func received(_ head: HTTPResponseHead) {
        guard case .asked = state else { return fail(.answer("an answer came that was not asked for")) }
        let fields = head.headers
        let lengths = fields[canonicalForm: "content-length"]
        guard lengths.count == 1, let length = Int64(lengths[0]), length >= 0, fields["transfer-encoding"].isEmpty else {
            return fail(.answer("the answer does not say how long it is"))
        }
        guard fields["content-encoding"].isEmpty else { return fail(.answer("the answer is encoded")) }
        let answer = FileAnswerHead(
            status: Int(head.status.code), length: length, entityTag: Self.single(fields["etag"]),
            contentRange: Self.single(fields["content-range"]))
        guard answer.isFile || length <= FileLimits.textBytes else { return fail(.answer("the refusal is too long")) }
        state = .receiving(left: length)
        arrivedBytes = 0
        body.reserveCapacity(Int(min(length, Int64(FileLimits.worthwhileBytes))))
        restart(FileLimits.idle)
        receivers.first?.answered(answer, on: self)
    }

    /// A field that may come once.
    private static func single(_ values: [String]) -> String? {
        values.count == 1 && values[0].utf8.count <= 128 ? values[0] : nil
    }

    fileprivate func received(_ bytes: ByteBuffer) {
        guard case .receiving(let left) = state, Int64(bytes.readableBytes) <= left else {
            return fail(.answer("more came than was announced"))
        }
        state = .receiving(left: left - Int64(bytes.readableBytes))
        body.writeImmutableBuffer(bytes)
        arrivedBytes += Int64(bytes.readableBytes)
        bytesSinceDeadline += bytes.readableBytes
        if isWorthTaking { receivers.first?.bodyArrived(on: self) }
        if notice == nil { tellLater() }
    }

    /// Tells of bytes that are few for long.
    private func tellLater() {
        notice = eventLoop.assumeIsolated().scheduleTask(in: FileLimits.worthwhile) {
            self.notice = nil
            guard self.body.readableBytes > 0 else { return }
            self.receivers.first?.bodyArrived(on: self)
            if self.body.readableBytes > 0 { self.tellLater() }
        }
    }

    fileprivate func answerEnded() {
        guard case .receiving(left: 0) = state else { return fail(.answer("less came than was announced")) }
        state = .complete
        receivers.first?.bodyArrived(on: self)
    }

    fileprivate func mayRead() -> Bool {
        guard body.readableBytes < FileLimits.waitingBytes else {
            isReadHeld = true
            isHolding = true
            return false
        }
        return true
    }

    // MARK: Ends

    fileprivate func fail(_ fault: FileConnectionFault) {
        end(fault)
        gate.abort()
    }

    fileprivate func end(_ fault: FileConnectionFault) {
        if case .closed = state { return }
        timer?.task.cancel()
        timer = nil
        notice?.cancel()
        notice = nil
        context = nil
        let behind = receivers.behind
        receivers.behind = CircularBuffer()
        defer { for receiver in behind { receiver.failed(.closed, on: self) } }
        if case .complete = state, receivers.first != nil {
            isGone = true
            return
        }
        // What came before counts.
        if body.readableBytes > 0 { receivers.first?.bodyArrived(on: self) }
        state = .closed
        body = ByteBuffer()
        let first = receivers.first.take()
        first?.failed(fault, on: self)
    }

    /// The timer is not moved with each request: it looks, when it comes, whether the deadline has come too.
    private func restart(_ time: TimeAmount) {
        deadline = .now() + time
        bytesSinceDeadline = 0
        guard let timer, deadline < timer.at else { return }
        timer.task.cancel()
        watch()
    }

    private func watch() {
        timer = (eventLoop.assumeIsolated().scheduleTask(deadline: deadline) { self.timePassed() }, deadline)
    }

    private func timePassed() {
        guard NIODeadline.now() >= deadline else { return watch() }
        let isSlow =
            switch state {
            case .idle, .asked: true
            case .receiving: !isHolding && bytesSinceDeadline < FileLimits.slowestBytes
            case .complete, .closed: false
            }
        guard !isSlow else { return fail(.timeout) }
        deadline = .now() + FileLimits.idle
        bytesSinceDeadline = 0
        watch()
    }
}

/// Takes an answer that nobody wants any more.
private final class DiscardedAnswer: FileClientDelegate {
    func answered(_ head: FileAnswerHead, on connection: FileClientConnection) {
        if head.length > FileLimits.sharedBytes { connection.abort() }
    }

    func bodyArrived(on connection: FileClientConnection) {
        var bytes = ByteBuffer()
        _ = connection.takeBody(into: &bytes)
    }

    func failed(_ fault: FileConnectionFault, on connection: FileClientConnection) {}
}

/// Connects a `FileClientConnection` to the end of its channel's pipeline.
private final class FileClientHandler: ChannelDuplexHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias OutboundIn = HTTPClientRequestPart
    typealias OutboundOut = HTTPClientRequestPart

    private let connection: FileClientConnection

    init(_ connection: FileClientConnection) { self.connection = connection }

    func handlerAdded(context: ChannelHandlerContext) { connection.installed(context) }

    func handlerRemoved(context: ChannelHandlerContext) { connection.end(.closed) }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head): connection.received(head)
        case .body(let bytes): connection.received(bytes)
        case .end: connection.answerEnded()
        }
    }

    func read(context: ChannelHandlerContext) {
        if connection.mayRead() { context.read() }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        connection.fail(error is HTTPParserError ? .answer("the answer is no HTTP, or was cut off") : .closed)
    }

    func channelInactive(context: ChannelHandlerContext) {
        connection.end(.closed)
        context.fireChannelInactive()
    }
}
