public import HexlistModel
public import NIOCore
import NIOHTTP1

/// Receives the response to one request, on the event loop of the connection.
public protocol FileClientDelegate: AnyObject {
    func answered(_ head: FileAnswerHead, on connection: FileClientConnection)
    /// Called when `takeBody()` would return bytes or the end of the body.
    func bodyArrived(on connection: FileClientConnection)
    /// Called if the connection ends before the response is complete. No other call follows.
    func failed(_ fault: FileConnectionFault, on connection: FileClientConnection)
}

/// An HTTP/1.1 connection on which this machine fetches files from a peer. Redirects are not followed.
///
/// Requests are pipelined, and their responses arrive in the same order. The body of a response is buffered until its receiver takes it, in
/// large chunks. The socket is not read while `FileLimits.waitingBytes` are buffered, so a receiver should take its body promptly if other
/// responses follow. Every member is used on its event loop only; that makes the class `Sendable`.
public final class FileClientConnection: @unchecked Sendable {
    public let peer: Fingerprint
    public var eventLoop: any EventLoop { channel.eventLoop }

    private enum State {
        case idle
        case awaitingResponse
        /// - Parameter left: number of bytes of the body that have not been received.
        case receiving(left: Int64)
        /// The body was received completely. The receiver may not have taken all of it.
        case complete
        case closed
    }

    private let channel: any Channel
    private let gate: ChannelGate
    private var context: ChannelHandlerContext?
    /// The state of the response to the first request in flight.
    private var state = State.idle
    /// Received bytes that the receiver has not taken. They are copied, so that TLS can use its buffer again.
    private var body = ByteBuffer()
    /// The timer that notifies the receiver of a few bytes.
    private var notice: Scheduled<Void>?
    /// Number of received bytes of the body of the first response in flight, taken or not. If no request is in flight, that of the last
    /// response.
    public private(set) var arrivedBytes: Int64 = 0
    private var isReadHeld = false
    /// Whether reading is paused, because the receiver has not taken its bytes. In this state, the peer is not disconnected for being too
    /// slow.
    private var isHolding = false
    /// Whether the channel was closed before the receiver has taken the whole body.
    private var isGone = false
    private var deadline = NIODeadline.now() + FileLimits.idleTimeout
    private var bytesSinceDeadline = 0
    private var timer: (task: Scheduled<Void>, at: NIODeadline)?
    private var receivers = Receivers()

    /// The receiver of the first response in flight, and those of the following responses.
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

    /// Whether no request is in flight, and the connection is open.
    public var isIdle: Bool { if case .idle = state { !isGone } else { false } }

    public var isOpen: Bool { if case .closed = state { false } else { true } }

    /// Requests a file. Its response follows those of earlier requests.
    /// - Parameters:
    ///   - offset: the offset of the first byte to fetch; 0 for the whole file.
    ///   - entityTag: the tag that the file must still have. If it has another one, the whole file is sent. `nil` to ignore the tag.
    public func get(_ target: String, from offset: Int64, ifStill entityTag: String?, _ delegate: any FileClientDelegate) {
        eventLoop.preconditionInEventLoop()
        guard isOpen, !isGone, let context else { return eventLoop.assumeIsolated().execute { delegate.failed(.closed, on: self) } }
        var headers: HTTPHeaders = ["Host": "hexlist", "User-Agent": "hexlist/\(ProtocolLimits.appVersion)"]
        if offset > 0 {
            headers.add(name: "Range", value: "bytes=\(offset)-")
            if let entityTag { headers.add(name: "If-Range", value: entityTag) }
        }
        if case .idle = state {
            state = .awaitingResponse
            receivers.first = delegate
            restart(FileLimits.responseTimeout)
        } else {
            receivers.behind.append(delegate)
        }
        let head = HTTPRequestHead(version: .http1_1, method: .GET, uri: target, headers: headers)
        context.write(NIOAny(HTTPClientRequestPart.head(head)), promise: nil)
        context.writeAndFlush(NIOAny(HTTPClientRequestPart.end(nil)), promise: nil)
    }

    /// Whether `takeBody` is worthwhile now: the end or enough bytes of the body have arrived. If not, `bodyArrived` is called within
    /// `FileLimits.worthwhile`.
    public var isWorthTaking: Bool {
        if case .complete = state { return true }
        return body.readableBytes >= FileLimits.worthwhileBytes
    }

    /// Takes the received bytes, and resumes reading if it was paused.
    /// - Parameter bytes: set to the received bytes. The storage that it had is used for the next bytes, which saves an allocation.
    /// - Returns: whether the body is complete. The next response follows, or the connection is idle.
    public func takeBody(into bytes: inout ByteBuffer) -> Bool {
        eventLoop.preconditionInEventLoop()
        bytes.clear()
        swap(&bytes, &body)
        if isHolding {
            isHolding = false
            restart(FileLimits.idleTimeout)
        }
        var isEnd = false
        if case .complete = state {
            isEnd = true
            receivers.first = receivers.behind.popFirst()
            state = isGone ? .closed : receivers.first == nil ? .idle : .awaitingResponse
            body = ByteBuffer()
            if !isGone { restart(receivers.first == nil ? FileLimits.idleTimeout : FileLimits.responseTimeout) }
        }
        if isReadHeld {
            isReadHeld = false
            context?.read()
        }
        return isEnd
    }

    /// Closes the connection immediately. The receiver of the first response is not notified. Those of the following responses are.
    public func abort() {
        eventLoop.preconditionInEventLoop()
        receivers.first = nil
        end(.closed)
        gate.abort()
    }

    /// Cancels a response. Its receiver is not called any more. If at most `FileLimits.sharedBytes` of the response are left, they are
    /// discarded and the connection stays open. Otherwise the connection is closed.
    public func cancelResponse(to receiver: any FileClientDelegate) {
        eventLoop.preconditionInEventLoop()
        if let index = receivers.behind.firstIndex(where: { $0 === receiver }) {
            receivers.behind[index] = DiscardingDelegate()
        } else if receivers.first === receiver {
            let thrown = DiscardingDelegate()
            receivers.first = thrown
            switch state {
            case .receiving(let left) where left > FileLimits.sharedBytes: abort()
            case .complete: thrown.bodyArrived(on: self)
            case .idle, .awaitingResponse, .receiving, .closed: break
            }
        }
    }

    // MARK: Responses

    fileprivate func installed(_ context: ChannelHandlerContext) { self.context = context }

    fileprivate func received(_ head: HTTPResponseHead) {
        guard case .awaitingResponse = state else { return fail(.answer("an answer came that was not asked for")) }
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
        restart(FileLimits.idleTimeout)
        receivers.first?.answered(answer, on: self)
    }

    /// The value of a header that must not occur twice; `nil` if it is missing, occurs twice, or is longer than 128 bytes.
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
        if notice == nil { notifyLater() }
    }

    /// Notifies the receiver after a delay, because only a few bytes have arrived.
    private func notifyLater() {
        notice = eventLoop.assumeIsolated().scheduleTask(in: FileLimits.worthwhile) {
            self.notice = nil
            guard self.body.readableBytes > 0 else { return }
            self.receivers.first?.bodyArrived(on: self)
            if self.body.readableBytes > 0 { self.notifyLater() }
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

    // MARK: End of the connection

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
        // Bytes that were received before the failure are delivered first.
        if body.readableBytes > 0 { receivers.first?.bodyArrived(on: self) }
        state = .closed
        body = ByteBuffer()
        let first = receivers.first.take()
        first?.failed(fault, on: self)
    }

    /// Moves the deadline. If the timer fires before the new deadline, it is set again then. If it would fire after it, it is replaced.
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
            case .idle, .awaitingResponse: true
            case .receiving: !isHolding && bytesSinceDeadline < FileLimits.minimumProgressBytes
            case .complete, .closed: false
            }
        guard !isSlow else { return fail(.timeout) }
        deadline = .now() + FileLimits.idleTimeout
        bytesSinceDeadline = 0
        watch()
    }
}

/// A receiver that discards a cancelled response.
private final class DiscardingDelegate: FileClientDelegate {
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
