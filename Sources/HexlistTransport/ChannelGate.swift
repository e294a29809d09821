import NIOCore

/// The owner of a gate: decides about the channel and learns of its end.
protocol ChannelGateOwner: AnyObject {
    /// Called when the TCP connection is established.
    /// - Returns: whether it may stay.
    func activated(_ channel: any Channel) -> Bool
    /// Called with the first byte of an accepted connection. The handlers it needs stand behind the gate when this returns.
    func firstByte(_ byte: UInt8, on channel: any Channel) -> ChannelGate.FirstByte
    /// Called once, when the channel is gone.
    func ended()
}

/// The handler nearest to the socket, for the channel's whole life. Bounds what a stranger may send before the end of its handshake, holds
/// back a handshake whose turn has not come, and can close the channel at once, without TLS's close_notify.
final class ChannelGate: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    /// The most bytes of handshake from one side. A Hexlist peer's takes 2 KiB; BoringSSL alone would accept a chain of 100 KiB.
    static let handshakeBytes = 32 << 10

    enum Phase {
        /// No byte has arrived yet.
        case firstByte
        /// The first bytes wait until the handshake may begin; the socket is not read.
        case waiting(ByteBuffer)
        case handshaking(bytes: Int)
        case open
    }

    /// The decision about the first byte of an accepted connection.
    enum FirstByte {
        case handshake, frame, refused
        /// A handshake that begins when `beginHandshake` is called.
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

    /// Begins a handshake after `later`. Its handlers stand behind the gate.
    func beginHandshake() {
        guard case .waiting(let held) = phase, let context else { return }
        phase = .handshaking(bytes: 0)
        channelRead(context: context, data: wrapInboundOut(held))
        context.fireChannelReadComplete()
        try? context.channel.syncOptions?.setOption(.autoRead, value: true)
    }

    /// Closes the socket now: drops unsent bytes and does not wait for the other side.
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
        if case .waiting(var held) = phase {  // the other side closed: what it sent before is read to the end
            held.writeImmutableBuffer(unwrapInboundIn(data))
            phase = .waiting(held)
            if held.readableBytes > Self.handshakeBytes { context.close(promise: nil) }
            return
        }
        guard case .handshaking(let before) = phase else { return context.fireChannelRead(data) }
        let bytes = before + unwrapInboundIn(data).readableBytes
        phase = .handshaking(bytes: bytes)
        // The bytes are passed on before they are judged: those at the end of the handshake may come together with many frames.
        context.fireChannelRead(data)
        if case .handshaking = phase, bytes > Self.handshakeBytes { context.close(promise: nil) }
    }
}
