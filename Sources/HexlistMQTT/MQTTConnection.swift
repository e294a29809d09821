import HexlistModel
package import HexlistTransport
package import NIOCore
import NIOPosix
import NIOSSL
import NIOTLS

#if canImport(Glibc)
    import Glibc
#endif

/// Connects to a broker, and carries out the actions of an `MQTTSession` on this connection.
///
/// Every member is used on `eventLoop` only; that makes the class `Sendable`. Callbacks are called on this loop.
package final class MQTTConnection: @unchecked Sendable {
    package typealias Instant = ContinuousClock.Instant

    package enum Event: Sendable {
        case ready
        case received(id: UInt16?, topic: String, payload: [UInt8])
        /// A message that is too long for an envelope arrived; it was acknowledged without being read.
        case skipped
        /// The broker acknowledged the publish with this number.
        case accepted(Int)
        /// The broker did not acknowledge the publish with this number in time.
        case expired(Int)
        /// The connection ended. This is the last event.
        /// - Parameters:
        ///   - inFlight: the numbers of the publishes that were sent but not acknowledged.
        ///   - unsent: the numbers of the publishes that were not sent.
        case ended(MQTTFault, inFlight: [Int], unsent: [Int])
    }

    private let eventLoop: any EventLoop
    private var session: MQTTSession
    private let onEvent: @Sendable (Event) -> Void
    private var channel: (any Channel)?
    /// The channel handler; `nil` until the TLS handshake is complete.
    private var handler: MQTTHandler?
    /// Whether packets that arrived in one read are being handled. Their replies are flushed together.
    private var isInBatch = false
    private var timer: Scheduled<Void>?
    private var isEnded = false
    /// The time of the successful login; `nil` before it.
    package private(set) var loggedInAt: Instant?

    /// Starts connecting. `onEvent` is called until `Event.ended`.
    /// - Parameters:
    ///   - tls: `nil` for a connection without encryption.
    ///   - connectTime: the timeout for TCP and TLS together.
    package init(
        to address: MQTTAddress, tls: BrokerTLS?, session: MQTTSession, on eventLoop: any EventLoop,
        connectTime: TimeAmount = .seconds(30), onEvent: @escaping @Sendable (Event) -> Void
    ) {
        self.eventLoop = eventLoop
        self.session = session
        self.onEvent = onEvent
        let bootstrap = ClientBootstrap(group: eventLoop).connectTimeout(connectTime)
            .channelOption(.socketOption(.so_keepalive), value: 1)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    if let tls {
                        let name = IPAddress(address.host) == nil ? address.host : nil
                        try channel.pipeline.syncOperations.addHandler(NIOSSLClientHandler(context: tls.context, serverHostname: name))
                    }
                    try channel.pipeline.syncOperations.addHandler(MQTTHandler(self, waitsForTLS: tls != nil))
                }
            }
        timer = eventLoop.scheduleTask(in: connectTime) { [weak self] in self?.end(.silent) }
        bootstrap.connect(host: address.host, port: address.port).whenComplete { result in
            switch result {
            case .success(let channel) where self.isEnded: channel.close(promise: nil)
            case .success(let channel): self.channel = channel  // the TLS handshake follows
            case .failure(let error): self.end(.failed(Self.text(of: error)))
            }
        }
    }

    /// Whether reading from the socket is paused.
    private var isReadingPaused = false

    /// Sets whether the owner has no room for more messages. If so, the socket is read only while a reply of the broker is awaited. The
    /// owner need not acknowledge messages that arrive meanwhile: the broker sends them again on the next connection.
    package func setFull(_ isFull: Bool) {
        guard session.isFull != isFull else { return }
        session.isFull = isFull
        updateReading()
    }

    /// Publishes a message with QoS 1 now, or when the window has room.
    /// - Parameter number: identifies the publish in the events `accepted`, `expired` and `ended`.
    package func publish(_ payload: [UInt8], to topic: String, number: Int) {
        perform(session.publish(payload, to: topic, number: number, now: .now))
    }

    /// Acknowledges a received message.
    package func acknowledge(_ id: UInt16) { perform(session.acknowledge(id, now: .now)) }

    /// Sends DISCONNECT, and ends the connection. Reports `Event.ended` before it returns.
    package func close() {
        if handler != nil { channel?.writeAndFlush(ByteBuffer(bytes: MQTTPacket.disconnect.bytes ?? []), promise: nil) }
        end(.closed)
    }

    // MARK: Channel

    /// Begins the session, after the TLS handshake if there is one.
    fileprivate func opened(_ channel: any Channel, _ handler: MQTTHandler) {
        guard !isEnded else { return channel.close(promise: nil) }
        (self.channel, self.handler) = (channel, handler)
        perform(session.begin(now: .now))
    }

    /// Whether another packet may be handled now.
    fileprivate var reads: Bool { !isEnded && !session.isReadingPaused }

    fileprivate func received(_ packet: MQTTPacket) {
        guard !isEnded else { return }
        let wasLoggedIn = session.isLoggedIn
        let actions = session.received(packet, now: .now)
        if !wasLoggedIn, session.isLoggedIn { loggedInAt = .now }
        perform(actions)
    }

    /// Handles the packets of one read, and flushes the replies to them together.
    fileprivate func batch(_ body: () -> Void) {
        isInBatch = true
        body()
        isInBatch = false
        updateReading()
        channel?.flush()
        updateWritability()
    }

    fileprivate func updateWritability() {
        session.isWritable = channel?.isWritable ?? true
        updateReading()
    }

    private func updateReading() {
        guard !isEnded, !isInBatch, session.isReadingPaused != isReadingPaused else { return }
        isReadingPaused.toggle()
        try? channel?.syncOptions?.setOption(.autoRead, value: !isReadingPaused)
        // Handles packets that arrived before the pause. This happens in the next tick, because the owner may be in the middle of another
        // event.
        if !isReadingPaused { eventLoop.execute { [weak self] in self?.handler?.handlePackets() } }
    }

    fileprivate func failed(_ error: any Error) { end(error as? MQTTFault ?? .failed(Self.text(of: error))) }

    private func perform(_ actions: [MQTTSession.Action]) {
        var hasWritten = false
        for action in actions {
            switch action {
            case .send(.publish(let publish)):
                // The payload is long, so it is not copied into a packet first.
                channel?.write(ByteBuffer(bytes: publish.head), promise: nil)
                channel?.write(ByteBuffer(bytes: publish.payload), promise: nil)
                hasWritten = true
            case .send(let packet):
                channel?.write(ByteBuffer(bytes: packet.bytes ?? []), promise: nil)
                hasWritten = true
            case .ready: onEvent(.ready)
            case .received(let id, let topic, let payload): onEvent(.received(id: id, topic: topic, payload: payload))
            case .skipped: onEvent(.skipped)
            case .accepted(let number): onEvent(.accepted(number))
            case .expired(let number): onEvent(.expired(number))
            case .close(let fault): return end(fault)
            }
        }
        if hasWritten, !isInBatch { channel?.flush() }
        if hasWritten { session.isWritable = channel?.isWritable ?? true }
        setTimer()
        updateReading()
    }

    private func setTimer() {
        timer?.cancel()
        timer = nil
        guard !isEnded, let next = session.nextTick else { return }
        timer = eventLoop.scheduleTask(in: TimeAmount(max(.zero, next - .now))) { [weak self] in
            guard let self, !self.isEnded else { return }
            self.perform(self.session.tick(now: .now))
        }
    }

    fileprivate func end(_ fault: MQTTFault) {
        guard !isEnded else { return }
        isEnded = true
        timer?.cancel()
        let inFlight = session.numbersInFlight
        let unsent = session.unfinished.filter { !inFlight.contains($0) }
        session.end()
        channel?.close(promise: nil)
        (channel, handler) = (nil, nil)
        onEvent(.ended(fault, inFlight: inFlight, unsent: unsent))
    }

    private static func text(of error: any Error) -> String {
        switch error {
        case let error as NIOConnectionError:
            // If the host has several addresses, each one has its own error; the last one is usually the clearest.
            error.connectionErrors.last.map { text(of: $0.error) } ?? "its name cannot be resolved"
        case let error as IOError where error.errnoCode == ECONNREFUSED: "connection refused"
        case let error as IOError: String(cString: strerror(error.errnoCode))
        case ChannelError.connectTimeout: "no answer"
        case is NIOSSLError, is BoringSSLError, is NIOSSLExtraError: "TLS failed: \(error)"
        default: "\(error)"
        }
    }
}

/// Passes the bytes of a channel to an `MQTTConnection`.
private final class MQTTHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let connection: MQTTConnection
    private let waitsForTLS: Bool
    private var decoder = MQTTPacketDecoder()

    init(_ connection: MQTTConnection, waitsForTLS: Bool) {
        self.connection = connection
        self.waitsForTLS = waitsForTLS
    }

    func channelActive(context: ChannelHandlerContext) {
        if !waitsForTLS { connection.opened(context.channel, self) }
        context.fireChannelActive()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if waitsForTLS, case .handshakeCompleted? = event as? TLSUserEvent { connection.opened(context.channel, self) }
        context.fireUserInboundEventTriggered(event)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        decoder.feed(unwrapInboundIn(data).readableBytesView)
        handlePackets()
    }

    /// Handles the packets that have arrived. While reading is paused, packets stay in the decoder. Its buffer does not grow meanwhile,
    /// except by the bytes of the last read: at most about 100 KiB.
    func handlePackets() {
        connection.batch {
            do {
                while connection.reads, let packet = try decoder.next() { connection.received(packet) }
            } catch {
                connection.failed(error)
            }
        }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        connection.updateWritability()
        context.fireChannelWritabilityChanged()
    }

    func channelInactive(context: ChannelHandlerContext) {
        connection.end(.closed)
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // The broker closed the connection without an orderly end of TLS.
        if let error = error as? NIOSSLError, case .uncleanShutdown = error { return connection.end(.closed) }
        if let error = error as? IOError, error.errnoCode == ECONNRESET { return connection.end(.closed) }
        connection.failed(error)
    }
}
