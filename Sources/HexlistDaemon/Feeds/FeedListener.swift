import HexlistAPI
import HexlistModel
import HexlistStore
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import ServiceLifecycle

/// The HTTP listener of feed addresses on 127.0.0.1. It runs while there are feed addresses, always on the same port.
actor FeedListener {
    private enum State {
        case closed
        /// Starting; callers of `port()` wait.
        case opening([CheckedContinuation<Int, any Error>])
        case open(port: Int, end: AsyncStream<Void>.Continuation)
        case stopped
    }

    /// Maximum number of connections; further ones wait.
    private static let connections = 16
    /// Ports that are tried for the first feed address. They are below the usual ranges of ephemeral ports.
    private static let ports = 24_400...24_499

    private var state = State.closed
    /// Whether the current listener is bound to its port.
    private var hasPort = false
    private let startRequests: AsyncStream<Void>
    private let requestStart: AsyncStream<Void>.Continuation

    init() { (startRequests, requestStart) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1)) }

    /// Returns the port. Starts the listener if needed.
    func port() async throws -> Int {
        switch state {
        case .open(let port, _): return port
        case .stopped: throw HexlistError(.gone, "hexlistd is stopping.")
        case .closed:
            state = .opening([])
            requestStart.yield()
        case .opening: break
        }
        return try await withCheckedThrowingContinuation { continuation in
            guard case .opening(let others) = state else {
                return continuation.resume(throwing: HexlistError(.gone, "hexlistd is stopping."))
            }
            state = .opening(others + [continuation])
        }
    }

    /// Ends the listener, after the last feed address was removed.
    func close() {
        guard case .open(_, let end) = state else { return }
        state = .closed
        end.finish()
    }

    /// Runs the listener while there are addresses, until the daemon stops.
    func run(_ api: APIContext) async {
        if case .closed = state, await Self.hasAddresses(api) {
            state = .opening([])
            requestStart.yield()
        }
        for await _ in startRequests.cancelOnGracefulShutdown() {
            do {
                try await open(api)
                // An address that was added while the listener ended.
                if case .closed = state, await Self.hasAddresses(api), case .closed = state {
                    state = .opening([])
                    requestStart.yield()
                }
            } catch {
                api.logger.warning("feed addresses cannot be served", metadata: ["error": "\(error)"])
                become(.closed, .failure((error as? HexlistError) ?? HexlistError(.internal, "Feeds cannot be served: \(error).")))
            }
        }
        become(.stopped, .failure(HexlistError(.gone, "hexlistd is stopping.")))
    }

    private static func hasAddresses(_ api: APIContext) async -> Bool {
        await (try? api.store.read { try !$0.feedAddresses().isEmpty }) ?? false
    }

    /// Serves on the port of the existing feed addresses, or, if there are none yet, on the first free one.
    private func open(_ api: APIContext) async throws {
        let stored = await Self.hasAddresses(api) ? try await api.store.read { try $0.meta(FeedAddress.portKey) }.flatMap { Int($0) } : nil
        for port in stored.map({ $0...$0 }) ?? Self.ports where try await serve(api, port: port) { return }
        throw HexlistError(
            .portInUse,
            stored.map { "Another program uses port \($0), which the feed addresses have." } ?? "No port for feed addresses is free.",
            hint: stored == nil
                ? "They need one of \(Self.ports.lowerBound) to \(Self.ports.upperBound)."
                : "End that program and restart hexlistd, or, for another port, remove all feed addresses: `hexlist feed --list`.")
    }

    /// Serves until `close()` or the end of the daemon.
    /// - Returns: `false` if the port cannot be bound.
    private func serve(_ api: APIContext, port: Int) async throws -> Bool {
        let (ended, end) = AsyncStream.makeStream(of: Void.self)
        var logger = api.logger
        logger.logLevel = max(logger.logLevel, .notice)
        let gate = FeedGate(api: api, port: port)
        let http = LocalServer.channel(settings: Settings.API(), logger: logger) { request, _ in await gate.respond(to: request) }
        let server = Server(
            childChannelSetup: OwnUserChannel(http: http, staysOnLoop: false) { channel in
                channel.eventLoop.makeCompletedFuture { try LoopbackPeer.user(of: channel) }
            },
            configuration: ServerConfiguration(
                address: .hostname("127.0.0.1", port: port),
                availableConnectionsDelegate: MaximumAvailableConnections(Self.connections, logger: logger)),
            onServerRunning: { _ in await self.opened(port, end, api) }, eventLoopGroup: api.eventLoop, logger: logger)
        hasPort = false
        do {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await server.run() }
                group.addTask {
                    for await _ in ended {}
                    try await server.shutdownGracefully()
                }
                try await group.next()
                group.cancelAll()
                try await group.waitForAll()
            }
        } catch {
            guard hasPort else { return false }
            if case .open = state { state = .closed }
            throw error
        }
        if case .open = state { state = .closed }
        return true
    }

    private func opened(_ port: Int, _ end: AsyncStream<Void>.Continuation, _ api: APIContext) async {
        hasPort = true
        do {
            try await api.store.setMeta([FeedAddress.portKey: String(port)])
            become(.open(port: port, end: end), .success(port))
        } catch {
            become(.open(port: port, end: end), .failure(error))
            end.finish()
        }
    }

    /// Changes the state, and resumes waiting callers.
    private func become(_ new: State, _ result: Result<Int, any Error>) {
        if case .opening(let waiting) = state { for continuation in waiting { continuation.resume(with: result) } }
        state = new
    }
}

/// Runs the listener as a service of the daemon.
struct FeedService: ServiceLifecycle.Service {
    let api: APIContext

    func run() async throws { await api.feeds.run(api) }
}
