import HexlistAPI
import HexlistModel
import HexlistNode
import HexlistStore
import HexlistSystem
import Logging
import NIOCore

#if canImport(Glibc)
    import Glibc
#endif

/// The parts of the daemon that the routes of the local API use.
struct APIContext: Sendable {
    let supervisor: NodeSupervisor
    let stateFolder: String
    let autostart: Autostart
    let desktop: DesktopSession
    let startedAt: ContinuousClock.Instant
    /// Schemes of links that may be opened.
    let openSchemes: [String]
    let configuration: EffectiveConfiguration
    let hooks: HookFaults
    let metrics: Metrics
    /// The event loop of the page's connections and of the keep-alive timers of streams. The node has another one.
    let eventLoop: any EventLoop
    let senders: PlainHTTPSenders
    let linkProbeSender: LinkProbeSender
    let logger: Logger
    /// Allows one import of hexes or of a roster at a time. An import delays other writes to the store, for about a second on a fast disk.
    /// It also needs space for its body: memory for a roster, a temporary file for hexes.
    let imports = RequestSlots(1)
    /// Allows one check of links at a time, so that two checks do not send requests to the same host.
    let checks = RequestSlots(1)
    let page = PageListener()
    let feeds = FeedListener()
    let titles = TitleSignal()

    /// The running node, which changes when the identity is rotated. Read it once per operation.
    var node: Node { supervisor.node }
    var store: HexStore { node.store }
    var guests: GuestInvitationRegistry { senders.guests }
    var drops: DropTokens { senders.drops }

    /// Returns Hexlist's own folders and files, which must never be offered to peers. If the configuration file is not in a folder
    /// `hexlist`, only the file is included, not its folder.
    func ownFolders() async -> [String] {
        let settings = HexlistPaths.folder(of: configuration.path)
        let cache = await node.configuration.files.cacheFolder
        // The store may be a symbolic link to another folder. Its files must not be opened for an offer: closing a second descriptor of a
        // file releases the POSIX locks that SQLite has on it.
        let store = ["", "-wal", "-shm"].map { self.store.path + $0 }
        return [stateFolder] + store + (cache.map { [$0] } ?? []) + [settings.hasSuffix("/hexlist") ? settings : configuration.path]
    }

    /// Waits for the import slot, which is free while no import of hexes or of a roster runs.
    /// - Throws: `alreadyRunning` after `importWait`; `badRequest` if the caller closes the connection.
    func importSlot() async throws -> RequestSlots.Slot {
        let slot = try await CallerConnection.whileOpen { try await imports.acquire(within: Self.importWait, on: eventLoop) }
        if let slot { return slot }
        throw HexlistError(
            .alreadyRunning, "Another import is still running.", hint: "Nothing was imported. Try again when the other one is done.")
    }

    /// Runs an import that holds the import slot, then returns freed memory to the system. Otherwise glibc would keep the memory for the
    /// thread that freed it, and the next import is likely to run on another thread.
    ///
    /// If the caller closes the connection before the transaction begins, the import is cancelled.
    func importing<Value: Sendable>(
        _ slot: RequestSlots.Slot, _ work: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let result: Result<Value, any Error>
        do { result = .success(try await CallerConnection.whileOpen(work)) } catch { result = .failure(error) }
        await node.outbox.finishWriting()  // the store frees the imported hexes after it has reported the result
        ProcessMemory.returnFreePages()
        withExtendedLifetime(slot) {}
        return try result.get()
    }

    /// Maximum time to wait for the import slot. Longer than the maximum time of an upload (`RequestInput.longestBody`) plus the import of the
    /// largest body, which takes seconds on a slow disk.
    private static let importWait = TimeAmount.minutes(10)

    /// Stops the daemon by sending SIGTERM to this process.
    func endDaemon() {
        logger.critical("the node could not be restarted")
        kill(getpid(), SIGTERM)
    }

    func status() async throws -> StatusJSON {
        await node.outbox.finishWriting()
        let node = await node.status()
        let (counts, bytes) = try await store.read { (try $0.counts(), $0.storeBytes()) }
        let outbox = OutboxState.allCases.map { ($0, Int(clamping: counts.outbox[$0])) }
        return StatusJSON(
            version: ProtocolLimits.appVersion, uuid: node.uuid, name: node.name, announce: node.isAnnounced, fingerprint: node.fingerprint,
            pid: Int(getpid()), port: node.port, uptimeSeconds: Int((ContinuousClock.now - startedAt).components.seconds),
            avahi: node.discovery, identity: identity(conflict: node.conflict), domains: node.domains, peers: node.peers,
            ghosts: node.ghosts,
            inbox: Int(clamping: counts.inbox), unread: Int(clamping: counts.unread), held: Int(clamping: counts.held),
            outbox: Dictionary(uniqueKeysWithValues: outbox),
            storeBytes: bytes,
            storeFault: store.fault?.message, configurationFault: configuration.fault?.message, hookFaults: hooks.all,
            routeProblems: node.routeProblems, stateFolder: stateFolder, search: SearchIndexState(behind: Int(clamping: counts.unindexed)),
            localSend: node.localSend, drops: drops.count)
    }

    private func identity(conflict: String?) -> IdentityJSON {
        if let conflict { return IdentityJSON(state: .conflict, message: conflict) }
        guard supervisor.isForeign else { return IdentityJSON(state: .own) }
        let message =
            "This state folder was last used on another machine. If that machine still uses it, run `hexlist id rotate` "
            + "here; otherwise `hexlist id keep`."
        return IdentityJSON(state: .foreign, message: message)
    }
}
