import HexlistAPI
public import HexlistEventLoop
import HexlistFiles
public import HexlistModel
public import HexlistStore
public import HexlistTransport
public import HexlistWire
public import Logging
public import NIOCore

/// Transfers files between this machine and its peers: serves offered and shared files, fetches files of peers, and stores fetched files in
/// the pool.
///
/// The actor runs on the event loop of its node, so calls between the two do not change threads. Its state is in `FileServing`,
/// `FileFetching` and `FileConnections`. These classes are used on that event loop only, and their methods have this actor as an `isolated`
/// parameter. Blocking work runs on the file threads.
public actor FileTransfers: EventLoopActor {
    nonisolated let id: PeerID
    nonisolated let store: HexStore
    public nonisolated let eventLoop: any EventLoop
    public nonisolated let clocks: Clocks
    nonisolated let logger: Logger
    nonisolated let transport: PeerTransport
    nonisolated let node: any TransfersHost
    nonisolated let remotes: (any RemoteServices)?
    nonisolated let pool: FilePool
    nonisolated let uploads = Uploads()
    private nonisolated let executor: any SerialExecutor
    var configuration: TransfersConfiguration
    let serving: FileServing
    let fetching: FileFetching
    let connections = FileConnections()

    public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
    public var isStopping: Bool { node.isStopping }

    /// - Parameters:
    ///   - node: the node. Its executor is `eventLoop`.
    ///   - remotes: the rclone remotes; `nil` if there are none.
    public init(
        _ configuration: TransfersConfiguration, node: any TransfersHost, identity: Identity, store: HexStore, transport: PeerTransport,
        remotes: (any RemoteServices)?, on eventLoop: any EventLoop, _ clocks: Clocks, logger: Logger
    ) {
        self.configuration = configuration
        self.node = node
        id = identity.peerID
        self.store = store
        self.transport = transport
        self.remotes = remotes
        self.eventLoop = eventLoop
        self.clocks = clocks
        self.logger = logger
        executor = eventLoop.executor
        pool = FilePool(store, cacheFolder: configuration.cacheFolder)
        serving = FileServing(identity)
        fetching = FileFetching(on: eventLoop, clocks)
    }

    public nonisolated var offers: FileOffers { FileOffers(transfers: self) }
    public nonisolated var cache: FileCache { FileCache(transfers: self) }
    public nonisolated var shares: ShareRegistry { ShareRegistry(transfers: self) }
    public nonisolated var services: ServiceDirectory { ServiceDirectory(transfers: self) }

    // MARK: Start and stop

    /// Begins to accept connections on which peers fetch files.
    public func serve() { serving.start(self) }

    /// Begins to fetch files. The unfinished transfers in the store are added to the queue page by page, which bounds the memory.
    /// - Parameter peers: the peers from which files are fetched automatically.
    public func start(fetchingFrom peers: [PeerID]) async throws {
        fetching.start(self)
        var pooled: Set<PooledOrigin>?
        var after: Int64 = 0
        while true {
            let page = try await store.read { [after] in try $0.waitingTransfers(after: after) }
            guard let last = page.items.last else { break }
            let origins = if let pooled { pooled } else { try await store.read { try $0.pooledOrigins() } }
            pooled = origins
            fetching.add(page.items, pooled: origins, force: true, self)
            after = last.id
        }
        for peer in peers { fetchAutomatically(from: peer) }
    }

    /// Stops all transfers. Returns when no remote writes a file any more.
    public func stop() async {
        for copying in fetching.stop(self) { await copying.value }
    }

    /// Runs blocking work on the file threads.
    public nonisolated func onFileThread<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await transport.fileThreads.run(on: eventLoop, work).get()
    }
}

/// Handles events that the node reports on its event loop.
extension FileTransfers {
    /// Handles the beginning of a session with a peer that serves files.
    public nonisolated func peerCame(_ peer: PeerID) { assumeIsolated { $0.fetching.peerCame(peer, $0) } }

    /// Handles the end of the last session with a peer.
    public nonisolated func peerWent(_ peer: PeerID) {
        assumeIsolated { transfers in
            transfers.fetching.peerWent(peer, transfers)
            transfers.serving.sessionsEnded(transfers)
        }
    }

    /// Handles a peer that has become reachable, so that it can be dialled.
    public nonisolated func peerIsUp(_ peer: PeerID) { assumeIsolated { $0.fetching.kick(peer, $0) } }

    /// Handles the end of the trust in a peer: its connections are closed, and transfers from it are interrupted.
    public nonisolated func trustEnded(_ peer: PeerID) {
        assumeIsolated { transfers in
            transfers.serving.trustEnded(peer)
            transfers.connections.abortIdle(peer)
            transfers.fetching.trustEnded(peer)
        }
    }

    /// Handles the request of a peer to dial it, so that it can fetch files on the new connection (`FileDial`).
    /// - Parameters:
    ///   - key: the key that the peer proved.
    ///   - address: the address of the peer on its session.
    public nonisolated func dial(_ request: DialBack, for key: Fingerprint, at address: String) {
        assumeIsolated { $0.serving.dial(request, for: key, at: address, $0) }
    }

    /// Whether files are being fetched from the peer or served to it. Its session is then not idle.
    public nonisolated func hasWork(for peer: PeerID) -> Bool {
        assumeIsolated { $0.fetching.hasRequests(for: peer) || $0.serving.isBusy(with: peer) }
    }

    public nonisolated func reconfigure(_ configuration: TransfersConfiguration) { assumeIsolated { $0.configuration = configuration } }

    /// Ends running transfers from shares that their peers may no longer read. Called when shares, or the groups that may read them, may
    /// have changed.
    public nonisolated func sharesChanged() { assumeIsolated { $0.serving.sharesChanged($0) } }

    /// Deletes kept files whose hexes were deleted. Called after hexes were deleted.
    public nonisolated func hexesDeleted() { if pool.hasKeptFiles { cache.reconcile() } }

    /// Performs the hourly maintenance of the pool and of the copies of offered files.
    public nonisolated func tidy() {
        cache.tidy(assumeIsolated { $0.configuration })
        offers.tidyCopies()
    }
}
