public import HexlistModel
import HexlistWire
public import NIOCore
import Synchronization

/// The connection of a session: receives frames and sends bytes.
///
/// Every member is used on its event loop only, which the methods assert; that makes the class `Sendable`. No method calls the delegate
/// before it returns. The delegate is called at the end of the current read, or in the next tick of the event loop.
public final class PeerConnection: @unchecked Sendable {
    public enum Role: Sendable {
        case dialer, acceptor
    }

    /// Low and high water mark of bytes that are to be sent. `isWritable` becomes `false` at `high` and `true` again at `low`. The marks
    /// apply separately to the buffer of this object and to that of the channel, so up to twice `high` and one frame may be in memory.
    static let waterMark = (low: 64 << 10, high: 256 << 10)
    /// Maximum time for which `close()` waits until the peer has closed too.
    static let closeTime = TimeAmount.seconds(2)
    /// Maximum bytes that are passed to TLS at once. After encryption they fit into the initial buffer of TLS, 16 KiB. A larger buffer
    /// would never shrink again.
    private static let shortWriteBytes = (16 << 10) - 256
    /// Maximum bytes that are passed to TLS at once for a trusted peer. The buffer of TLS may grow to 64 KiB, so that a chunk of
    /// `WriteBuffer` takes one system call.
    private static let longWriteBytes = (64 << 10) - 256
    private static let allocator = ByteBufferAllocator()
    /// Maximum bytes that are read and discarded after `close()`. They are the bytes that the peer may have in flight. If the socket were
    /// closed before they are read, the kernel would reset the connection, and the peer might lose the last frames.
    private static let closeBytes = ProtocolLimits.windowBytes
    /// Like `closeBytes`, for a stranger. Reading from strangers is throttled, so few bytes are in flight.
    private static let strangerCloseBytes = 512 << 10
    /// Like `closeBytes`, after a frame with an invalid length.
    private static let faultBytes = 64 << 10

    public let role: Role
    public let eventLoop: any EventLoop
    /// A number that is unique in this process. It increases with each connection.
    public let id: UInt64
    /// The numeric address of the peer. A link-local address has its interface, such as `%eth0`.
    public let remoteAddress: String
    /// The address under which the connection is counted: the peer's address or IPv6 /64 (`Admission.network`).
    public let remoteNetwork: String
    public let remotePort: UInt16
    /// The numeric address of this machine on the connection.
    public let localAddress: String
    /// The target that was dialled; `nil` for an accepted connection.
    public let target: DialTarget?
    public let isTLS: Bool
    /// The fingerprint of the key that the peer proved; `nil` on plain TCP.
    public let peerFingerprint: Fingerprint?
    /// The time when the connection was accepted, or when its dial began.
    public let openedAt: ContinuousClock.Instant

    private enum Phase {
        case open
        /// A frame had an invalid length, so reading has stopped.
        case faulted
        /// `close()` was called. Up to `left` more bytes are read and discarded.
        case closing(left: Int)
        /// The channel is closed. Frames that were received before may still have to be delivered, when `isReading` becomes `true`.
        case ended((any Error)?)
        /// The delegate was notified that the connection is closed.
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
    /// Received bytes that were not delivered yet.
    private var inbound = ByteBuffer()
    /// Whether the delegate must not be called now, because it is handling a frame or is inside a call of `flush`.
    private var suppressesEvents = false
    /// Whether `readCompleted` has to be called, because frames were delivered.
    private var isReadCompletedPending = false
    /// Whether NIO wanted to read while reading was paused. The read is made up for later.
    private var isReadHeld = false
    private var reading = true
    private var outgoing = WriteBuffer()
    /// Whether the kernel has not accepted all bytes that were passed to the channel.
    private var isSending = false
    /// Whether `isWritable` is `false` because of the water marks.
    private var isBlocked = false
    /// Whether a call of `tick` is scheduled.
    private var isScheduled = false
    private var closeMode: CloseMode?
    private var firstError: (any Error)?
    private var closeTimer: Scheduled<Void>?
    private var receiver: (any PeerConnectionDelegate)?

    /// The origin of a connection: its role and addresses.
    struct Origin {
        var role: Role
        var target: DialTarget?
        var fingerprint: Fingerprint?
        var openedAt: ContinuousClock.Instant
        /// The address under which the connection is counted (`Admission.network`).
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

    // MARK: Use by the session

    /// The receiver of frames, retained until its method `closed` was called. Frames that arrive before a delegate is set are delivered
    /// afterwards.
    public var delegate: (any PeerConnectionDelegate)? {
        get { receiver }
        set {
            eventLoop.preconditionInEventLoop()
            if case .closed = phase { return }
            receiver = newValue
            schedule()
        }
    }

    /// Maximum bytes of a frame's body. A change applies to the next frame. Initially 8 KiB with TLS, and 64 KiB on plain TCP. At the limit
    /// of a trusted peer, more bytes are read from the socket at once.
    public var frameLimit: Int {
        get { decoder.limit }
        set {
            eventLoop.assertInEventLoop()
            decoder.limit = newValue
            guard allowsLongFrames else { return }
            SocketOptions.permitLongReads(on: channel)
        }
    }

    private var allowsLongFrames: Bool { decoder.limit >= ProtocolLimits.trustedFrameBytes }

    /// Whether the socket is read and frames are delivered. Setting it to `false` makes the peer wait.
    public var isReading: Bool {
        get { reading }
        set {
            eventLoop.assertInEventLoop()
            guard newValue != reading else { return }
            reading = newValue
            if newValue { schedule() }
        }
    }

    /// Whether more bytes should be written. `false` from the time when 256 KiB are to be sent, until no more than 64 KiB are. Then
    /// `writabilityChanged` is called.
    public var isWritable: Bool {
        guard isOpen else { return false }
        return !isBlocked
    }

    /// Number of written bytes that the kernel has not accepted yet.
    public var pendingWriteBytes: Int {
        outgoing.bytes + channelBytes
    }

    /// Number of bytes in the channel that the kernel has not accepted yet.
    var channelBytes: Int { (try? channel.syncOptions?.getOption(ChannelOptions.bufferedWritableBytes)) ?? 0 }

    /// Whether the connection can be used. `false` after `close()` and `abort()`, and after the peer has closed it.
    public var isOpen: Bool {
        switch phase {
        case .open, .faulted: true
        case .closing, .ended, .closed: false
        }
    }

    /// Writes bytes. They are sent with other written bytes at the end of the current read or of this tick of the event loop. No effect if
    /// the connection is not open.
    public func write(_ bytes: ByteBuffer) {
        eventLoop.assertInEventLoop()
        guard isOpen else { return }
        outgoing.append(bytes)
        written()
    }

    /// Writes frames like `write(_:)`. `encode` appends them directly to the send buffer.
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

    /// Sends written bytes immediately, if they are at most 64 KiB and the kernel has accepted earlier ones. Otherwise they are sent at the
    /// end of this tick. For frames that should not wait until the caller has finished.
    public func flush() {
        eventLoop.assertInEventLoop()
        guard isOpen, !isBlocked, !suppressesEvents, outgoing.bytes <= Self.waterMark.low else { return }
        // If the socket fails here, NIO reads the rest of its data and closes it before `send` returns. The delegate is notified in the
        // tick that `write` has scheduled.
        suppressesEvents = true
        defer { suppressesEvents = false }
        send()
    }

    /// Records that the peer has proved its identity and has sent a Hello. The connection then no longer counts for
    /// `TransportLimits.unidentified`.
    public func markIdentified() {
        eventLoop.assertInEventLoop()
        identified()
    }

    /// Sends written bytes, and closes the connection in an orderly way. Waits at most 2 s for the peer to close. The delegate is only
    /// notified of `closed` from now on.
    public func close() { startClose(.orderly) }

    /// Closes the connection immediately. Bytes that were not sent are lost.
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

    // MARK: Event loop ticks

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

    /// Notifies the delegate of the end of a read, and sends the bytes that it wrote.
    private func endBurst() {
        if isReadCompletedPending {
            isReadCompletedPending = false
            receiver?.readCompleted(on: self)
        }
        send()
        closeChannel()
        unblock()
    }

    /// Passes written bytes to the channel, once the kernel has accepted the previous ones. Until then, short frames are coalesced here
    /// into long TLS records, because each record in the channel takes a buffer of 16 KiB. A pending close does not wait.
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
            // The channel was closed before this call.
            if case .closing = phase { end() }
            return
        }
        switch closeMode {
        case .abrupt:
            gate.abort()
        case .orderly:
            closeTimer = eventLoop.scheduleTask(in: Self.closeTime) { self.gate.abort() }
            // With TLS, the channel waits for the peer's close_notify; on plain TCP, for the peer's FIN.
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

    /// Frees the part of the receive buffer that is no longer used.
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
                // The beginning of a frame is copied, so that the TLS handler can use its buffer again.
                inbound = inbound.readableBytes > 0 ? Self.allocator.buffer(buffer: inbound) : ByteBuffer()
            } else {
                inbound.writeImmutableBuffer(bytes)
                deliver()
                trim()
            }
        case .closing(let left):
            phase = .closing(left: left - bytes.readableBytes)
            // The peer still sends, although it can know that this machine has closed the connection.
            if left <= bytes.readableBytes { gate.abort() }
        case .faulted, .ended, .closed:
            break
        }
    }

    func burstEnded() { if suppressesEvents { schedule() } else { endBurst() } }

    /// Called when NIO wants to read the socket.
    /// - Returns: whether it may read now. If not, the read follows when reading resumes.
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

    /// Notifies the delegate of the end, if the channel is closed and all complete frames were delivered.
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
            // If a delegate is set later, it is notified of the end then.
            reading = true
            phase = .ended(error)
            return
        }
        phase = .closed
        self.receiver = nil
        receiver.closed(on: self, error: error)
    }
}

/// The reasons for the end of a connection that are not errors of TLS or of the socket.
public enum ConnectionFault: Error, Sendable, CustomStringConvertible {
    /// The peer closed the connection in the middle of a frame.
    case truncatedFrame

    public var description: String {
        switch self {
        case .truncatedFrame: "the connection ended in the middle of a frame"
        }
    }
}
