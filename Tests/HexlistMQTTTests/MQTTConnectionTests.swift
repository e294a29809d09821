import HexlistMQTT
import HexlistModel
import HexlistTransport
import NIOCore
import NIOPosix
import TestSupport
import Testing

/// A connection to a broker of this test that sends as much as it can. `MQTTRouteTests` use a real one.
@Suite("MQTT connection", .timeLimit(.minutes(5))) struct MQTTConnectionTests {
    @Test("a broker that sends without end has to wait while the owner is full; afterwards everything arrives, in order")
    func full() async throws {
        let broker = try await FloodingBroker.start()
        let owner = try await broker.loop.submit { try FullOwner(of: broker) }.get()
        // The broker can send no more when the buffers of both sockets are full. It may be blocked before the owner has read its SUBACK.
        try await eventually {
            try await broker.loop.submit { owner.isFull && (broker.isBlocked || broker.sent == FloodingBroker.messages) }.get()
        }
        let sent = try await broker.loop.submit { broker.sent }.get()
        #expect(sent > 0 && sent < FloodingBroker.messages)
        #expect(try await broker.loop.submit { owner.received }.get().isEmpty, "the owner is full since the login")
        try await broker.loop.submit { owner.connection?.setFull(false) }.get()
        try await eventually { try await broker.loop.submit { owner.received.count }.get() == FloodingBroker.messages }
        #expect(try await broker.loop.submit { owner.received }.get() == Array(1...UInt16(FloodingBroker.messages)))
        try await broker.loop.submit { owner.connection?.close() }.get()
        try await broker.stop()
    }

    @Test("a broker that accepts the connection but never answers TLS: the attempt ends, and its connection is closed")
    func silentTLS() async throws {
        let broker = try await SilentBroker.start()
        let address = try #require(MQTTAddress("mqtts://127.0.0.1:\(broker.port)"))
        let tls = try BrokerTLS(identity: nil, caFile: nil)
        try await broker.loop.submit {
            broker.client = MQTTConnection(
                to: address, tls: tls, session: MQTTSession(login: MQTTConnect(clientID: "c"), topic: "own", now: .now), on: broker.loop,
                connectTime: .milliseconds(200)
            ) { [unowned broker] in if case .ended(let fault, _, _) = $0 { broker.fault = fault } }
        }.get()
        try await eventually { try await broker.loop.submit { broker.fault != nil && broker.closed == 1 }.get() }
        #expect(try await broker.loop.submit { broker.fault }.get() == .silent)
        try await broker.stop()
    }
}

/// A server that accepts connections and sends nothing. Confined to its loop, on which its client runs as well.
private final class SilentBroker: @unchecked Sendable {
    let loop = MultiThreadedEventLoopGroup.singleton.next()
    private var listener: (any Channel)?
    var client: MQTTConnection?
    var fault: MQTTFault?
    /// Number of accepted connections that were closed.
    var closed = 0

    var port: Int { listener?.localAddress?.port ?? 0 }

    static func start() async throws -> SilentBroker {
        let broker = SilentBroker()
        let listener = try await ServerBootstrap(group: broker.loop)
            .childChannelInitializer { channel in
                channel.closeFuture.whenComplete { _ in broker.closed += 1 }
                return channel.eventLoop.makeSucceededVoidFuture()
            }
            .bind(host: "127.0.0.1", port: 0).get()
        try await broker.loop.submit { broker.listener = listener }.get()
        return broker
    }

    func stop() async throws { try await listener?.close() }
}

/// An owner of a connection that accepts no messages after the login. Confined to the loop of its broker.
private final class FullOwner: @unchecked Sendable {
    private(set) var connection: MQTTConnection?
    private(set) var received: [UInt16] = []
    private(set) var isFull = false

    init(of broker: FloodingBroker) throws {
        let address = try #require(MQTTAddress("mqtt://127.0.0.1:\(broker.port)"))
        let session = MQTTSession(login: MQTTConnect(clientID: "c"), topic: "own", now: .now)
        connection = MQTTConnection(to: address, tls: nil, session: session, on: broker.loop) { [unowned self] event in
            switch event {
            case .ready:
                connection?.setFull(true)
                isFull = true
            case .received(let id, _, _): received.append(id ?? 0)
            case .ended: connection = nil
            default: break
            }
        }
    }
}

/// A broker that accepts a login and a subscription, and then sends messages as fast as the connection takes them. Confined to its loop, on
/// which its client runs as well.
private final class FloodingBroker: ChannelInboundHandler, @unchecked Sendable {
    typealias InboundIn = ByteBuffer

    static let messages = 3_000
    private static let payload = [UInt8](repeating: 1, count: 8_000)

    let loop = MultiThreadedEventLoopGroup.singleton.next()
    private var listener: (any Channel)?
    private var packets = 0
    private(set) var sent = 0
    private(set) var isBlocked = false

    var port: Int { listener?.localAddress?.port ?? 0 }

    static func start() async throws -> FloodingBroker {
        let broker = FloodingBroker()
        let listener = try await ServerBootstrap(group: broker.loop)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(broker) }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        try await broker.loop.submit { broker.listener = listener }.get()
        return broker
    }

    func stop() async throws { try await listener?.close() }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = Array(unwrapInboundIn(data).readableBytesView)
        packets += 1
        switch packets {
        case 1: context.writeAndFlush(NIOAny(ByteBuffer(bytes: [0x20, 2, 0, 0])), promise: nil)
        case 2:
            context.writeAndFlush(NIOAny(ByteBuffer(bytes: [0x90, 3] + bytes[2...3] + [1])), promise: nil)
            flood(context)
        default: break
        }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) { flood(context) }

    private func flood(_ context: ChannelHandlerContext) {
        guard packets >= 2 else { return }
        while context.channel.isWritable, sent < Self.messages {
            sent += 1
            let publish = MQTTPublish(id: UInt16(sent), topic: "own", payload: Self.payload)
            context.writeAndFlush(NIOAny(ByteBuffer(bytes: MQTTPacket.publish(publish).bytes ?? [])), promise: nil)
        }
        isBlocked = !context.channel.isWritable
    }
}
