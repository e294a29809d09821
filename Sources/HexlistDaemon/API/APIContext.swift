import HexlistAPI
import HexlistModel
import HexlistNode
import HexlistStore
import Logging
import NIOCore

#if canImport(Glibc)
    import Glibc
#endif

/// The parts that the routes of the local API work with.
struct APIContext: Sendable {
    let keeper: NodeKeeper
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
    let backups = BackupTurn()
    let page = PageListener()

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

    /// An orderly end, as if SIGTERM had come.
    func endDaemon() {
        logger.critical("the node could not be started again")
        kill(getpid(), SIGTERM)
    }

    func status() async throws -> StatusShape {
        await node.finishWriting()
        let node = await node.status()
        let (counts, bytes) = try await store.read { (try $0.counts(), $0.storeBytes()) }
        let outbox = OutboxState.allCases.map { ($0, Int(clamping: counts.outbox[$0])) }
        return StatusShape(
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

    private func identity(conflict: String?) -> IdentityShape {
        if let conflict { return IdentityShape(state: .conflict, message: conflict) }
        guard keeper.isForeign else { return IdentityShape(state: .own) }
        let message =
            "This state folder was last used on another machine. If that one goes on running with it, run `hexlist id rotate` "
            + "here; otherwise `hexlist id keep`."
        return IdentityShape(state: .foreign, message: message)
    }
}
