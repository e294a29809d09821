import NIOCore

/// The owner of a `ChannelGate`. It decides whether the connection is accepted.
protocol ChannelGateOwner: AnyObject {
    /// Called when the TCP connection is established.
    /// - Returns: `false` to close the connection.
    func activated(_ channel: any Channel) -> Bool
    /// Called with the first byte of an accepted connection. If the byte is accepted, the owner adds the handlers for the protocol to the
    /// pipeline, behind the gate, before it returns.
    func firstByte(_ byte: UInt8, on channel: any Channel) -> ChannelGate.FirstByte
    /// Called when a request of plain HTTP on the connection has authenticated itself with a key or a token.
    func authenticated()
    /// Called once, after the channel was closed.
    func ended()
}

extension ChannelGateOwner {
    func authenticated() {}
}

/// The first channel handler of a connection, until the channel is closed. It limits the bytes of the TLS handshake, delays handshakes that
/// exceed the rate limit, and can close the channel without the close_notify of TLS.
final class ChannelGate: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    /// Maximum bytes of a handshake that the peer may send. A Hexlist peer sends 2 KiB. BoringSSL alone would accept a certificate chain of
    /// 100 KiB.
    static let handshakeBytes = 32 << 10

    enum Phase {
        /// No byte was received yet.
        case firstByte
        /// The handshake is delayed. The first bytes are buffered, and the socket is not read.
        case waiting(ByteBuffer)
        case handshaking(bytes: Int)
        case open
    }

    /// The owner's decision about the first byte of an accepted connection.
    enum FirstByte {
        case handshake, frame, refused
        /// Accept the byte as the beginning of a handshake, and delay the handshake until `beginHandshake`.
        case later
    }

    private var phase: Phase
    private var owner: (any ChannelGateOwner)?
    private var context: ChannelHandlerContext?

    /// - Parameter owner: retained until the channel is closed.
    init(phase: Phase, owner: any ChannelGateOwner) {
        self.phase = phase
        self.owner = owner
    }

    func handshakeCompleted() { phase = .open }

    /// Starts a delayed handshake. The handlers for it have been added to the pipeline, behind the gate.
    func beginHandshake() {
        guard case .waiting(let held) = phase, let context else { return }
        phase = .handshaking(bytes: 0)
        channelRead(context: context, data: wrapInboundOut(held))
        context.fireChannelReadComplete()
        try? context.channel.syncOptions?.setOption(.autoRead, value: true)
    }

    /// Closes the socket immediately. Bytes that were not sent are lost.
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

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard event is PlainHTTPAuthenticated else { return context.fireUserInboundEventTriggered(event) }
        owner?.authenticated()
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
        if case .waiting(var held) = phase {  // the socket is not read, but NIO delivers bytes when the peer has closed
            held.writeImmutableBuffer(unwrapInboundIn(data))
            phase = .waiting(held)
            if held.readableBytes > Self.handshakeBytes { context.close(promise: nil) }
            return
        }
        guard case .handshaking(let before) = phase else { return context.fireChannelRead(data) }
        let bytes = before + unwrapInboundIn(data).readableBytes
        phase = .handshaking(bytes: bytes)
        // The limit is checked after the bytes were passed on. The end of the handshake and many frames may arrive together, and do not
        // exceed the limit.
        context.fireChannelRead(data)
        if case .handshaking = phase, bytes > Self.handshakeBytes { context.close(promise: nil) }
    }
}
