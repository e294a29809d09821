import HexlistAPI
import HexlistModel
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import ServiceLifecycle

/// The page's listener on 127.0.0.1. There is none until `POST /v1/web` asks for it, and none 15 minutes after the last page.
actor PageListener {
    private enum State {
        case closed
        /// The callers of `invite()` wait for the listener, or for why there is none.
        case opening([CheckedContinuation<PageServer, any Error>])
        case open(PageServer)
        case stopped
    }

    /// Connections at a time; the next ones wait. Browsers open six.
    private static let connections = 32

    private var state = State.closed
    private let wishes: AsyncStream<Void>
    private let wish: AsyncStream<Void>.Continuation

    init() { (wishes, wish) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1)) }

    /// A secret for one opening of the page, on a listener that is begun where there is none.
    func invite() async throws -> PageInvitation {
        while true {
            let desk = try await desk()
            if let invitation = desk.invite() { return invitation }
            // The listener is ending just now.
            if case .open(let current) = state, current === desk { state = .closed }
        }
    }

    private func desk() async throws -> PageServer {
        switch state {
        case .open(let desk): return desk
        case .stopped: throw HexlistError(.gone, "hexlistd is stopping.")
        case .closed:
            state = .opening([])
            wish.yield()
        case .opening: break
        }
        return try await withCheckedThrowingContinuation { told in
            guard case .opening(let others) = state else { return told.resume(throwing: HexlistError(.gone, "hexlistd is stopping.")) }
            state = .opening(others + [told])
        }
    }

    /// Listens whenever it is wished for, until the daemon stops.
    func run(_ api: APIContext) async {
        for await _ in wishes.cancelOnGracefulShutdown() {
            do {
                try await serve(api)
            } catch {
                api.logger.warning("the page cannot be served", metadata: ["error": "\(error)"])
                become(.closed, .failure(HexlistError(.internal, "The page cannot be served: \(error).")))
            }
        }
        become(.stopped, .failure(HexlistError(.gone, "hexlistd is stopping.")))
    }

    private func serve(_ api: APIContext) async throws {
        let desk = PageServer(loop: api.eventLoop)
        var logger = api.logger
        logger.logLevel = max(logger.logLevel, .notice)
        let gate = PageGate(desk: desk, api: LocalServer.router(api, admit: { _ in }).buildResponder())
        let http = LocalServer.channel(settings: Settings.API(), logger: logger) { try await gate.respond(to: $0, context: $1) }
        let server = Server(
            childChannelSetup: OwnUserChannel(http: http, staysOnLoop: false) { channel in
                channel.eventLoop.makeCompletedFuture { try LoopbackPeer.user(of: channel) }
            },
            configuration: ServerConfiguration(
                address: .hostname("127.0.0.1", port: 0),
                availableConnectionsDelegate: MaximumAvailableConnections(Self.connections, logger: logger)),
            onServerRunning: { channel in
                desk.opened(port: channel.localAddress?.port ?? 0)
                await self.become(.open(desk), .success(desk))
            }, eventLoopGroup: api.eventLoop, logger: logger)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await server.run() }
            group.addTask {
                for await _ in desk.ended {}
                try await server.shutdownGracefully()
            }
            try await group.next()
            group.cancelAll()
            try await group.waitForAll()
        }
        if case .open(let current) = state, current === desk { state = .closed }
    }

    /// Changes the state, and tells those who waited.
    private func become(_ new: State, _ result: Result<PageServer, any Error>) {
        if case .opening(let waiting) = state { for told in waiting { told.resume(with: result) } }
        state = new
    }
}

/// The listener as a part of the daemon.
struct PageService: ServiceLifecycle.Service {
    let api: APIContext

    func run() async throws { await api.page.run(api) }
}
