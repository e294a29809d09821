import HexlistAPI
import HexlistDelivery
public import HexlistDiscovery
public import HexlistEventLoop
public import HexlistModel
import HexlistSession
public import HexlistStore
public import HexlistTransfers
public import HexlistTransport
public import Logging
public import NIOCore
import HexlistWire

/// A peer in the network: announces itself, accepts and dials sessions, stores received hexes and delivers the outbox.
///
/// The actor's executor is the event loop of its connections, so that frames are handled without a thread hop. Blocking work (SQLite,
/// DNS-SD) runs on other threads.
///
/// Most of its properties are the owners of its state (Docs/Architecture.md, "The node and its owners"). Its own state is the
/// configuration, the port, and whether it is stopping.
public actor Node {
    public nonisolated let store: HexStore
    public nonisolated let identity: Identity
    public nonisolated let boot: BootNonce
    public nonisolated let eventLoop: any EventLoop
    public nonisolated let clocks: Clocks
    nonisolated let logger: Logger
    nonisolated let metrics: NodeMetrics
    private nonisolated let executor: any SerialExecutor

    nonisolated let transport: PeerTransport
    nonisolated let envelopes: EnvelopeCoder
    public internal(set) var configuration: NodeConfiguration
    var port = 0
    public internal(set) var isStopping = false

    let finder: DiscoveryDriver
    let registry: PeerRegistry
    let sessions: SessionTable
    let duplicates: DuplicateChallenges
    let refusedPeersNotifier = RefusedPeersNotifier()
    var dialBacks = DialBackLimits()
    let pairingDriver: PairingDriver
    let maintenance = StoreMaintenance()
    let events: EventRecorder
    /// The open sessions of each peer.
    var links: [PeerID: PeerSessions] = [:]
    let conflicts = IdentityConflicts()
    var alerts = RepeatedAlertFilter()
    public nonisolated let outbox: Outbox
    /// The transfers of files between this machine and its peers.
    public nonisolated let transfers: FileTransfers
    let devices: Devices
    let routes: RouteCoordinator
    let lists: ListDriver
    private var wallTimes: MonotonicToWallClock
    nonisolated let watchers = Watchers()
    /// Reports new hexes to the task that opens their links.
    public nonisolated let linkOpening = LinkOpening()

    public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
    public nonisolated var id: PeerID { identity.peerID }

    /// - Parameters:
    ///   - discovery: `nil` for a node that dials only static and last-known peers.
    ///   - remotes: file services other than shares of this machine and of peers; `nil` for none.
    ///   - plainHTTP: serves plain HTTP on the peer port.
    ///   - eventLoop: the executor of the node.
    ///   - clocks: replaced only in tests.
    /// - Throws: `HexlistError` if TLS cannot be set up with this identity.
    public init(
        configuration: NodeConfiguration, identity: Identity, store: HexStore, discovery: (any PeerDiscovery)?,
        remotes: (any RemoteServices)? = nil, plainHTTP: PlainHTTPHost = .none, eventLoop: any EventLoop, clocks: Clocks = .system,
        metrics: NodeMetrics = NodeMetrics(), logger: Logger
    ) throws {
        self.configuration = configuration
        self.identity = identity
        self.store = store
        self.eventLoop = eventLoop
        self.clocks = clocks
        wallTimes = MonotonicToWallClock(wall: clocks.milliseconds, steady: clocks.now)
        self.logger = logger
        self.metrics = metrics
        executor = eventLoop.executor
        sessions = SessionTable(own: identity.peerID, limits: SessionLimits(configuration.limits), on: eventLoop, clocks: clocks)
        duplicates = DuplicateChallenges(sessions)
        registry = PeerRegistry(on: eventLoop, clocks)
        lists = ListDriver(on: eventLoop, clocks)
        events = EventRecorder(on: eventLoop, clocks)
        boot = .random
        var bounds = DirectoryLimits()
        bounds.instances = configuration.discovery.instances
        bounds.resolvers = configuration.discovery.resolvers
        finder = DiscoveryDriver(
            PeerDirectory(own: identity.peerID, boot: boot, limits: bounds), own: identity.peerID, backend: discovery, on: eventLoop, clocks
        )
        devices = Devices(own: identity.certificateFingerprint ?? identity.fingerprint, on: eventLoop, clocks)
        pairingDriver = PairingDriver(own: identity.fingerprint, on: eventLoop, clocks)
        transport = try PeerTransport(
            identity: identity, eventLoop: eventLoop, limits: TransportLimits(configuration),
            acceptsPlain: configuration.acceptsPlain, plainHTTP: plainHTTP, metrics: metrics.transport, logger: logger)
        envelopes = try EnvelopeCoder(identity: identity, boot: boot)
        outbox = Outbox(
            store, configuration, on: eventLoop, clocks, watchers: watchers, metrics: metrics,
            logger: logger)
        routes = RouteCoordinator(configuration.routes, envelopes, identity, startedAt: clocks.now) { DeadlineTimer(on: eventLoop, clocks) }
        let host = NodeTransfersHost()
        transfers = FileTransfers(
            TransfersConfiguration(configuration), node: host, identity: identity, store: store, transport: transport, remotes: remotes,
            on: eventLoop, clocks, logger: logger)
        host.node = self
    }

    // MARK: Life cycle

    /// Binds the port, announces this machine, browses for peers, and dials static and trusted peers.
    /// - Throws: `HexlistError` `portInUse` if the configured port is in use, `storeUnusable` if the store cannot be read.
    public func start() async throws {
        outbox.connect(to: self)
        store.observe { [weak self] change in self?.storeChanged(change) }
        registry.set(try await store.read(StoredPeers.init), self)
        let records = Array(registry.all)
        lists.start(self)
        await transfers.serve()
        port = try await listen()
        let connections = TransportLimits(configuration).connections
        if connections < configuration.limits.connections {
            logger.warning(
                "fewer connections than configured: the system allows few open files",
                metadata: ["connections": "\(connections)", "open.files": "\(DescriptorLimit.limit)"])
        }
        registry.reserveAddresses(self)

        finder.apply(.hiding(!configuration.announce), self)
        for record in records where record.trust == .trusted {
            finder.apply(.knownPeer(KnownPeer(record)), self)
        }
        finder.apply(.staticPeers(configuration.peers.map(StaticAddress.init)), self)

        finder.start(publishing: announcement()) { [weak self] event in self?.onLoop { $0.discovered(event) } }
        await devices.start(self)
        maintenance.start(self)
        let peers = Set(records.map(\.peer))
        routes.start(try await store.read { [id] in try RouteSender.stored($0, of: id, for: peers) }, self)
        try await transfers.start(fetchingFrom: records.filter { $0.fetchLimit != nil }.map(\.peer))
        logger.info("node started", metadata: ["peer.id": "\(id)", "port": "\(port)"])
    }

    /// Binds the configured port. Without one, tries the port of the last start (24391 at the first start), then lets the system choose
    /// one, and stores the choice.
    private func listen() async throws -> Int {
        let onAccept: @Sendable (PeerConnection) -> Void = { [weak self] connection in
            guard let self else { return connection.abort() }
            self.assumeIsolated { $0.accepted(connection) }
        }
        if let port = configuration.port {
            return try await transport.listen(addresses: configuration.listen, port: port, onAccept: onAccept)
        }
        let remembered = try await store.read { try $0.meta("port").flatMap { Int($0) } }
        var chosen: Int?
        for candidate in [remembered, remembered == nil ? ProtocolLimits.defaultPort : nil, 0].compactMap({ $0 }) {
            do {
                chosen = try await transport.listen(addresses: configuration.listen, port: candidate, onAccept: onAccept)
                break
            } catch let error as HexlistError where error.code == .portInUse && candidate != 0 {
                logger.notice("port in use, trying another", metadata: ["port": "\(candidate)"])
            }
        }
        guard let chosen else { throw HexlistError(.portInUse, "No port could be bound.") }
        if chosen != remembered {
            do {
                try await store.setMeta(["port": "\(chosen)"])
            } catch {
                logger.warning("the port cannot be stored for the next start", metadata: ["port": "\(chosen)", "error": "\(error)"])
            }
        }
        return chosen
    }

    /// Withdraws the announcement, ends every session with `Bye` `shutdown`, closes all connections, and waits up to 1 s for pending writes
    /// to the store.
    public func stop() async {
        isStopping = true
        await outbox.stop()
        await pairingDriver.stop(self)
        maintenance.stop()
        await devices.stop(self)
        routes.stop()
        await lists.stop(self)
        sessions.stop()
        registry.stop()
        await finder.stop(self)
        for session in sessions.values { session.act { $0.end(.shutdown, &$1) } }
        await transfers.stop()
        await transport.shutdown()
        events.stop(self)
        await outbox.finishWriting(within: .seconds(1))
        wakeWaiters()
        watchers.finish()
        linkOpening.finish()
        logger.info("node stopped")
    }

    /// Applies the settings that can change at run time: name, announce, receiveFrom, peers, routes, limits, files.
    public func reconfigure(_ configuration: NodeConfiguration) async {
        let old = self.configuration
        self.configuration.name = configuration.name
        self.configuration.announce = configuration.announce
        self.configuration.receiveFrom = configuration.receiveFrom
        self.configuration.peers = configuration.peers
        self.configuration.limits = configuration.limits
        self.configuration.files = configuration.files
        self.configuration.files.cacheFolder = old.files.cacheFolder  // needs a restart
        self.configuration.routes.list = configuration.routes.list
        if configuration.routes.list != old.routes.list { routes.configure(configuration.routes.list, self) }
        transport.setLimits(TransportLimits(configuration))
        transfers.reconfigure(TransfersConfiguration(self.configuration))
        if configuration.peers != old.peers {
            finder.apply(.staticPeers(configuration.peers.map(StaticAddress.init)), self)
        }
        if configuration.name != old.name || configuration.announce != old.announce { finder.publish(announcement()) }
        if configuration.announce != old.announce { finder.apply(.hiding(!configuration.announce), self) }
        for session in sessions.values { sendHello(session) }
        endUninvited()
        let takesOthers = configuration.receiveFrom != old.receiveFrom || configuration.announce != old.announce
        if takesOthers || configuration.limits != old.limits { refusedPeersNotifier.mayAcceptMore(self) }
        sessions.limits = SessionLimits(configuration.limits)
        await devices.reconfigured(from: old, self)
        notifyWatchers()
    }

    /// The DNS-SD announcement of this machine; `nil` while it hides.
    func announcement() -> ServiceAnnouncement? {
        guard configuration.announce else { return nil }
        return ServiceAnnouncement(displayName: configuration.name, peer: id, boot: boot, port: UInt16(clamping: port))
    }

    func maintained(_ report: MaintenanceReport) {
        if report.expired > 0 { deliver { deliveries, _ in deliveries.capacityFreed() } }
        guard !report.isPartial else { return }
        transfers.tidy()
    }

    /// Runs `work` isolated to the node, for callers outside the actor that need several of its members.
    nonisolated func perform<Value: Sendable>(_ work: @Sendable (isolated Node) async throws -> Value) async rethrows -> Value {
        try await work(self)
    }

    /// Runs blocking work on the file threads.
    /// - Parameter completion: called on the node's loop, unless the node stops.
    func onFileThreads<Value: Sendable>(
        _ work: @escaping @Sendable () throws -> Value,
        then completion: @escaping @Sendable (Result<Value, any Error>, isolated Node) -> Void
    ) {
        transport.fileThreads.run(on: eventLoop, work).whenComplete { [weak self] result in
            self?.assumeIsolated { node in
                guard !node.isStopping else { return }
                completion(result, node)
            }
        }
    }

    // MARK: Watching

    /// A stream with an element after each change of peers or events. Changes are coalesced. Ends when the node stops.
    public nonisolated func changes() -> AsyncStream<Void> { watchers.changes() }

    /// Wakes the streams of `changes()`. Can be called from any thread.
    public nonisolated func notifyWatchers() { watchers.notify() }

    /// Handles a commit of the store. Can be called from any thread.
    nonisolated func storeChanged(_ change: StoreChange) {
        // A change of peers is reported after the registry has read it, because watchers list peers from there.
        if !change.contains(.peers) { notifyWatchers() }
        if change.contains(.inbox) { linkOpening.hexesArrived() }
        guard !change.isDisjoint(with: [.peers, .room, .list, .listAcknowledged]) else { return }
        onLoop { node in
            if change.contains(.list) { node.lists.changed(node) }
            if change.contains(.listAcknowledged) { node.lists.listAcknowledged(node) }
            if change.contains(.peers) {
                node.registry.reloadSoon(node)
                node.transfers.sharesChanged()
            }
            if change.contains(.room) {
                node.refusedPeersNotifier.mayAcceptMore(node)
                node.transfers.hexesDeleted()
            }
        }
    }

    /// Converts instants of the monotonic clock for display.
    func times() -> MonotonicToWallClock {
        wallTimes.update(wall: clocks.milliseconds, steady: clocks.now)
        return wallTimes
    }

}

extension TransportLimits {
    init(_ configuration: NodeConfiguration) {
        var limits = TransportLimits()
        limits.connections = configuration.limits.connections
        limits.perAddress = configuration.limits.connectionsPerAddress
        limits.unidentified = configuration.limits.connectionsUnidentified
        limits.reserved = configuration.limits.connectionsReserved
        limits.handshakeSeconds = configuration.limits.handshakeSeconds
        limits.handshakesPerSecond = configuration.limits.handshakesPerSecond
        self = limits.fitting(descriptors: DescriptorLimit.limit)
    }
}
