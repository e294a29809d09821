import HexlistModel
import HexlistStore
import Logging
import ServiceLifecycle

/// The HTTP listener of feed addresses on 127.0.0.1. It runs while there are feed addresses, always on the same port.
actor FeedListener {
    private struct Listener: Sendable {
        let port: Int
        let end: AsyncStream<Void>.Continuation
    }

    /// Maximum number of connections; further ones wait.
    private static let connections = 16
    /// The ports that are tried when the first feed address is added. They are below the usual ranges of ephemeral ports.
    private static let ports = 24_400...24_499

    private var state = ListenerState<Listener>()
    /// Whether the listener that was started last could bind its port.
    private var hasPort = false

    /// Returns the port. Starts the listener if needed.
    func port() async throws -> Int {
        if let listener = state.open { return listener.port }
        return try await withCheckedThrowingContinuation { state.wait($0) }.port
    }

    /// Ends the listener. Called after the last feed address was removed.
    func close() {
        guard let listener = state.open else { return }
        state.closed()
        listener.end.finish()
    }

    /// Runs the listener whenever there are feed addresses, until the daemon stops.
    func run(_ api: APIContext) async {
        if await Self.hasAddresses(api) { state.requestStart() }
        for await _ in state.startRequests.cancelOnGracefulShutdown() {
            do {
                try await open(api)
                // An address may have been added while the listener ended.
                if state.isClosed, await Self.hasAddresses(api) { state.requestStart() }
            } catch {
                api.logger.warning("feed addresses cannot be served", metadata: ["error": "\(error)"])
                state.failed((error as? HexlistError) ?? HexlistError(.internal, "Feeds cannot be served: \(error)."))
            }
        }
        state.stopped()
    }

    private static func hasAddresses(_ api: APIContext) async -> Bool {
        await (try? api.store.read { try !$0.feedAddresses().isEmpty }) ?? false
    }

    /// Serves on the port of the existing feed addresses or, if there are none yet, on the first free port of `ports`.
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

    /// Serves requests until `close()` or the end of the daemon.
    /// - Returns: `false` if the port cannot be bound.
    private func serve(_ api: APIContext, port: Int) async throws -> Bool {
        let (ended, end) = AsyncStream.makeStream(of: Void.self)
        let responder = FeedResponder(api: api, port: port)
        let server = LoopbackServer(port: port, connections: Self.connections, api: api) { request, _ in
            await responder.respond(to: request)
        }
        hasPort = false
        do {
            try await server.run(until: ended) { _ in await self.opened(Listener(port: port, end: end), api) }
        } catch {
            guard hasPort else { return false }
            state.closed()
            throw error
        }
        state.closed()
        return true
    }

    private func opened(_ listener: Listener, _ api: APIContext) async {
        hasPort = true
        do {
            try await api.store.setMeta([FeedAddress.portKey: String(listener.port)])
            state.opened(listener)
        } catch {
            state.failed(error)
            listener.end.finish()
        }
    }
}

/// Runs the listener of feed addresses as a service of the daemon.
struct FeedService: DaemonService {
    let api: APIContext

    func run() async throws { await api.feeds.run(api) }
}
