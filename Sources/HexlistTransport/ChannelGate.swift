import NIOCore

/// What a gate asks and tells about its channel.
protocol ChannelGateOwner: AnyObject {
    /// The TCP connection is there.
    /// - Returns: whether it may stay.
    func activated(_ channel: any Channel) -> Bool
    /// The first byte of an accepted connection came. The handlers it needs stand behind the gate when this returns.
    func firstByte(_ byte: UInt8, on channel: any Channel) -> ChannelGate.FirstByte
    /// Once, when the channel is gone.
    func ended()
}

/// The handler nearest to the socket, for as long as the channel lives: bounds what a stranger may send before its handshake
/// is done, holds back a handshake whose turn has not come, and is where a channel is closed at once, without TLS's goodbye.
final class ChannelGate: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    /// Bytes of handshake one side may send. A Hexlist peer's takes 2 KiB; BoringSSL alone would take a chain of 100 KiB.
    static let handshakeBytes = 32 << 10

    enum Phase {
        /// Nothing has come yet.
        case firstByte
        /// What came first waits until the handshake may begin; the socket is not read.
        case waiting(ByteBuffer)
        case handshaking(bytes: Int)
        case open
    }

    /// What the first byte of an accepted connection is taken for.
    enum FirstByte {
        case handshake, frame, refused
        /// A handshake, when `beginHandshake` is called.
        case later
    }

    private var phase: Phase
    private var owner: (any ChannelGateOwner)?
    private var context: ChannelHandlerContext?

    /// - Parameter owner: held until the channel is gone.
    init(phase: Phase, owner: any ChannelGateOwner) {
        self.phase = phase
        self.owner = owner
    }

    func handshakeCompleted() { phase = .open }

    /// After `later`. The handlers it needs stand behind the gate.
    func beginHandshake() {
        guard case .waiting(let held) = phase, let context else { return }
        phase = .handshaking(bytes: 0)
        channelRead(context: context, data: wrapInboundOut(held))
        context.fireChannelReadComplete()
        try? context.channel.syncOptions?.setOption(.autoRead, value: true)
    }

    /// Closes the socket now: nothing that waits is sent, nobody is waited for.
    func abort() { context?.close(promise: nil) }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        endOwner()
    }

    func channelActive(context: ChannelHandlerContext) {
        guard let owner, owner.activated(context.channel) else { return context.close(promise: nil) }
        context.fireChannelActive()
    }

    func channelInactive(context: ChannelHandlerContext) {
        context.fireChannelInactive()
        endOwner()
    }

    private func endOwner() {
        let owner = owner
        self.owner = nil
        owner?.ended()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if case .firstByte = phase {
            let buffer = unwrapInboundIn(data)
            guard let byte = buffer.getInteger(at: buffer.readerIndex, as: UInt8.self) else { return }
            switch owner?.firstByte(byte, on: context.channel) ?? .refused {
            case .handshake: phase = .handshaking(bytes: 0)
            case .frame: phase = .open
            case .refused: return context.close(promise: nil)
            case .later:
                phase = .waiting(buffer)
                try? context.channel.syncOptions?.setOption(.autoRead, value: false)
                return
            }
        }
        if case .waiting(var held) = phase {  // the other side hung up: what it sent before is read to the end
            held.writeImmutableBuffer(unwrapInboundIn(data))
            phase = .waiting(held)
            if held.readableBytes > Self.handshakeBytes { context.close(promise: nil) }
            return
        }
        guard case .handshaking(let before) = phase else { return context.fireChannelRead(data) }
        let bytes = before + unwrapInboundIn(data).readableBytes
        phase = .handshaking(bytes: bytes)
        // TLS takes them before this returns, and what comes together with the end of the handshake may be more.
        context.fireChannelRead(data)
        if case .handshaking = phase, bytes > Self.handshakeBytes { context.close(promise: nil) }
    }
}
