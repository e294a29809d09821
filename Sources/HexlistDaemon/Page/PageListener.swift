import HexlistAPI
import HexlistModel
import HexlistSystem
import Logging
import NIOCore
import ServiceLifecycle

/// The listener of the page on 127.0.0.1. It is started by `POST /v1/web`, and ends 15 minutes after the last request of a page.
actor PageListener {
    /// Maximum number of connections; further ones wait. A browser opens up to six.
    private static let connections = 32

    /// The files that `hexlist web --send` named for the page.
    nonisolated let drafts = PageDrafts()
    private var state = ListenerState<PageListenerState>()

    /// Makes an address that opens the page once. Starts the listener if needed.
    func invite() async throws -> PageAddress {
        while true {
            let page = try await openPage()
            if let invitation = page.invite() { return invitation }
            // This listener is ending, and makes no further addresses. The next iteration starts a new one.
            closed(page)
        }
    }

    private func openPage() async throws -> PageListenerState {
        if let page = state.open { return page }
        return try await withCheckedThrowingContinuation { state.wait($0) }
    }

    /// Starts a listener whenever one is requested, until the daemon stops. If pages were open before a restart of the daemon, the first
    /// listener uses the same port as before, and restores these pages. If the port is in use, the pages expire.
    func run(_ api: APIContext) async {
        let file = SavedPagesFile(stateFolder: api.stateFolder)
        var saved = file.read()
        if saved != nil { state.requestStart() }
        for await _ in state.startRequests.cancelOnGracefulShutdown() {
            do {
                try await serve(api, file, restoring: saved)
            } catch  where saved != nil {
                file.remove()
                api.logger.notice("open pages of the browser could not be restored", metadata: ["error": "\(error)"])
                state.startAgainIfAwaited()
            } catch {
                api.logger.warning("the page cannot be served", metadata: ["error": "\(error)"])
                state.failed(HexlistError(.internal, "The page cannot be served: \(error)."))
            }
            saved = nil
        }
        state.stopped()
    }

    private func serve(_ api: APIContext, _ file: SavedPagesFile, restoring saved: SavedPages? = nil) async throws {
        let save = { @Sendable (pages: SavedPages) in
            do throws(SystemError) {
                try file.write(pages)
            } catch {
                api.logger.notice("open pages will not survive a restart", metadata: ["error": "\(error)"])
            }
        }
        let page = PageListenerState(loop: api.eventLoop, restoring: saved, save: save)
        let router = LocalServer.router(api, admit: { _ in }).buildResponder()
        let gate = PageGate(server: page, api: router, configuration: api.configuration)
        let server = LoopbackServer(port: saved?.port ?? 0, connections: Self.connections, api: api) {
            try await gate.respond(to: $0, context: $1)
        }
        try await server.run(until: page.ended) {
            // If the task is cancelled, the daemon is stopping. Then the file stays, and the next start restores the pages.
            if !Task.isCancelled { file.remove() }
        } onOpen: { channel in
            page.opened(port: channel.localAddress?.port ?? 0)
            await self.opened(page)
        }
        closed(page)
    }

    private func opened(_ page: PageListenerState) { state.opened(page) }

    /// Records that a listener has ended, unless another one has replaced it.
    private func closed(_ page: PageListenerState) { if state.open === page { state.closed() } }
}

/// Runs the listener of the page as a service of the daemon.
struct PageService: DaemonService {
    let api: APIContext

    func run() async throws { await api.page.run(api) }
}
