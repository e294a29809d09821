public import HexlistModel
import HexlistWire
public import NIOCore
import Synchronization

/// The channel of a session: delivers frames and sends bytes.
///
/// Confined to its event loop, which every method asserts; that makes it `Sendable`. No method calls the delegate before the method
/// returns: the delegate is called at the end of the current read burst or in the next tick of the loop.
public final class PeerConnection: @unchecked Sendable {
    public enum Role: Sendable {
        case dialer, acceptor
    }

    /// High and low water marks of bytes waiting to be sent: `isWritable` becomes false at `high` and true again at `low`. They apply to
    /// this object and to the channel separately, so up to twice as much and one frame may wait.
    static let waterMark = (low: 64 << 10, high: 256 << 10)
    /// Maximum time `close()` waits for the peer.
    static let closeTime = TimeAmount.seconds(2)
    /// Maximum bytes passed to TLS at once. Encrypted, they fit into its initial buffer of 16 KiB, which would otherwise grow and never
    /// shrink.
    private static let shortWriteBytes = (16 << 10) - 256
    /// Maximum bytes passed to TLS at once for a trusted peer, whose buffer may grow to 64 KiB: a chunk of `WriteBuffer` takes one system
    /// call.
    private static let longWriteBytes = (64 << 10) - 256
    private static let allocator = ByteBufferAllocator()
    /// Maximum bytes read and dropped after `close()`: those the peer may have in flight. Closing a socket with unread bytes resets the
    /// connection, and a reset may overtake the last frame.
    private static let closeBytes = ProtocolLimits.windowBytes
    /// As `closeBytes`, but for a stranger, whose traffic is throttled so that little is in flight.
    private static let strangerCloseBytes = 512 << 10
    /// As `closeBytes`, but after a frame with an invalid length.
    private static let faultBytes = 64 << 10

    public let role: Role
    public let eventLoop: any EventLoop
    /// A number unique in this process, increasing with each connection.
    public let id: UInt64
    /// Numeric address of the peer; a link-local one with `%interface`.
    public let remoteAddress: String
    /// The unit by which connections are counted: the peer's address or IPv6 /64 (`Admission.network`).
    public let remoteNetwork: String
    public let remotePort: UInt16
    /// Numeric address of this side.
    public let localAddress: String
    /// The dialled target; `nil` for an accepted connection.
    public let target: DialTarget?
    public let isTLS: Bool
    /// Fingerprint of the key that the peer proved; `nil` for plain TCP.
    public let peerFingerprint: Fingerprint?
    /// The time when the TCP connection was accepted, or its dial began.
    public let openedAt: ContinuousClock.Instant

    private enum Phase {
        case open
        /// A frame had an invalid length; reading has stopped.
        case faulted
        /// This side closed the connection: up to `left` more bytes are read and dropped.
        case closing(left: Int)
        /// The channel is closed; frames received before may still wait for `isReading`.
        case ended((any Error)?)
        /// The delegate was notified of the end.
        case closed
    }

    private enum CloseMode {
        case orderly, abrupt
    }

    private static let identifiers = Atomic<UInt64>(0)

    private let channel: any Channel
    private let gate: ChannelGate
    private let identified: () -> Void
    private var context: ChannelHandlerContext?
    private var phase = Phase.open
    private var decoder: FrameDecoder
    /// Received bytes of frames that were not delivered yet.
    private var inbound = ByteBuffer()
    /// Whether the delegate must not be called, because it is handling a frame or has called `flush`.
    private var suppressesEvents = false
    private var isReadCompletedPending = false
    private var isReadHeld = false
    private var reading = true
    private var outgoing = WriteBuffer()
    /// Whether the last bytes passed to the channel were not taken by the kernel yet.
    private var isSending = false
    private var isBlocked = false
    private var isScheduled = false
    private var closeMode: CloseMode?
    private var firstError: (any Error)?
    private var closeTimer: Scheduled<Void>?
    private var receiver: (any PeerConnectionDelegate)?

    struct Origin {
        var role: Role
        var target: DialTarget?
        var fingerprint: Fingerprint?
        var openedAt: ContinuousClock.Instant
        /// The unit by which the peer's connections are counted (`Admission.network`).
        var network: IPAddress?
    }

    /// - Parameter identified: called by `markIdentified()`.
    init(channel: any Channel, gate: ChannelGate, origin: Origin, identified: @escaping () -> Void = {}) {
        self.channel = channel
        self.gate = gate
        self.identified = identified
        eventLoop = channel.eventLoop
        id = Self.identifiers.add(1, ordering: .relaxed).newValue
        role = origin.role
        target = origin.target
        peerFingerprint = origin.fingerprint
        isTLS = origin.fingerprint != nil
        openedAt = origin.openedAt
        let address = channel.remoteAddress.flatMap(IPAddress.init)
        remoteAddress = address?.host ?? ""
        remoteNetwork = (origin.network ?? address?.subscriber)?.host ?? ""
        remotePort = channel.remoteAddress?.port.flatMap(UInt16.init(exactly:)) ?? 0
        localAddress = channel.localAddress.flatMap(IPAddress.init)?.host ?? ""
        decoder = FrameDecoder(limit: isTLS ? ProtocolLimits.firstFrameBytes : ProtocolLimits.strangerFrameBytes)
    }

    // MARK: For the session

    /// The receiver of frames, retained until `closed`. Frames that arrive before it is set are delivered then.
    public var delegate: (any PeerConnectionDelegate)? {
        get { receiver }
        set {
            eventLoop.preconditionInEventLoop()
            if case .closed = phase { return }
            receiver = newValue
            schedule()
        }
    }

    /// Maximum bytes of a frame's body, from the next header on. Initially 8 KiB for TLS and 64 KiB for plain TCP. With the limit of a
    /// trusted peer, reads of the socket are larger.
    public var frameLimit: Int {
        get { decoder.limit }
        set {
            eventLoop.assertInEventLoop()
            decoder.limit = newValue
            guard allowsLongFrames else { return }
            try? channel.syncOptions?.setOption(.recvAllocator, value: ReadBufferAllocator(maximumBytes: SocketOptions.longReadBytes))
        }
    }

    private var allowsLongFrames: Bool { decoder.limit >= ProtocolLimits.trustedFrameBytes }

    /// Whether the socket is read and frames are delivered. `false` applies back-pressure to the peer.
    public var isReading: Bool {
        get { reading }
        set {
            eventLoop.assertInEventLoop()
            guard newValue != reading else { return }
            reading = newValue
            if newValue { schedule() }
        }
    }

    /// Whether fewer than 256 KiB wait to be sent. Once it is `false`, `writabilityChanged` is called when no more than 64 KiB wait.
    public var isWritable: Bool {
        guard isOpen else { return false }
        return !isBlocked
    }

    /// Written bytes that the kernel has not accepted yet.
    public var pendingWriteBytes: Int {
        outgoing.bytes + channelBytes
    }

    /// Bytes in the channel that the kernel has not accepted yet.
    var channelBytes: Int { (try? channel.syncOptions?.getOption(ChannelOptions.bufferedWritableBytes)) ?? 0 }

    /// `false` after `close()` or `abort()`, and when the peer has closed.
    public var isOpen: Bool {
        switch phase {
        case .open, .faulted: true
        case .closing, .ended, .closed: false
        }
    }

    /// Buffers bytes, which are sent as one write at the end of the read burst or of this tick of the loop. No effect if closed.
    public func write(_ bytes: ByteBuffer) {
        eventLoop.assertInEventLoop()
        guard isOpen else { return }
        outgoing.append(bytes)
        written()
    }

    /// Like `write(_:)`, but `encode` appends the frames directly to the send buffer.
    public func write(_ encode: (inout ByteBuffer) -> Void) {
        eventLoop.assertInEventLoop()
        guard isOpen else { return }
        outgoing.append(encode)
        written()
    }

    private func written() {
        if outgoing.bytes >= Self.waterMark.high { isBlocked = true }
        schedule()
    }

    /// Sends buffered bytes immediately if they are few and no earlier write is in flight; otherwise they are sent at the end of this tick.
    /// Use it for latency-sensitive frames if the caller has more to do.
    public func flush() {
        eventLoop.assertInEventLoop()
        guard isOpen, !isBlocked, !suppressesEvents, outgoing.bytes <= Self.waterMark.low else { return }
        // If the socket fails here, it is read to its end and closed before `send` returns. The tick scheduled by `write` reports it.
        suppressesEvents = true
        defer { suppressesEvents = false }
        send()
    }

    /// Records that the peer said Hello and proved its identity: the connection no longer counts as unidentified.
    public func markIdentified() {
        eventLoop.assertInEventLoop()
        identified()
    }

    /// Sends buffered bytes and closes in an orderly way, waiting at most 2 s for the peer. From now on only `closed` is delivered.
    public func close() { startClose(.orderly) }

    /// Closes immediately; unsent bytes are lost.
    public func abort() { startClose(.abrupt) }

    private func startClose(_ closeMode: CloseMode) {
        eventLoop.preconditionInEventLoop()
        switch phase {
        case .open, .ended:
            phase = .closing(left: allowsLongFrames ? Self.closeBytes : Self.strangerCloseBytes)
        case .faulted: phase = .closing(left: Self.faultBytes)
        case .closing: guard closeMode == .abrupt else { return }
        case .closed: return
        }
        self.closeMode = closeMode
        inbound = ByteBuffer()
        schedule()
    }

    // MARK: Ticks of the loop

    private func schedule() {
        guard !isScheduled else { return }
        isScheduled = true
        eventLoop.execute { self.tick() }
    }

    private func tick() {
        isScheduled = false
        deliver()
        trim()
        endBurst()
        if isReadHeld, shouldRead {
            isReadHeld = false
            context?.read()
        }
        endIfDelivered()
    }

    /// Notifies the delegate of the end of a read burst, and sends the bytes it wrote.
    private func endBurst() {
        if isReadCompletedPending {
            isReadCompletedPending = false
            receiver?.readCompleted(on: self)
        }
        send()
        closeChannel()
        unblock()
    }

    /// Passes buffered bytes to the channel once the kernel has taken the previous ones: a waiting TLS record holds a buffer of 16 KiB
    /// however short it is, while many short frames are coalesced here into few long records. A pending close does not wait.
    private func send() {
        guard !isSending || closeMode != nil else { return }
        var pieces = outgoing.take()
        guard let context, let last = pieces.popLast() else { return }
        isSending = true
        for piece in pieces { send(piece, on: context) }
        let taken = eventLoop.makePromise(of: Void.self)
        taken.futureResult.whenComplete { _ in self.sent() }
        send(last, on: context, taken)
        if !channel.isWritable { isBlocked = true }
    }

    private func send(_ piece: ByteBuffer, on context: ChannelHandlerContext, _ taken: EventLoopPromise<Void>? = nil) {
        let maximumBytes = allowsLongFrames ? Self.longWriteBytes : Self.shortWriteBytes
        var piece = piece
        while isTLS, piece.readableBytes > maximumBytes, let part = piece.readSlice(length: maximumBytes) {
            context.writeAndFlush(NIOAny(part), promise: nil)
        }
        context.writeAndFlush(NIOAny(piece), promise: taken)
    }

    private func sent() {
        isSending = false
        if outgoing.bytes > 0 { schedule() }
    }

    private func unblock() {
        guard isBlocked, !suppressesEvents, isOpen, outgoing.bytes <= Self.waterMark.low, channel.isWritable else { return }
        isBlocked = false
        receiver?.writabilityChanged(on: self)
    }

    private func closeChannel() {
        guard let closeMode else { return }
        self.closeMode = nil
        guard let context else {
            // The channel closed before this call.
            if case .closing = phase { end() }
            return
        }
        switch closeMode {
        case .abrupt:
            gate.abort()
        case .orderly:
            closeTimer = eventLoop.scheduleTask(in: Self.closeTime) { self.gate.abort() }
            // TLS waits for the peer's close_notify, plain TCP for its FIN.
            context.close(mode: isTLS ? .all : .output, promise: nil)
        }
    }

    // MARK: Frames

    private var canDeliver: Bool {
        switch phase {
        case .open, .ended: reading && receiver != nil
        case .faulted, .closing, .closed: false
        }
    }

    /// Whether the socket should be read.
    private var shouldRead: Bool {
        switch phase {
        case .open: reading && receiver != nil
        case .closing(let left): left > 0
        case .faulted, .ended, .closed: false
        }
    }

    private func deliver() {
        guard !suppressesEvents, inbound.readableBytes > 0 else { return }
        suppressesEvents = true
        defer { suppressesEvents = false }
        while canDeliver, let receiver {
            let frame: [UInt8]?
            do throws(FrameFault) {
                frame = try decoder.next(from: &inbound)
            } catch {
                switch error {
                case .length(let length): return fault(length, receiver)
                }
            }
            guard let frame else { return }
            isReadCompletedPending = true
            receiver.received(frame: frame, on: self)
        }
    }

    /// Frees the receive buffer of an idle connection.
    private func trim() {
        if inbound.readableBytes == 0 { inbound = ByteBuffer() } else { inbound.discardReadBytes() }
    }

    private func fault(_ length: UInt32, _ receiver: any PeerConnectionDelegate) {
        inbound = ByteBuffer()
        if case .open = phase { phase = .faulted }
        receiver.frameFault(length, on: self)
        close()
    }

    // MARK: Events of the channel

    /// Adds this connection's handler at the end of the channel's pipeline.
    func install(replacing handshake: HandshakeHandler?) throws {
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(PeerConnectionHandler(self))
        if let handshake { pipeline.removeHandler(handshake, promise: nil) }
    }

    func installed(_ context: ChannelHandlerContext) { self.context = context }

    func removed() { context = nil }

    func bytesArrived(_ bytes: ByteBuffer) {
        switch phase {
        case .open:
            if inbound.readableBytes == 0 {
                inbound = bytes
                deliver()
                // Copies the rest of a frame, so that the TLS handler can reuse its buffer.
                inbound = inbound.readableBytes > 0 ? Self.allocator.buffer(buffer: inbound) : ByteBuffer()
            } else {
                inbound.writeImmutableBuffer(bytes)
                deliver()
                trim()
            }
        case .closing(let left):
            phase = .closing(left: left - bytes.readableBytes)
            // The peer continues to send although this side has closed.
            if left <= bytes.readableBytes { gate.abort() }
        case .faulted, .ended, .closed:
            break
        }
    }

    func burstEnded() { if suppressesEvents { schedule() } else { endBurst() } }

    /// - Returns: whether the channel may read now; otherwise it reads when reading resumes.
    func mayRead() -> Bool {
        let mayRead = shouldRead
        isReadHeld = !mayRead
        return mayRead
    }

    func writabilityChanged() {
        if channel.isWritable { unblock() } else { isBlocked = true }
    }

    func failed(_ error: any Error) {
        if firstError == nil { firstError = error }
        gate.abort()
    }

    func channelEnded() {
        context = nil
        closeTimer?.cancel()
        closeTimer = nil
        switch phase {
        case .open, .faulted:
            phase = .ended(firstError)
            outgoing = WriteBuffer()
            endIfDelivered()
        case .closing:
            end()
        case .ended, .closed:
            break
        }
    }

    /// Ends the connection if the channel is closed and all complete frames were delivered.
    private func endIfDelivered() {
        guard case .ended(let error) = phase, reading, receiver != nil, !suppressesEvents else { return }
        deliver()
        guard case .ended = phase, reading else { return }
        if isReadCompletedPending {
            isReadCompletedPending = false
            receiver?.readCompleted(on: self)
        }
        guard case .ended = phase else { return }
        end(error ?? (inbound.readableBytes > 0 ? ConnectionFault.truncatedFrame : nil))
    }

    private func end(_ error: (any Error)? = nil) {
        inbound = ByteBuffer()
        outgoing = WriteBuffer()
        guard let receiver else {
            // A delegate set later is still notified of the end.
            reading = true
            phase = .ended(error)
            return
        }
        phase = .closed
        self.receiver = nil
        receiver.closed(on: self, error: error)
    }
}

/// Reasons for the end of a connection besides errors of TLS and of the socket.
public enum ConnectionFault: Error, Sendable, CustomStringConvertible {
    /// The peer closed in the middle of a frame.
    case truncatedFrame

    public var description: String {
        switch self {
        case .truncatedFrame: "the connection ended in the middle of a frame"
        }
    }
}
