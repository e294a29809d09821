import HexlistEventLoop
import HexlistModel
import HexlistTransport
import HexlistWire
import NIOCore

protocol SessionTableHost: NodeHost {
    var sessions: SessionTable { get }
}

/// Every connection with a session, until it is closed, and what sessions share: the places and the rate of strangers, the room for what
/// waits for the store, the whole seconds of their ticks, the decoder.
final class SessionTable {
    private var all: [ObjectIdentifier: PeerSession] = [:]
    /// Frames a second a stranger is read at.
    private(set) var strangerRate = 0.0
    private(set) var room = InboundRoom()
    /// The two trusted sessions whose hexes went to the store last, and when.
    private var keepers: [(session: ObjectIdentifier, at: ContinuousClock.Instant)] = []
    private var ticks = SharedTicks()
    private let tickTimer: DeadlineTimer
    private let clocks: Clocks
    let decoder = SharedDecoder()

    init(on eventLoop: any EventLoop, _ clocks: Clocks) {
        self.clocks = clocks
        tickTimer = DeadlineTimer(on: eventLoop, clocks)
    }

    var values: Dictionary<ObjectIdentifier, PeerSession>.Values { all.values }

    subscript(key: ObjectIdentifier) -> PeerSession? { all[key] }

    /// Sessions of a key, with and without Hello, oldest first.
    func sessions(of key: Fingerprint) -> [PeerSession] {
        all.values.filter { $0.connection.peerFingerprint == key && !$0.machine.isClosed }.sorted { $0.connection.id < $1.connection.id }
    }

    func add(_ session: PeerSession) { all[ObjectIdentifier(session)] = session }

    func remove(_ session: PeerSession, _ limits: NodeConfiguration.Limits) {
        all[ObjectIdentifier(session)] = nil
        shareAmongStrangers(limits)
    }

    func stop() { tickTimer.cancel() }

    // MARK: Strangers

    /// Sessions of strangers that came in; also those that have ended and whose connection is still there.
    private var strangers: [PeerSession] { all.values.filter { !$0.machine.isTrusted && $0.connection.role == .acceptor } }

    /// Admits one more stranger's session; its frames are not delivered before this.
    /// - Parameter stays: whether a session must not be ended. Nor is another session of the newcomer's key, which may show that two
    ///   machines have that key; of those that said Hello a key has few (`DuplicateSessions.sessionsOfOneKey`).
    func admit(_ session: PeerSession, _ limits: NodeConfiguration.Limits, stays: (PeerSession) -> Bool) {
        let oldestFirst = strangers.sorted { $0.connection.id < $1.connection.id }
        let key = session.connection.peerFingerprint
        let open = oldestFirst.filter { other in
            let isSameKey = other !== session && other.machine.isOpen && key != nil && other.connection.peerFingerprint == key
            return !other.machine.isClosed && !isSameKey && !stays(other)
        }
        if let surplus = StrangerSessions.surplus(open.map(\.connection.remoteNetwork), limit: limits.strangerSessions) {
            open[surplus].act { $0.end(.idle, text: "Others need the place.", &$1) }
        }
        // Sessions that have ended but are not closed by their peers are cut off.
        let leaving = oldestFirst.filter(\.machine.isClosed)
        if leaving.count > limits.strangerSessions { leaving.first?.connection.abort() }
        shareAmongStrangers(limits)
        setStrangerRate(of: session)
    }

    /// Divides the strangers' rate after their number, or the rate, has changed.
    func shareAmongStrangers(_ limits: NodeConfiguration.Limits) {
        let rate = StrangerSessions.rate(
            each: limits.strangerFramesPerSecond, together: limits.allStrangersFramesPerSecond,
            sessions: strangers.count { !$0.machine.isClosed })
        guard rate != strangerRate else { return }
        strangerRate = rate
        for session in all.values { setStrangerRate(of: session) }
    }

    func setStrangerRate(of session: PeerSession) { session.machine.setStrangerRate(strangerRate, now: clocks.now) }

    // MARK: What waits for the store

    func mayRead(_ owner: InboundRoom.Owner) -> Bool { room.mayRead(owner) }

    /// Notes a change of what a session has waiting for the store; tells the sessions that may be read again, or no longer.
    func waitingChanged(from before: (owner: InboundRoom.Owner, weight: Int), to now: (owner: InboundRoom.Owner, weight: Int)) {
        var changed = false
        if before.owner == now.owner {
            changed = room.change(now.owner, by: now.weight - before.weight)
        } else {  // it was trusted meanwhile, or is no longer
            for (owner, weight) in [(before.owner, -before.weight), (now.owner, now.weight)] where room.change(owner, by: weight) {
                changed = true
            }
        }
        if changed { for session in all.values { session.updateReading() } }
    }

    /// Whether another trusted session's hexes went to the store not long ago.
    func storeIsShared(beside session: PeerSession, within time: Duration) -> Bool {
        let now = clocks.now
        return keepers.contains { $0.session != ObjectIdentifier(session) && now - $0.at < time }
    }

    /// Hexes of a session go to the store.
    func noteKeeper(_ session: PeerSession) {
        guard session.machine.isTrusted else { return }
        let id = ObjectIdentifier(session)
        keepers.removeAll { $0.session == id }
        keepers.append((id, clocks.now))
        if keepers.count > 2 { keepers.removeFirst() }
    }

    // MARK: Time

    /// Calls the session at that whole second, together with the others.
    func shareTick(_ session: PeerSession, at second: ContinuousClock.Instant, _ host: isolated some SessionTableHost) {
        ticks.add(ObjectIdentifier(session), at: second)
        scheduleTicks(host)
    }

    private func scheduleTicks(_ host: isolated some SessionTableHost) {
        tickTimer.set(ticks.next, host) { host in
            let table = host.sessions
            for (session, second) in table.ticks.take(now: table.clocks.now) { table.all[session]?.sharedTick(at: second) }
            table.scheduleTicks(host)
        }
    }
}
