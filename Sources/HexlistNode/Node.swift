public import HexlistDiscovery
public import HexlistModel
public import HexlistStore
public import HexlistTransport
public import Logging
public import NIOCore
import HexlistWire

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// One peer of the network: it is found, receives, stores and delivers. Knows no HTTP and no command line.
///
/// Its executor is the event loop its connections live on, so a frame reaches the state it changes without a hop; what
/// takes time (SQLite, DNS-SD) runs on threads of its own and comes back to the loop.
public actor Node {
    public nonisolated let store: HexStore
    public nonisolated let identity: Identity
    public nonisolated let boot: BootNonce
    nonisolated let eventLoop: any EventLoop
    nonisolated let logger: Logger
    private nonisolated let executor: any SerialExecutor

    let transport: PeerTransport
    let discovery: (any PeerDiscovery)?
    public internal(set) var configuration: NodeConfiguration
    var directory: PeerDirectory
    var discoveryState: BackendState?
    /// Of domains browsed by unicast DNS, once something is known.
    var domainStates: [String: BackendState] = [:]
    var port = 0
    var isStopping = false
    /// `nil` while hexes are sent as ever.
    var draining: Draining?
    /// What two people agreed on, on its way into the store.
    var trusting: Task<Void, Never>?

    /// Every connection with a session, until it is closed.
    var sessions: [ObjectIdentifier: PeerSession] = [:]
    /// The two sessions whose hexes went to the store last, and when.
    var lastKeepers: [(session: ObjectIdentifier, at: ContinuousClock.Instant)] = []
    /// Weight of what waits for the store, of all sessions.
    var inboundRoom = InboundRoom()
    nonisolated let decoder = SharedDecoder()
    /// Frames a second a stranger is read at.
    var strangerRate = 0.0
    var links: [PeerID: PeerLink] = [:]
    /// Peers the store knows: trust, alias, counters. Strangers that left nothing are not here.
    var known: [PeerID: PeerRecord] = [:]
    /// The keys proven since the start, of peers the store need not know. Bounded in `proved`.
    var fingerprints: [PeerID: Fingerprint] = [:]
    /// Strangers that were refused for now since they were last told that more may be taken.
    var refusedStrangers: Set<PeerID> = []
    /// The same, of trusted peers.
    var refusedTrusted: Set<PeerID> = []
    /// Peers that are here and are to be told, on the next session with them, that more may be taken.
    var invitations: Set<PeerID> = []
    /// Peers that were away when more could be taken, to be told with their next Hello. Bounded in `inviteLater`.
    var invitedLater: Set<PeerID> = []
    var invitationTurns = InvitationTurns()
    /// Rises whenever more may be taken than before.
    var takings = 0
    var turns: TransferTurns
    var turnTimer: Scheduled<Void>?
    var challenges: [String: (newer: PeerSession, older: PeerSession)] = [:]
    var probes: [ProbeID: Dial] = [:]
    var dialBacks = DialBackTurns()
    var pairing: PairingDesk
    let pairingTimer: DeadlineTimer
    var isDiallingToPair = false
    /// Duplicates that are ended once the pairing on them is over.
    var endsAfterPairing: PeerSession?
    let directoryTimer: DeadlineTimer
    var sharedTicks = SharedTicks()
    let sharedTickTimer: DeadlineTimer
    let maintenance = Maintenance()
    /// Rises with all that makes an older look at the peers of the store an old one.
    var knownChanges = 0
    var isLookingAtKnown = false
    /// Of trusted peers that had a session since the start, whoever dialled: those that only dial have no endpoint.
    var lastAddresses: [PeerID: String] = [:]
    /// Runs while `lastAddresses` has something the transport was not told yet.
    let reserveTimer: DeadlineTimer
    let events: EventRecorder
    /// Trusted peers that ended a session because another machine proves this one's identity to them.
    var conflictWitnesses: Set<PeerID> = []
    var outcomeWaiters: [ObjectIdentifier: OutcomeWaiter] = [:]
    var bulks: [ObjectIdentifier: BulkSend] = [:]
    /// Rows that came to an end since the start.
    var endedRows: UInt64 = 0
    private var wallTimes = WallTimes(wall: Node.wallClock(), steady: .now)
    nonisolated let watchers = Watchers()

    public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
    public nonisolated var id: PeerID { identity.peerID }

    /// - Parameters:
    ///   - discovery: `nil` for a node that knows only static and last-known peers.
    ///   - eventLoop: everything of the node runs on it.
    /// - Throws: `HexlistError` when TLS cannot be set up with this identity.
    public init(
        configuration: NodeConfiguration, identity: Identity, store: HexStore, discovery: (any PeerDiscovery)?,
        eventLoop: any EventLoop, logger: Logger
    ) throws {
        self.configuration = configuration
        self.identity = identity
        self.store = store
        self.discovery = discovery
        self.eventLoop = eventLoop
        self.logger = logger
        executor = eventLoop.executor
        pairingTimer = DeadlineTimer(on: eventLoop)
        directoryTimer = DeadlineTimer(on: eventLoop)
        sharedTickTimer = DeadlineTimer(on: eventLoop)
        reserveTimer = DeadlineTimer(on: eventLoop)
        events = EventRecorder(on: eventLoop)
        boot = .random
        var bounds = DirectoryLimits()
        bounds.instances = configuration.discovery.instances
        bounds.resolvers = configuration.discovery.resolvers
        directory = PeerDirectory(own: identity.peerID, boot: boot, limits: bounds)
        pairing = PairingDesk(own: identity.fingerprint)
        turns = TransferTurns(limit: configuration.send.concurrentTransfers)
        transport = try PeerTransport(
            identity: identity, eventLoop: eventLoop, limits: Node.transportLimits(configuration),
            acceptsPlain: configuration.acceptsPlain, logger: logger)
    }

    static func transportLimits(_ configuration: NodeConfiguration) -> TransportLimits {
        var limits = TransportLimits()
        limits.connections = configuration.limits.connections
        limits.perAddress = configuration.limits.connectionsPerAddress
        limits.unidentified = configuration.limits.connectionsUnidentified
        limits.reserved = configuration.limits.connectionsReserved
        limits.handshakeSeconds = configuration.limits.handshakeSeconds
        limits.handshakesPerSecond = configuration.limits.handshakesPerSecond
        return limits.fitting(descriptors: Descriptors.limit)
    }

    // MARK: Life

    /// Binds the port, announces itself, browses, and dials the peers it remembers.
    /// - Throws: `HexlistError` `portInUse` where a configured port is taken, `storeUnusable` where the store cannot be read.
    public func start() async throws {
        store.observe { [weak self] change in self?.storeChanged(change) }
        let records = try await store.read { try $0.peers() }
        setKnown(records)
        port = try await listen()
        let connections = Node.transportLimits(configuration).connections
        if connections < configuration.limits.connections {
            logger.warning(
                "fewer connections than configured: the system allows few open files",
                metadata: ["connections": "\(connections)", "open.files": "\(Descriptors.limit)"])
        }
        reserveAddresses()

        apply(.hiding(!configuration.announce))
        for record in records where record.trust == .trusted {
            apply(.knownPeer(KnownPeer(record)))
        }
        apply(.staticPeers(configuration.peers.map(StaticAddress.init)))

        if let discovery {
            discovery.start(publishing: announcement()) { [weak self] event in
                self?.onLoop { $0.discovered(event) }
            }
        }
        maintenance.start(self)
        logger.info("node started", metadata: ["peer.id": "\(id)", "port": "\(port)"])
    }

    /// The configured port, or the one used before, or 24391, or one the system chooses; the choice is kept.
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
        if chosen != remembered { try await store.setMeta(["port": "\(chosen)"]) }
        return chosen
    }

    /// Goodbye on the network, `Bye` `shutdown` on every session, then a bounded wait for what is being stored.
    public func stop() async {
        isStopping = true
        await trusting?.value
        maintenance.stop()
        for timer in [directoryTimer, sharedTickTimer, pairingTimer, reserveTimer] { timer.cancel() }
        if let discovery { await discovery.stop() }
        for dial in probes.values { dial.cancel() }
        for session in sessions.values { session.act { $0.end(.shutdown, &$1) } }
        await transport.shutdown()
        events.stop(self)
        wakeWaiters()
        watchers.finish()
        logger.info("node stopped")
    }

    /// Applies what can change while it runs: name, announce, receiveFrom, peers, limits.
    public func reconfigure(_ configuration: NodeConfiguration) async {
        let old = self.configuration
        self.configuration.name = configuration.name
        self.configuration.announce = configuration.announce
        self.configuration.receiveFrom = configuration.receiveFrom
        self.configuration.peers = configuration.peers
        self.configuration.limits = configuration.limits
        transport.setLimits(Node.transportLimits(configuration))
        if configuration.peers != old.peers {
            apply(.staticPeers(configuration.peers.map(StaticAddress.init)))
        }
        if configuration.name != old.name || configuration.announce != old.announce { discovery?.publish(announcement()) }
        if configuration.announce != old.announce { apply(.hiding(!configuration.announce)) }
        for session in sessions.values { tellHello(session) }
        endUninvited()
        let takesOthers = configuration.receiveFrom != old.receiveFrom || configuration.announce != old.announce
        if takesOthers || configuration.limits != old.limits { mayTakeMore() }
        shareAmongStrangers()
        notifyWatchers()
    }

    /// `nil` while this machine hides.
    func announcement() -> ServiceAnnouncement? {
        guard configuration.announce else { return nil }
        return ServiceAnnouncement(displayName: configuration.name, peer: id, boot: boot, port: UInt16(clamping: port))
    }

    func maintained(_ report: MaintenanceReport) {
        if report.expired > 0 { outboxDrained() }
    }

    // MARK: Watching

    /// One element for each change of the peers or the event log; only the newest is buffered. Ends when the node stops.
    public nonisolated func changes() -> AsyncStream<Void> { watchers.changes() }

    nonisolated func notifyWatchers() { watchers.notify() }

    /// What follows from a commit of the store, whoever asked for it. Any thread.
    nonisolated func storeChanged(_ change: StoreChange) {
        notifyWatchers()
        guard change.contains(.peers) || change.contains(.room) else { return }
        onLoop { node in
            if change.contains(.peers) { node.reloadKnownSoon() }
            if change.contains(.room) { node.mayTakeMore() }
        }
    }

    /// For display of moments of the steady clock.
    func times() -> WallTimes {
        wallTimes.look(wall: Node.wallClock(), steady: .now)
        return wallTimes
    }

    /// Milliseconds since 1970: for display and retention, never for a decision between peers.
    static func wallClock() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
    }
}

extension Node: EventHost, MaintenanceHost {}
