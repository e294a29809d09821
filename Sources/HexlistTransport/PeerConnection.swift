public import HexlistModel
import HexlistWire
public import NIOCore
import Synchronization

/// One session's channel: frames in, bytes out.
///
/// Confined to its event loop, which each entry asserts; that is what makes it `Sendable`. No method calls the delegate before
/// it has returned: what follows from a call happens at the end of the current burst of frames or in the next turn of the loop.
public final class PeerConnection: @unchecked Sendable {
    public enum Role: Sendable {
        case dialer, acceptor
    }

    /// Bytes waiting to be sent from which `isWritable` is false, and to which they must fall for it to be true again; for what
    /// waits here and what waits in the channel alike, so that twice as much and a frame may wait in all.
    static let waterMark = (low: 64 << 10, high: 256 << 10)
    /// How long `close()` waits for the other side.
    static let closeTime = TimeAmount.seconds(2)
    /// Bytes given to TLS at once: what they become fits the 16 KiB it begins with. It keeps the longest it ever made.
    private static let recordBytes = (16 << 10) - 256
    private static let allocator = ByteBufferAllocator()
    /// Bytes read and thrown away after `close()`: what a peer may have had under way. Closing a socket that holds unread
    /// bytes resets it, and a reset may overtake the last frame.
    private static let closeBytes = ProtocolLimits.windowBytes
    /// The same of a stranger, which is read no faster than it may speak: it has not much under way that is wanted.
    private static let strangerCloseBytes = 512 << 10
    /// The same after a frame of a wrong length, whose sender is owed nothing.
    private static let faultBytes = 64 << 10

    public let role: Role
    public let eventLoop: any EventLoop
    /// Unique in the process, and greater than that of every connection before.
    public let id: UInt64
    /// Numeric; a link-local one with `%interface`.
    public let remoteAddress: String
    /// The address that connections are counted by: the other side's own, or its IPv6 /64 (`Admission.network`).
    public let remoteNetwork: String
    public let remotePort: UInt16
    /// Numeric.
    public let localAddress: String
    /// Where it was dialled; `nil` for an accepted connection.
    public let target: DialTarget?
    public let isTLS: Bool
    /// Of the key the other side proved; `nil` on plain TCP.
    public let peerFingerprint: Fingerprint?
    /// When the TCP connection was accepted, or its dial began.
    public let openedAt: ContinuousClock.Instant

    private enum Phase {
        case open
        /// A frame had a wrong length: nothing is read any more.
        case faulted
        /// Closed from here: what comes is thrown away, at most `left` bytes of it.
        case closing(left: Int)
        /// The channel is gone; frames that came before may still wait for `isReading`.
        case ended((any Error)?)
        /// The delegate knows.
        case closed
    }

    private enum Goodbye {
        case orderly, abrupt
    }

    private static let identifiers = Atomic<UInt64>(0)

    private let channel: any Channel
    private let gate: ChannelGate
    private let identified: () -> Void
    private var context: ChannelHandlerContext?
    private var phase = Phase.open
    private var decoder: FrameDecoder
    /// Bytes of frames not yet delivered.
    private var inbound = ByteBuffer()
    private var isDelivering = false
    private var owesReadCompleted = false
    private var isReadHeld = false
    private var reading = true
    private var outgoing = OutgoingPieces()
    private var isBlocked = false
    private var isScheduled = false
    private var goodbye: Goodbye?
    private var firstError: (any Error)?
    private var closeTimer: Scheduled<Void>?
    private var receiver: (any PeerConnectionDelegate)?

    struct Origin {
        var role: Role
        var target: DialTarget?
        var fingerprint: Fingerprint?
        var openedAt: ContinuousClock.Instant
        /// What the other side's address counts as (`Admission.network`).
        var network: IPAddress?
    }

    /// - Parameter identified: `markIdentified()` was called.
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

    /// Held until `closed`. Until it is set nothing is delivered, and nothing is lost.
    public var delegate: (any PeerConnectionDelegate)? {
        get { receiver }
        set {
            eventLoop.preconditionInEventLoop()
            if case .closed = phase { return }
            receiver = newValue
            schedule()
        }
    }

    /// Bytes of one frame's body, at most; counts for the next header. 8 KiB on TLS and 64 KiB on plain TCP to begin with.
    public var frameLimit: Int {
        get { decoder.limit }
        set {
            eventLoop.assertInEventLoop()
            decoder.limit = newValue
        }
    }

    /// `false` holds the sender back: no further frame is delivered, and the socket is not read.
    public var isReading: Bool {
        get { reading }
        set {
            eventLoop.assertInEventLoop()
            guard newValue != reading else { return }
            reading = newValue
            if newValue { schedule() }
        }
    }

    /// `false` while 256 KiB or more wait to be sent; then `writabilityChanged` comes once it is 64 KiB or less.
    public var isWritable: Bool {
        guard isOpen else { return false }
        return !isBlocked
    }

    /// Bytes written here and not yet taken by the kernel.
    public var pendingWriteBytes: Int {
        outgoing.bytes + ((try? channel.syncOptions?.getOption(ChannelOptions.bufferedWritableBytes)) ?? 0)
    }

    /// `false` after `close()` or `abort()`, and once the other side is gone.
    public var isOpen: Bool {
        switch phase {
        case .open, .faulted: true
        case .closing, .ended, .closed: false
        }
    }

    /// Appends to what goes out at the end of the burst or of this turn of the loop, as one piece. Without effect once closed.
    public func write(_ bytes: ByteBuffer) {
        eventLoop.assertInEventLoop()
        guard isOpen else { return }
        outgoing.append(bytes)
        written()
    }

    /// As `write(_:)`, with frames encoded in place.
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

    /// Not needed: what is written goes out by itself.
    public func flush() {
        eventLoop.assertInEventLoop()
        schedule()
    }

    /// It has said Hello and is who it says: it no longer counts as unidentified.
    public func markIdentified() {
        eventLoop.assertInEventLoop()
        identified()
    }

    /// Sends what was written, says goodbye and waits at most 2 s for the other side to do the same. Nothing but `closed` is
    /// delivered any more.
    public func close() { leave(.orderly) }

    /// Closes at once: what was written and not sent is lost.
    public func abort() { leave(.abrupt) }

    private func leave(_ goodbye: Goodbye) {
        eventLoop.preconditionInEventLoop()
        switch phase {
        case .open, .ended:
            let isTrusted = decoder.limit >= ProtocolLimits.trustedFrameBytes
            phase = .closing(left: isTrusted ? Self.closeBytes : Self.strangerCloseBytes)
        case .faulted: phase = .closing(left: Self.faultBytes)
        case .closing: guard goodbye == .abrupt else { return }
        case .closed: return
        }
        self.goodbye = goodbye
        inbound = ByteBuffer()
        schedule()
    }

    // MARK: Turns of the loop

    private func schedule() {
        guard !isScheduled else { return }
        isScheduled = true
        eventLoop.execute { self.turn() }
    }

    private func turn() {
        isScheduled = false
        deliver()
        trim()
        endBurst()
        if isReadHeld, wantsBytes {
            isReadHeld = false
            context?.read()
        }
        endIfDelivered()
    }

    /// Tells the delegate that a burst is over, and sends what was written meanwhile.
    private func endBurst() {
        if owesReadCompleted {
            owesReadCompleted = false
            receiver?.readCompleted(on: self)
        }
        send()
        sayGoodbye()
        unblock()
    }

    private func send() {
        let pieces = outgoing.take()
        guard !pieces.isEmpty else { return }
        for piece in pieces { send(piece) }
        if !channel.isWritable { isBlocked = true }
    }

    private func send(_ piece: ByteBuffer) {
        var piece = piece
        while isTLS, piece.readableBytes > Self.recordBytes, let record = piece.readSlice(length: Self.recordBytes) {
            context?.writeAndFlush(NIOAny(record), promise: nil)
        }
        context?.writeAndFlush(NIOAny(piece), promise: nil)
    }

    private func unblock() {
        guard isBlocked, isOpen, outgoing.bytes <= Self.waterMark.low, channel.isWritable else { return }
        isBlocked = false
        receiver?.writabilityChanged(on: self)
    }

    private func sayGoodbye() {
        guard let goodbye else { return }
        self.goodbye = nil
        guard let context else {
            // The channel went first.
            if case .closing = phase { end() }
            return
        }
        switch goodbye {
        case .abrupt:
            gate.abort()
        case .orderly:
            closeTimer = eventLoop.scheduleTask(in: Self.closeTime) { self.gate.abort() }
            // TLS waits for the answer to its close_notify; plain TCP for the other's FIN.
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

    /// Whether the socket is to be read.
    private var wantsBytes: Bool {
        switch phase {
        case .open: reading && receiver != nil
        case .closing(let left): left > 0
        case .faulted, .ended, .closed: false
        }
    }

    private func deliver() {
        guard !isDelivering, inbound.readableBytes > 0 else { return }
        isDelivering = true
        defer { isDelivering = false }
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
            owesReadCompleted = true
            receiver.received(frame: frame, on: self)
        }
    }

    /// An idle connection holds no buffer.
    private func trim() {
        if inbound.readableBytes == 0 { inbound = ByteBuffer() } else { inbound.discardReadBytes() }
    }

    private func fault(_ length: UInt32, _ receiver: any PeerConnectionDelegate) {
        inbound = ByteBuffer()
        if case .open = phase { phase = .faulted }
        receiver.frameFault(length, on: self)
        close()
    }

    // MARK: From the channel

    /// Takes the end of the channel's pipeline.
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
                // The rest is copied, so that the TLS handler has its buffer for itself again.
                inbound = inbound.readableBytes > 0 ? Self.allocator.buffer(buffer: inbound) : ByteBuffer()
            } else {
                inbound.writeImmutableBuffer(bytes)
                deliver()
                trim()
            }
        case .closing(let left):
            phase = .closing(left: left - bytes.readableBytes)
            // It sends on and on, and does not listen.
            if left <= bytes.readableBytes { gate.abort() }
        case .faulted, .ended, .closed:
            break
        }
    }

    func burstEnded() { endBurst() }

    /// - Returns: whether the channel may read; otherwise the read is made up for later.
    func mayRead() -> Bool {
        let mayRead = wantsBytes
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
            outgoing = OutgoingPieces()
            endIfDelivered()
        case .closing:
            end()
        case .ended, .closed:
            break
        }
    }

    /// Once the channel is gone and the last whole frame was delivered.
    private func endIfDelivered() {
        guard case .ended(let error) = phase, reading, receiver != nil, !isDelivering else { return }
        deliver()
        guard case .ended = phase, reading else { return }
        if owesReadCompleted {
            owesReadCompleted = false
            receiver?.readCompleted(on: self)
        }
        guard case .ended = phase else { return }
        end(error ?? (inbound.readableBytes > 0 ? ConnectionFault.truncatedFrame : nil))
    }

    private func end(_ error: (any Error)? = nil) {
        inbound = ByteBuffer()
        outgoing = OutgoingPieces()
        guard let receiver else {
            // Whoever comes as the delegate is still told.
            reading = true
            phase = .ended(error)
            return
        }
        phase = .closed
        self.receiver = nil
        receiver.closed(on: self, error: error)
    }
}

/// What ends a connection besides errors of TLS and of the socket.
public enum ConnectionFault: Error, Sendable, CustomStringConvertible {
    /// The other side closed in the middle of a frame.
    case truncatedFrame

    public var description: String {
        switch self {
        case .truncatedFrame: "the connection ended in the middle of a frame"
        }
    }
}
