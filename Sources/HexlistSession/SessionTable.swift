public import HexlistEventLoop
public import HexlistModel
import HexlistTransport
import HexlistWire
public import NIOCore

/// All sessions of this machine's identity, until their connections are closed, and their shared state: the number and rate limits of
/// strangers, the memory limit of hexes that wait to be stored, coalesced ticks, and the decoder.
///
/// Every member is used only on the event loop of the connections. That makes the class `Sendable`.
public final class SessionTable: @unchecked Sendable {
    let own: PeerID
    /// The limits for strangers. A new frame size applies to later sessions, new rates apply immediately, and a new number of sessions
    /// applies when the next one begins.
    public var limits: SessionLimits {
        didSet { shareAmongStrangers() }
    }
    private var all: [ObjectIdentifier: PeerSession] = [:]
    /// Maximum frames per second that are read from each stranger.
    private(set) var strangerRate = 0.0
    /// The memory limit of received hexes that wait to be stored.
    private(set) var room = InboundMemoryLimit()
    /// The last two trusted sessions whose hexes were passed to the store.
    private var recentStoreWriters: [(session: ObjectIdentifier, at: ContinuousClock.Instant)] = []
    private var ticks = CoalescedTicks()
    private let tickTimer: DeadlineTimer
    private var isStopped = false
    let clocks: Clocks
    let decoder = SharedDecoder()

    /// - Parameters:
    ///   - own: this machine's identity.
    ///   - eventLoop: the event loop of all connections.
    ///   - clocks: replaced in tests only.
    public init(own: PeerID, limits: SessionLimits = SessionLimits(), on eventLoop: any EventLoop, clocks: Clocks = .system) {
        self.own = own
        self.limits = limits
        self.clocks = clocks
        tickTimer = DeadlineTimer(on: eventLoop, clocks)
    }

    /// The sessions, in no particular order.
    public var values: some Collection<PeerSession> { all.values }

    public subscript(key: ObjectIdentifier) -> PeerSession? { all[key] }

    /// The open sessions of a key, with or without a Hello, oldest first.
    public func sessions(of key: Fingerprint) -> [PeerSession] {
        all.values.filter { $0.connection.peerFingerprint == key && !$0.machine.isClosed }.sorted { $0.connection.id < $1.connection.id }
    }

    func add(_ session: PeerSession) { all[ObjectIdentifier(session)] = session }

    func remove(_ session: PeerSession) {
        all[ObjectIdentifier(session)] = nil
        shareAmongStrangers()
    }

    /// Stops the shared timer. No ticks follow, so the caller has to end the remaining sessions.
    public func stop() {
        isStopped = true
        tickTimer.cancel()
    }

    // MARK: Strangers

    /// The sessions that strangers dialled, including ended sessions whose connection is not closed yet.
    private var strangers: [PeerSession] { all.values.filter { !$0.machine.isTrusted && $0.connection.role == .acceptor } }

    /// Ends a session of another stranger if there are too many. Called before frames of the new session are handled.
    /// - Parameter mayGiveWay: whether a session may be ended to make room for the new one. Sessions with the same key as the new session
    ///   are never ended here, because they may show that two machines have the key; `DuplicateSessions.sessionsOfOneKey` limits their
    ///   number.
    func admit(_ session: PeerSession, mayGiveWay: (PeerSession) -> Bool) {
        guard !session.machine.configuration.isTrusted else { return }
        let oldestFirst = strangers.sorted { $0.connection.id < $1.connection.id }
        let key = session.connection.peerFingerprint
        let open = oldestFirst.filter { other in
            let isSameKey = other !== session && other.machine.isOpen && key != nil && other.connection.peerFingerprint == key
            return !other.machine.isClosed && !isSameKey && mayGiveWay(other)
        }
        if let surplus = StrangerSessionRules.surplus(open.map(\.connection.remoteNetwork), limit: limits.strangerSessions) {
            open[surplus].act { $0.end(.idle, text: "Others need the place.", &$1) }
        }
        // Ended sessions wait for the peer to close the connection. If there are too many of them, the oldest connection is aborted.
        let leaving = oldestFirst.filter(\.machine.isClosed)
        if leaving.count > limits.strangerSessions { leaving.first?.connection.abort() }
        shareAmongStrangers()
        setStrangerRate(of: session)
    }

    /// Divides the rate limit of all strangers equally among their sessions. Called after the limit or the number of sessions has changed.
    func shareAmongStrangers() {
        let rate = StrangerSessionRules.rate(
            each: limits.strangerFramesPerSecond, together: limits.allStrangersFramesPerSecond,
            sessions: strangers.count { !$0.machine.isClosed })
        guard rate != strangerRate else { return }
        strangerRate = rate
        for session in all.values { setStrangerRate(of: session) }
    }

    func setStrangerRate(of session: PeerSession) { session.machine.setStrangerRate(strangerRate, now: clocks.now) }

    // MARK: Memory of received hexes

    /// Reports a change of the weight of a session's hexes that wait to be stored. Pauses or resumes reading of the affected sessions.
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

    /// Records that hexes of a session are passed to the store.
    func noteStoreWrite(by session: PeerSession) {
        guard session.machine.isTrusted else { return }
        let id = ObjectIdentifier(session)
        recentStoreWriters.removeAll { $0.session == id }
        recentStoreWriters.append((id, clocks.now))
        if recentStoreWriters.count > 2 { recentStoreWriters.removeFirst() }
    }

    // MARK: Time

    /// Schedules a tick of the session at a whole second. All such ticks share one timer.
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

/// The decoder of all sessions of a table, so that its buffers are allocated only once.
///
/// Every member is used only on the table's event loop; that makes the class `Sendable`.
final class SharedDecoder: @unchecked Sendable {
    private var decoder = WrapperDecoder()

    func decode(_ frame: [UInt8]) -> DecodedFrame { decoder.decode(frame) }
}
