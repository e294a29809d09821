import HexlistAPI
import HexlistModel
import HexlistSystem
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import ServiceLifecycle

/// The listener of the page on 127.0.0.1. It is started by `POST /v1/web`, and ends 15 minutes after the last request of a page.
actor PageListener {
    private enum State {
        case closed
        /// Starting; callers of `invite()` wait.
        case opening([CheckedContinuation<PageServer, any Error>])
        case open(PageServer)
        case stopped
    }

    /// Maximum number of connections; further ones wait. A browser opens up to six.
    private static let connections = 32

    /// The files that `hexlist web --send` named for the page.
    nonisolated let drafts = PageDrafts()
    private var state = State.closed
    private let startRequests: AsyncStream<Void>
    private let requestStart: AsyncStream<Void>.Continuation

    init() { (startRequests, requestStart) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1)) }

    /// Makes an address that opens the page once. Starts the listener if needed.
    func invite() async throws -> PageAddress {
        while true {
            let page = try await openPage()
            if let invitation = page.invite() { return invitation }
            // This listener is ending and gives no invitations: the next round opens a new one.
            if case .open(let current) = state, current === page { state = .closed }
        }
    }

    private func openPage() async throws -> PageServer {
        switch state {
        case .open(let page): return page
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

    /// Starts a listener whenever one is requested, until the daemon stops. The first listener uses the same port as before the restart of
    /// the daemon, and restores the pages that were open then. If the port is taken, those pages expire.
    func run(_ api: APIContext) async {
        let file = SavedPagesFile(stateFolder: api.stateFolder)
        var saved = file.read()
        if saved != nil, case .closed = state {
            state = .opening([])
            requestStart.yield()
        }
        for await _ in startRequests.cancelOnGracefulShutdown() {
            do {
                try await serve(api, file, restoring: saved)
            } catch  where saved != nil {
                file.remove()
                api.logger.notice("open pages could not be restored", metadata: ["error": "\(error)"])
                if case .opening(let waiting) = state, !waiting.isEmpty { requestStart.yield() } else { state = .closed }
            } catch {
                api.logger.warning("the page cannot be served", metadata: ["error": "\(error)"])
                become(.closed, .failure(HexlistError(.internal, "The page cannot be served: \(error).")))
            }
            saved = nil
        }
        become(.stopped, .failure(HexlistError(.gone, "hexlistd is stopping.")))
    }

    private func serve(_ api: APIContext, _ file: SavedPagesFile, restoring saved: SavedPages? = nil) async throws {
        let save = { @Sendable (pages: SavedPages) in
            do throws(SystemError) {
                try file.write(pages)
            } catch {
                api.logger.notice("open pages will not survive a restart", metadata: ["error": "\(error)"])
            }
        }
        let page = PageServer(loop: api.eventLoop, restoring: saved, save: save)
        var logger = api.logger
        logger.logLevel = max(logger.logLevel, .notice)
        let router = LocalServer.router(api, admit: { _ in }).buildResponder()
        let gate = PageGate(server: page, api: router, configuration: api.configuration)
        let http = LocalServer.channel(settings: Settings.API(), logger: logger) { try await gate.respond(to: $0, context: $1) }
        let server = Server(
            childChannelSetup: OwnUserChannel(http: http, staysOnLoop: false) { channel in
                channel.eventLoop.makeCompletedFuture { try LoopbackPeer.user(of: channel) }
            },
            configuration: ServerConfiguration(
                address: .hostname("127.0.0.1", port: saved?.port ?? 0),
                availableConnectionsDelegate: MaximumAvailableConnections(Self.connections, logger: logger)),
            onServerRunning: { channel in
                page.opened(port: channel.localAddress?.port ?? 0)
                await self.become(.open(page), .success(page))
            }, eventLoopGroup: api.eventLoop, logger: logger)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await server.run() }
            group.addTask {
                for await _ in page.ended {}
                // After a cancellation the file stays: the daemon is stopping, and its next start restores the pages.
                if !Task.isCancelled { file.remove() }
                try await server.shutdownGracefully()
            }
            try await group.next()
            group.cancelAll()
            try await group.waitForAll()
        }
        if case .open(let current) = state, current === page { state = .closed }
    }

    /// Changes the state, and resumes waiting callers.
    private func become(_ new: State, _ result: Result<PageServer, any Error>) {
        if case .opening(let waiting) = state { for continuation in waiting { continuation.resume(with: result) } }
        state = new
    }
}

/// Runs the listener as a service of the daemon.
struct PageService: ServiceLifecycle.Service {
    let api: APIContext

    func run() async throws { await api.page.run(api) }
}
