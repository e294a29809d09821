public import HexlistModel
import HexlistWire
public import NIOCore
import Synchronization

/// The channel of one session: delivers frames, sends bytes.
///
/// Confined to its event loop, which every entry asserts; that makes it `Sendable`. No method calls the delegate before it returns:
/// consequences of a call happen at the end of the current burst of frames or in the next turn of the loop.
public final class PeerConnection: @unchecked Sendable {
    public enum Role: Sendable {
        case dialer, acceptor
    }

    /// Bytes waiting to be sent: `isWritable` becomes false at `high` and true again at `low`. The marks apply separately to this value and
    /// to the channel's, so up to twice as much and a frame may wait in all.
    static let waterMark = (low: 64 << 10, high: 256 << 10)
    /// The time `close()` waits for the other side.
    static let closeTime = TimeAmount.seconds(2)
    /// The most bytes passed to TLS at once: encrypted they fit its initial buffer of 16 KiB, which would otherwise grow and stay so.
    private static let shortWriteBytes = (16 << 10) - 256
    /// The same for a trusted peer, for whom that buffer may grow to 64 KiB: a piece of `OutgoingPieces` is one system call.
    private static let longWriteBytes = (64 << 10) - 256
    private static let allocator = ByteBufferAllocator()
    /// The most bytes read and dropped after `close()`: what a peer may have on its way. Closing a socket that holds unread bytes resets
    /// it, and a reset may overtake the last frame.
    private static let closeBytes = ProtocolLimits.windowBytes
    /// The most bytes read and dropped after `close()` of a stranger, which is read slowly and has little on its way that is wanted.
    private static let strangerCloseBytes = 512 << 10
    /// The most bytes read and dropped after a frame of a wrong length, which is the sender's fault.
    private static let faultBytes = 64 << 10

    public let role: Role
    public let eventLoop: any EventLoop
    /// A number that is unique in the process and greater than those of earlier connections.
    public let id: UInt64
    /// The numeric address of the other side; a link-local one with `%interface`.
    public let remoteAddress: String
    /// The address that connections are counted by: the other side's own, or its IPv6 /64 (`Admission.network`).
    public let remoteNetwork: String
    public let remotePort: UInt16
    /// The numeric address of this side.
    public let localAddress: String
    /// The target that was dialled; `nil` for an accepted connection.
    public let target: DialTarget?
    public let isTLS: Bool
    /// The fingerprint of the key that the other side proved; `nil` on plain TCP.
    public let peerFingerprint: Fingerprint?
    /// The instant at which the TCP connection was accepted, or its dial began.
    public let openedAt: ContinuousClock.Instant

    private enum Phase {
        case open
        /// A frame had a wrong length; reading has ended.
        case faulted
        /// Closed by this side: up to `left` bytes are still read, and dropped.
        case closing(left: Int)
        /// The channel is gone; frames that came before may still wait for `isReading`.
        case ended((any Error)?)
        /// The delegate has been told of the end.
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
    /// The bytes of frames not yet delivered.
    private var inbound = ByteBuffer()
    /// Whether the delegate is not to be told of anything: it is being told of a frame, or calls `flush`.
    private var holdsEvents = false
    private var owesReadCompleted = false
    private var isReadHeld = false
    private var reading = true
    private var outgoing = OutgoingPieces()
    /// Whether the kernel has not taken yet what the channel was last given.
    private var isSending = false
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
        /// The unit in which the other side's connections are counted (`Admission.network`).
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

    /// The receiver of frames, held until `closed`. Until it is set nothing is delivered, and nothing is lost.
    public var delegate: (any PeerConnectionDelegate)? {
        get { receiver }
        set {
            eventLoop.preconditionInEventLoop()
            if case .closed = phase { return }
            receiver = newValue
            schedule()
        }
    }

    /// The most bytes of one frame's body; applies from the next header on. Initially 8 KiB on TLS and 64 KiB on plain TCP. One that takes a trusted
    /// peer's frames reads more at once.
    public var frameLimit: Int {
        get { decoder.limit }
        set {
            eventLoop.assertInEventLoop()
            decoder.limit = newValue
            guard takesLongFrames else { return }
            try? channel.syncOptions?.setOption(.recvAllocator, value: ReadBufferAllocator(most: SocketOptions.longReadBytes))
        }
    }

    private var takesLongFrames: Bool { decoder.limit >= ProtocolLimits.trustedFrameBytes }

    /// Whether frames are delivered and the socket is read. `false` holds the sender back.
    public var isReading: Bool {
        get { reading }
        set {
            eventLoop.assertInEventLoop()
            guard newValue != reading else { return }
            reading = newValue
            if newValue { schedule() }
        }
    }

    /// Whether fewer than 256 KiB wait to be sent. After `false`, `writabilityChanged` follows once 64 KiB or less wait.
    public var isWritable: Bool {
        guard isOpen else { return false }
        return !isBlocked
    }

    /// Bytes written here and not yet accepted by the kernel.
    public var pendingWriteBytes: Int {
        outgoing.bytes + channelBytes
    }

    /// Bytes in the channel that the kernel has not taken yet.
    var channelBytes: Int { (try? channel.syncOptions?.getOption(ChannelOptions.bufferedWritableBytes)) ?? 0 }

    /// Whether the connection is open: `false` after `close()` or `abort()`, and once the other side is gone.
    public var isOpen: Bool {
        switch phase {
        case .open, .faulted: true
        case .closing, .ended, .closed: false
        }
    }

    /// Appends bytes to what is sent as one piece at the end of the burst or of this turn of the loop. No effect once closed.
    public func write(_ bytes: ByteBuffer) {
        eventLoop.assertInEventLoop()
        guard isOpen else { return }
        outgoing.append(bytes)
        written()
    }

    /// Does the same as `write(_:)`, with frames encoded in place.
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

    /// Sends what was written at once, where it is little and the kernel has taken all before it; else that is left to the turn. For what
    /// somebody waits for while the caller has more to do.
    public func flush() {
        eventLoop.assertInEventLoop()
        guard isOpen, !isBlocked, !holdsEvents, outgoing.bytes <= Self.waterMark.low else { return }
        // A socket that fails here is read to its end and closed before `send` returns. The turn that `write` has scheduled tells of it.
        holdsEvents = true
        defer { holdsEvents = false }
        send()
    }

    /// Notes that the peer has said Hello and proved its identity: the connection no longer counts as unidentified.
    public func markIdentified() {
        eventLoop.assertInEventLoop()
        identified()
    }

    /// Sends what was written, says goodbye and waits at most 2 s for the other side to do the same. From now on only `closed` is
    /// delivered.
    public func close() { leave(.orderly) }

    /// Closes at once; unsent bytes are lost.
    public func abort() { leave(.abrupt) }

    private func leave(_ goodbye: Goodbye) {
        eventLoop.preconditionInEventLoop()
        switch phase {
        case .open, .ended:
            phase = .closing(left: takesLongFrames ? Self.closeBytes : Self.strangerCloseBytes)
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

    /// Tells the delegate that a burst is over, and sends what it wrote meanwhile.
    private func endBurst() {
        if owesReadCompleted {
            owesReadCompleted = false
            receiver?.readCompleted(on: self)
        }
        send()
        sayGoodbye()
        unblock()
    }

    /// Hands what was written to the channel, once the kernel has taken all that was handed over before: a TLS record that waits in the
    /// channel holds a buffer of 16 KiB however short it is, while here many short answers become few long records. A goodbye waits for
    /// nothing.
    private func send() {
        guard !isSending || goodbye != nil else { return }
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
        let most = takesLongFrames ? Self.longWriteBytes : Self.shortWriteBytes
        var piece = piece
        while isTLS, piece.readableBytes > most, let part = piece.readSlice(length: most) {
            context.writeAndFlush(NIOAny(part), promise: nil)
        }
        context.writeAndFlush(NIOAny(piece), promise: taken)
    }

    private func sent() {
        isSending = false
        if outgoing.bytes > 0 { schedule() }
    }

    private func unblock() {
        guard isBlocked, !holdsEvents, isOpen, outgoing.bytes <= Self.waterMark.low, channel.isWritable else { return }
        isBlocked = false
        receiver?.writabilityChanged(on: self)
    }

    private func sayGoodbye() {
        guard let goodbye else { return }
        self.goodbye = nil
        guard let context else {
            // The channel was removed first.
            if case .closing = phase { end() }
            return
        }
        switch goodbye {
        case .abrupt:
            gate.abort()
        case .orderly:
            closeTimer = eventLoop.scheduleTask(in: Self.closeTime) { self.gate.abort() }
            // TLS waits for the answer to its close_notify; plain TCP for the other side's FIN.
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

    /// Whether the socket has to be read.
    private var wantsBytes: Bool {
        switch phase {
        case .open: reading && receiver != nil
        case .closing(let left): left > 0
        case .faulted, .ended, .closed: false
        }
    }

    private func deliver() {
        guard !holdsEvents, inbound.readableBytes > 0 else { return }
        holdsEvents = true
        defer { holdsEvents = false }
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

    /// Frees the buffer of an idle connection.
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
                // The remaining bytes are copied, so that the TLS handler has its buffer for itself again.
                inbound = inbound.readableBytes > 0 ? Self.allocator.buffer(buffer: inbound) : ByteBuffer()
            } else {
                inbound.writeImmutableBuffer(bytes)
                deliver()
                trim()
            }
        case .closing(let left):
            phase = .closing(left: left - bytes.readableBytes)
            // The other side keeps sending and does not react to the close.
            if left <= bytes.readableBytes { gate.abort() }
        case .faulted, .ended, .closed:
            break
        }
    }

    func burstEnded() { if holdsEvents { schedule() } else { endBurst() } }

    /// - Returns: whether the channel may read now; otherwise it reads later, when reading resumes.
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

    /// Ends the connection if the channel is gone and the last whole frame was delivered.
    private func endIfDelivered() {
        guard case .ended(let error) = phase, reading, receiver != nil, !holdsEvents else { return }
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
            // A delegate that is set later still learns of the end.
            reading = true
            phase = .ended(error)
            return
        }
        phase = .closed
        self.receiver = nil
        receiver.closed(on: self, error: error)
    }
}

/// A reason for the end of a connection besides errors of TLS and of the socket.
public enum ConnectionFault: Error, Sendable, CustomStringConvertible {
    /// The other side closed in the middle of a frame.
    case truncatedFrame

    public var description: String {
        switch self {
        case .truncatedFrame: "the connection ended in the middle of a frame"
        }
    }
}
