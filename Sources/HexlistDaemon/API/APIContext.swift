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

/// The parts that the routes of the local API work with.
struct APIContext: Sendable {
    let keeper: NodeSupervisor
    /// The state folder.
    let stateFolder: String
    let startedAt: ContinuousClock.Instant
    /// Schemes of links that are offered for opening.
    let openSchemes: [String]
    let configuration: ConfigurationInForce
    let hooks: HookFaults
    let metrics: Metrics
    /// The loop of the page's connections, and of the ticks of replies that are streams; not the node's.
    let eventLoop: any EventLoop
    let logger: Logger
    let backups = BackupLock()
    /// One import or roster at a time. Each has a transaction that may take a second; a roster is in memory, an import in a temporary file.
    let imports = RequestSlots(1)
    let page = PageListener()
    let drafts = DraftBox()

    /// The one that runs now. Whoever uses it more than once for one thing keeps it.
    var node: Node { keeper.node }
    var store: HexStore { node.store }

    /// Folders and files of Hexlist's own of which nothing is offered. A configuration file elsewhere protects itself and no folder: that may
    /// be anything.
    func ownFolders() async -> [String] {
        let settings = HexlistPaths.folder(of: configuration.path)
        let cache = await node.configuration.files.cacheFolder
        // The store lies elsewhere if it is a link. A program that closes a descriptor of it gives up SQLite's locks, so nothing else opens it.
        let store = ["", "-wal", "-shm"].map { self.store.path + $0 }
        return [stateFolder] + store + (cache.map { [$0] } ?? []) + [settings.hasSuffix("/hexlist") ? settings : configuration.path]
    }

    /// Waits until no other import or roster runs.
    /// - Throws: `alreadyRunning` after `importWait`; `badRequest` if the caller closes the connection.
    func importSlot() async throws -> RequestSlots.Slot {
        let slot = try await CallerConnection.whileOpen { try await imports.acquire(within: Self.importWait, on: eventLoop) }
        if let slot { return slot }
        throw HexlistError(
            .alreadyRunning, "Another import is still running.", hint: "Nothing was imported. Try again when the other one is done.")
    }

    /// Runs an import that has the slot, and then returns freed memory to the system: glibc keeps it for the thread that had it, and the next
    /// import is likely to run on another.
    ///
    /// The work is cancelled if the caller leaves: nothing is imported for a caller that left before its transaction began.
    func importing<Value: Sendable>(
        _ slot: RequestSlots.Slot, _ work: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let result: Result<Value, any Error>
        do { result = .success(try await CallerConnection.whileOpen(work)) } catch { result = .failure(error) }
        await node.outbox.finishWriting()  // the store lets go of the hexes after it has reported them
        ProcessMemory.returnFreePages()
        withExtendedLifetime(slot) {}
        return try result.get()
    }

    /// An import of the largest size takes some seconds on a slow disk. Longer than `APIInput.longestBody`.
    private static let importWait = TimeAmount.minutes(10)

    /// An orderly end, as if SIGTERM had come.
    func endDaemon() {
        logger.critical("the node could not be started again")
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
            stateFolder: stateFolder, search: SearchState(behind: Int(clamping: counts.unindexed)))
    }

    private func identity(conflict: String?) -> IdentityJSON {
        if let conflict { return IdentityJSON(state: .conflict, message: conflict) }
        guard keeper.isForeign else { return IdentityJSON(state: .own) }
        let message =
            "This state folder was last used on another machine. If that machine still uses it, run `hexlist id rotate` "
            + "here; otherwise `hexlist id keep`."
        return IdentityJSON(state: .foreign, message: message)
    }
}
