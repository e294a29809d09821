import NIOCore
import NIOPosix
import NIOSSL
import NIOTLS
import Synchronization

/// A client or server that is not a Hexlist peer. It sends given bytes and records received ones.
final class RawPeer: ChannelInboundHandler, Sendable {
    typealias InboundIn = ByteBuffer

    enum Event: Sendable, Equatable {
        case bytes([UInt8])
        case handshake(alpn: String?)
        case error(String)
        case closed
    }

    let events = Inbox<Event>()
    private let greeting: [UInt8]

    init(greeting: [UInt8] = []) { self.greeting = greeting }

    func channelActive(context: ChannelHandlerContext) {
        if !greeting.isEmpty { context.writeAndFlush(NIOAny(context.channel.allocator.buffer(bytes: greeting)), promise: nil) }
        context.fireChannelActive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        events.put(.bytes(Array(unwrapInboundIn(data).readableBytesView)))
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case TLSUserEvent.handshakeCompleted(let alpn)? = event as? TLSUserEvent { events.put(.handshake(alpn: alpn)) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        events.put(.error("\(error)"))
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) { events.put(.closed) }

    /// All bytes up to the end.
    func all() async throws -> [Event] {
        var all: [Event] = []
        while true {
            let event = try await events.next()
            all.append(event)
            if event == .closed { return all }
        }
    }

    /// The bytes received before the end.
    func bytes() async throws -> [UInt8] {
        try await all().flatMap { event -> [UInt8] in if case .bytes(let bytes) = event { bytes } else { [] } }
    }

    // MARK: Creation

    static func connect(to port: UInt16, greeting: [UInt8] = []) async throws -> (RawPeer, any Channel) {
        let peer = RawPeer(greeting: greeting)
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(peer) }
            }
            .connect(host: "127.0.0.1", port: Int(port)).get()
        return (peer, channel)
    }

    static func connect(to port: UInt16, tls: TLSConfiguration) async throws -> (RawPeer, any Channel) {
        let peer = RawPeer()
        let context = try NIOSSLContext(configuration: tls)
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(NIOSSLClientHandler(context: context, serverHostname: nil))
                    try channel.pipeline.syncOperations.addHandler(peer)
                }
            }
            .connect(host: "127.0.0.1", port: Int(port)).get()
        return (peer, channel)
    }

    /// A server that accepts one connection after another, each as a `RawPeer`.
    /// - Parameter certificates: receives each client's certificate; `nil` requests none.
    static func serve(
        greeting: [UInt8] = [], tls: TLSConfiguration? = nil, certificates: Inbox<[NIOSSLCertificate]>? = nil
    ) async throws -> RawServer {
        let accepted = Inbox<RawPeer>()
        let context = try tls.map { try NIOSSLContext(configuration: $0) }
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    if let context, let certificates {
                        let tls = NIOSSLServerHandler(context: context) { shown, promise in
                            certificates.put(shown)
                            promise.succeed(.certificateVerified)
                        }
                        try channel.pipeline.syncOperations.addHandler(tls)
                    } else if let context {
                        try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: context))
                    }
                    let peer = RawPeer(greeting: greeting)
                    try channel.pipeline.syncOperations.addHandler(peer)
                    accepted.put(peer)
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let port = channel.localAddress?.port.flatMap(UInt16.init(exactly:)) ?? 0
        return RawServer(channel: channel, accepted: accepted, port: port)
    }
}

struct RawServer: Sendable {
    var channel: any Channel
    var accepted: Inbox<RawPeer>
    var port: UInt16
}
