public import HexlistEventLoop
public import HexlistModel
import HexlistTransport
import HexlistWire
public import NIOCore

/// The sessions of one identity, from their start until their connections are closed, and their shared limits and resources: the number and
/// rate of strangers, the memory for hexes that wait for the store, coalesced ticks, and the decoder.
///
/// Confined to its event loop: every member is used on that loop only. That makes it `Sendable`.
public final class SessionTable: @unchecked Sendable {
    let own: PeerID
    /// The limits for strangers. New frame limits apply to sessions that begin later, all others immediately.
    public var limits: SessionLimits {
        didSet { shareAmongStrangers() }
    }
    private var all: [ObjectIdentifier: PeerSession] = [:]
    /// Maximum frames per second that are read from each stranger.
    private(set) var strangerRate = 0.0
    private(set) var room = InboundMemoryLimit()
    /// The two trusted sessions whose hexes were passed to the store last.
    private var recentStoreWriters: [(session: ObjectIdentifier, at: ContinuousClock.Instant)] = []
    private var ticks = CoalescedTimers()
    private let tickTimer: DeadlineTimer
    private var isStopped = false
    let clocks: Clocks
    let decoder = SharedDecoder()

    /// - Parameters:
    ///   - own: the identity of this side.
    ///   - eventLoop: the event loop of all connections.
    ///   - clocks: replaced only in tests.
    public init(own: PeerID, limits: SessionLimits = SessionLimits(), on eventLoop: any EventLoop, clocks: Clocks = .system) {
        self.own = own
        self.limits = limits
        self.clocks = clocks
        tickTimer = DeadlineTimer(on: eventLoop, clocks)
    }

    /// The sessions, in no particular order.
    public var values: some Collection<PeerSession> { all.values }

    public subscript(key: ObjectIdentifier) -> PeerSession? { all[key] }

    /// The open sessions of a key, with and without Hello, oldest first.
    public func sessions(of key: Fingerprint) -> [PeerSession] {
        all.values.filter { $0.connection.peerFingerprint == key && !$0.machine.isClosed }.sorted { $0.connection.id < $1.connection.id }
    }

    func add(_ session: PeerSession) { all[ObjectIdentifier(session)] = session }

    func remove(_ session: PeerSession) {
        all[ObjectIdentifier(session)] = nil
        shareAmongStrangers()
    }

    /// Stops the timer that sessions share. Remaining sessions have no ticks any more, so the caller has to end them.
    public func stop() {
        isStopped = true
        tickTimer.cancel()
    }

    // MARK: Strangers

    /// The inbound sessions of strangers, including ended ones whose connection is not closed yet.
    private var strangers: [PeerSession] { all.values.filter { !$0.machine.isTrusted && $0.connection.role == .acceptor } }

    /// Ends another stranger's session if there are too many. Called before frames of the new session are handled.
    /// - Parameter mayGiveWay: whether a session may be ended in favour of the new one. Open sessions with the key of the new session are
    ///   never ended here: they may show that two machines have the key, and `DuplicateSessions.sessionsOfOneKey` limits their number.
    func admit(_ session: PeerSession, mayGiveWay: (PeerSession) -> Bool) {
        guard !session.machine.configuration.isTrusted else { return }
        let oldestFirst = strangers.sorted { $0.connection.id < $1.connection.id }
        let key = session.connection.peerFingerprint
        let open = oldestFirst.filter { other in
            let isSameKey = other !== session && other.machine.isOpen && key != nil && other.connection.peerFingerprint == key
            return !other.machine.isClosed && !isSameKey && mayGiveWay(other)
        }
        if let surplus = StrangerSessions.surplus(open.map(\.connection.remoteNetwork), limit: limits.strangerSessions) {
            open[surplus].act { $0.end(.idle, text: "Others need the place.", &$1) }
        }
        // If too many sessions have ended but still wait for their peers to close, the oldest connection is aborted.
        let leaving = oldestFirst.filter(\.machine.isClosed)
        if leaving.count > limits.strangerSessions { leaving.first?.connection.abort() }
        shareAmongStrangers()
        setStrangerRate(of: session)
    }

    /// Divides the rate limit of all strangers among their sessions, after the limit or the number of sessions has changed.
    func shareAmongStrangers() {
        let rate = StrangerSessions.rate(
            each: limits.strangerFramesPerSecond, together: limits.allStrangersFramesPerSecond,
            sessions: strangers.count { !$0.machine.isClosed })
        guard rate != strangerRate else { return }
        strangerRate = rate
        for session in all.values { setStrangerRate(of: session) }
    }

    func setStrangerRate(of session: PeerSession) { session.machine.setStrangerRate(strangerRate, now: clocks.now) }

    // MARK: Hexes that wait for the store

    /// Updates the weight of a session's hexes that wait for the store, and pauses or resumes reading of the affected sessions.
    func waitingChanged(from before: (owner: InboundMemoryLimit.Owner, weight: Int), to now: (owner: InboundMemoryLimit.Owner, weight: Int))
    {
        var changed = false
        if before.owner == now.owner {
            changed = room.change(now.owner, by: now.weight - before.weight)
        } else {  // the trust in the peer has changed
            for (owner, weight) in [(before.owner, -before.weight), (now.owner, now.weight)] where room.change(owner, by: weight) {
                changed = true
            }
        }
        if changed { for session in all.values { session.updateReading() } }
    }

    /// Whether hexes of another trusted session were passed to the store within the last `time`.
    func storeIsShared(beside session: PeerSession, within time: Duration) -> Bool {
        let now = clocks.now
        return recentStoreWriters.contains { $0.session != ObjectIdentifier(session) && now - $0.at < time }
    }

    /// Notes that hexes of a session are passed to the store.
    func noteStoreWrite(by session: PeerSession) {
        guard session.machine.isTrusted else { return }
        let id = ObjectIdentifier(session)
        recentStoreWriters.removeAll { $0.session == id }
        recentStoreWriters.append((id, clocks.now))
        if recentStoreWriters.count > 2 { recentStoreWriters.removeFirst() }
    }

    // MARK: Time

    /// Schedules a tick of the session at a whole second. All sessions share one timer.
    func shareTick(_ session: PeerSession, at second: ContinuousClock.Instant) {
        ticks.add(ObjectIdentifier(session), at: second)
        scheduleTicks()
    }

    private func scheduleTicks() {
        guard !isStopped, let next = ticks.next else { return }
        tickTimer.set(next) { [weak self] in
            guard let self else { return }
            for (session, second) in ticks.take(now: clocks.now) { all[session]?.sharedTick(at: second) }
            scheduleTicks()
        }
    }
}

/// The decoder of all sessions of a table, so that its buffers exist once.
///
/// Confined to the table's event loop; that makes it `Sendable`.
final class SharedDecoder: @unchecked Sendable {
    private var decoder = WrapperDecoder()

    func decode(_ frame: [UInt8]) -> DecodedFrame { decoder.decode(frame) }
}
