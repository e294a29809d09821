import DequeModule
import HeapModule
public import HexlistModel

/// Which transfers run, which wait and for what, and which are to pause: a state machine.
///
/// Performs no IO and has no clock: the caller passes in events and the present instant, carries out the actions in order, and calls
/// `deadlineReached` at the instant that was last armed.
///
/// - There are `places`. When one is free the next transfer begins, the peers in turn, of each peer the one that was added first.
/// - A place has one transfer, or up to `sharing` small ones of one peer, each at its first attempt. While another peer waits for a place,
///   none joins them.
/// - While another peer waits, a peer has `mostOfPeer` places at most, and a transfer that is slower than `slowest` gives way: it waits behind
///   the others of its peer, and resumes later. A transfer that cannot resume keeps its place.
/// - An absent peer, a lost link and a full disk are waits. What fails by its source's own fault `attempts` times pauses; the same cannot
///   be started again meanwhile except by force. After `rounds` pauses' worth of failures it has failed.
/// - A run whose bytes are all here may give its place back before its end (`received`), as long as no more than `settling` do.
/// - Each start is a run with a number of its own. What is told of a run that was stopped or cancelled is dropped.
public struct TransferQueue: Sendable {
    public typealias Instant = ContinuousClock.Instant

    /// Something the caller does.
    public enum Action: Equatable, Sendable {
        /// Begin, or go on, and call `ended` with this run.
        /// - place: its number; others may have the same where the transfer is small.
        case start(TransferID, run: TransferAttemptID, peer: PeerID, place: Place)
        /// Stop a run. Nothing more of it matters.
        case stop(TransferAttemptID)
        /// End a run with `Outcome.gaveWay`, unless all its bytes are here.
        case giveWay(TransferAttemptID)
        /// The state of one transfer changed. Where all that wait for a peer are concerned nothing is told: `state(of:now:)` says it.
        case changed(TransferID, TransferState)
        /// Call `deadlineReached` then, and no longer at another instant; `nil`: at none.
        case arm(Instant?)
    }

    /// The end of a run, as the caller saw it.
    public enum Outcome: Equatable, Sendable {
        /// The file is under its final name.
        case done
        /// The connection could not be made, or was lost.
        /// - progressed: whether bytes came in this run.
        case interrupted(progressed: Bool)
        case diskFull
        /// It was asked to, and goes on later.
        case gaveWay
        /// The source's own fault, which may pass: a server's error, too few bytes, other ones than announced.
        case sourceFault
        /// There is no use in trying again: it is gone, has changed, or cannot be written here.
        case final
    }

    /// The number of a place, and whether small transfers share it.
    public struct Place: Hashable, Sendable {
        public let number: Int
        public let isShared: Bool
    }

    /// What becomes of a wish to start or retry a transfer.
    public enum Admission: Equatable, Sendable {
        case taken
        /// The same file is on its way into the same folder already, as another transfer.
        case known(TransferID)
        /// The same has failed repeatedly and pauses until then; `force` starts it all the same.
        case paused(until: Instant)
        /// As many transfers are in the queue as there may be.
        case full
        /// There is no such transfer in the queue.
        case unknown
    }

    public static let places = 4
    /// The most places of one peer while another peer waits for one.
    public static let mostOfPeer = 3
    /// Bytes a second, the mean of a `window`, below which a transfer gives way while another peer waits: 64 kbit/s, the rate of ISDN. 1 MiB takes
    /// two minutes then. A slower link has its turns of one window, and its place for as long as no other peer waits.
    public static let slowest: Int64 = 8 << 10
    /// The time in which the rate is measured, from the moment when another peer waits: longer than a connection takes to be made, and short
    /// against the time that others wait.
    public static let window = Duration.seconds(30)
    /// The most small transfers in one place.
    public static let sharing = 16
    /// The most runs that have given their places back and not ended: files that wait for their names.
    public static let settling = 256
    public static let attempts = 3
    public static let rounds = 3
    public static let pause = FailureBackoff<TransferKey>.length
    /// When a transfer that found no room looks again.
    public static let diskPause = Duration.seconds(60)
    /// The most transfers that are in the queue: 10 000 files of a folder, ten times.
    public static let most = 100_000
    private static let linkBackoff = Backoff(from: .seconds(1), to: .seconds(60))
    private static let sourceBackoff = Backoff(from: .seconds(1), to: .seconds(10))

    private enum Stage: Sendable {
        /// In the lane of its peer.
        case ready
        case running(TransferAttemptID)
        case timed(TransferWait, until: Instant)
        case paused(until: Instant)
    }

    private struct Entry: Sendable {
        let peer: PeerID
        let key: TransferKey
        /// Whether it may share a place: until an attempt at it fails, which may be its own fault.
        var isSmall: Bool
        /// Whether it resumes after an interruption, without fetching the same bytes again.
        let resumes: Bool
        var stage = Stage.ready
        /// The number of its newest place in a lane, or its newest deadline; older ones count no more.
        var ticket: UInt64 = 0
        /// Failures in a row by the source's fault in this round, and rounds before it.
        var failures = 0
        var rounds = 0
    }

    /// The transfers of one peer that could run.
    private struct Lane: Sendable {
        /// In order; some may be there no more, or elsewhere.
        var ready: Deque<Ticket> = []
        /// The end of the rest after a lost link.
        var rest: Instant?
        var ticket: UInt64 = 0
        /// Links lost in a row without a byte.
        var interruptions = 0
        var isInRing = false
    }

    private struct Ticket: Sendable {
        let id: TransferID
        let number: UInt64
    }

    private struct Deadline: Comparable, Sendable {
        enum Target: Equatable, Sendable {
            case transfer(TransferID)
            case lane(PeerID)
        }

        let at: Instant
        let target: Target
        let ticket: UInt64

        static func < (left: Deadline, right: Deadline) -> Bool { (left.at, left.ticket) < (right.at, right.ticket) }
    }

    private var entries: [TransferID: Entry] = [:]
    private var byKey: [TransferKey: TransferID] = [:]
    private var places = TransferSlots()
    /// Runs without a place: all bytes are here, and the end is not told yet.
    private var received: [TransferAttemptID: TransferID] = [:]
    private var lanes: [PeerID: Lane] = [:]
    /// The peers that are there and whose lane has something, the next one first.
    private var ring: Deque<PeerID> = []
    private var reachable: Set<PeerID> = []
    private var pauses = FailureBackoff<TransferKey>()
    private var deadlines: Heap<Deadline> = []
    private var armed: Instant?
    private var lastRun: UInt64 = 0
    private var lastTicket: UInt64 = 0
    private var actions: [Action] = []

    public init() {}

    /// Transfers in the queue, and those of them that run.
    public var count: Int { entries.count }
    public var runningCount: Int { places.runs.count }
    /// Everything that is kept besides, for tests of its bound.
    var remembered: Int { lanes.values.reduce(lanes.count) { $0 + $1.ready.count } + ring.count + pauses.count + deadlines.count }

    /// The state of a transfer in the queue; `nil` for one that ended, or never was there.
    public func state(of id: TransferID) -> TransferState? {
        guard let entry = entries[id] else { return nil }
        switch entry.stage {
        case .ready: return .waiting(!reachable.contains(entry.peer) ? .peer : lanes[entry.peer]?.rest != nil ? .link : .turn)
        case .running: return .running
        case .timed(let wait, _): return .waiting(wait)
        case .paused(let until): return .paused(until: until)
        }
    }

    /// Until when the same is not started again without force, because it failed repeatedly; `nil` if it can be started.
    public func pause(of key: TransferKey, now: Instant) -> Instant? { pauses.end(of: key, now: now) }

    // MARK: Wishes

    /// Takes a transfer into the queue: a new one, or after a restart one of the store's.
    /// - Parameters:
    ///   - isSmall: whether it may share a place.
    ///   - resumes: whether it resumes after an interruption, without fetching the same bytes again.
    ///   - force: whether it is started although the same has failed repeatedly.
    public mutating func add(
        _ id: TransferID, peer: PeerID, key: TransferKey, isSmall: Bool = false, resumes: Bool = true, force: Bool = false, now: Instant
    ) -> (admission: Admission, actions: [Action]) {
        if let known = byKey[key] {
            if case .paused(let until)? = entries[known]?.stage {
                guard force else { return (.paused(until: until), []) }
                return (.known(known), retry(known, force: true, now: now).actions)
            }
            return (.known(known), [])
        }
        if let until = pauses.end(of: key, now: now), !force { return (.paused(until: until), []) }
        pauses.lift(key)
        guard entries[id] == nil else { return (.known(id), []) }
        guard entries.count < Self.most else { return (.full, []) }
        entries[id] = Entry(peer: peer, key: key, isSmall: isSmall, resumes: resumes)
        byKey[key] = id
        makeReady(id)
        tell(id)
        return (.taken, settle(now))
    }

    /// Tries a transfer that waits, or with `force` one that pauses, as soon as there is a place. One that runs goes on.
    public mutating func retry(_ id: TransferID, force: Bool = false, now: Instant) -> (admission: Admission, actions: [Action]) {
        guard let entry = entries[id] else { return (.unknown, []) }
        switch entry.stage {
        case .running: return (.taken, [])
        case .ready: endRest(entry.peer)
        case .timed: makeReady(id)
        case .paused(let until):
            guard force || until <= now else { return (.paused(until: until), []) }
            pauses.lift(entry.key)
            makeReady(id)
        }
        tell(id)
        return (.taken, settle(now))
    }

    /// Takes a transfer out of the queue. A run of it is stopped, and what comes of it afterwards is dropped.
    public mutating func cancel(_ id: TransferID, now: Instant) -> [Action] {
        guard let entry = entries[id] else { return [] }
        if case .running(let run) = entry.stage {
            if places.leave(run) == nil { received[run] = nil }
            actions.append(.stop(run))
        }
        remove(id, .cancelled)
        return settle(now)
    }

    // MARK: Events

    /// A peer can be fetched from.
    public mutating func peerCame(_ peer: PeerID, now: Instant) -> [Action] {
        reachable.insert(peer)
        endRest(peer)
        enqueue(peer)
        return settle(now)
    }

    /// A peer is gone: nothing of it starts until it comes. Its runs go on until they end by themselves.
    public mutating func peerWent(_ peer: PeerID, now: Instant) -> [Action] {
        reachable.remove(peer)
        if lanes[peer]?.isInRing == true {
            ring.removeAll { $0 == peer }
            lanes[peer]?.isInRing = false
        }
        return settle(now)
    }

    /// Bytes of a run arrived.
    /// - Parameter arrived: all of the run.
    public mutating func progressed(_ run: TransferAttemptID, arrived: Int64) {
        places.progressed(run, arrived: arrived)
    }

    /// All bytes of a run are here: its place is another's, and its end comes later.
    public mutating func received(_ run: TransferAttemptID, now: Instant) -> [Action] {
        guard let id = places.leave(run) else { return [] }
        received[run] = id
        return settle(now)
    }

    /// A run ended.
    public mutating func ended(_ run: TransferAttemptID, _ outcome: Outcome, now: Instant) -> [Action] {
        guard let id = places.leave(run) ?? received.removeValue(forKey: run), var entry = entries[id] else { return [] }
        if outcome != .gaveWay { entry.isSmall = false }
        entries[id] = entry
        switch outcome {
        case .done:
            lanes[entry.peer]?.interruptions = 0
            remove(id, .done)
        case .final: remove(id, .failed)
        case .interrupted(let progressed):
            makeReady(id, first: true)
            if reachable.contains(entry.peer) { rest(entry.peer, progressed: progressed, now: now) }
            tell(id)
        case .gaveWay:
            makeReady(id)
            tell(id)
        case .diskFull: wait(id, .timed(.disk, until: now + Self.diskPause), until: now + Self.diskPause)
        case .sourceFault: sourceFailed(id, entry, now: now)
        }
        return settle(now)
    }

    /// The armed instant has come.
    public mutating func deadlineReached(now: Instant) -> [Action] {
        armed = nil
        while let next = deadlines.min, next.at <= now {
            deadlines.removeMin()
            guard isMeant(next) else { continue }
            switch next.target {
            case .transfer(let id):
                makeReady(id)
                tell(id)
            case .lane(let peer): endRest(peer)
            }
        }
        return settle(now)
    }

    // MARK: Parts

    private mutating func sourceFailed(_ id: TransferID, _ entry: Entry, now: Instant) {
        var entry = entry
        entry.failures += 1
        if entry.failures < Self.attempts {
            let until = now + Self.sourceBackoff.pause(after: entry.failures)
            entries[id] = entry
            return wait(id, .timed(.source, until: until), until: until)
        }
        (entry.failures, entry.rounds) = (0, entry.rounds + 1)
        entries[id] = entry
        let until = pauses.begin(entry.key, now: now)
        if entry.rounds < Self.rounds { wait(id, .paused(until: until), until: until) } else { remove(id, .failed) }
    }

    private mutating func wait(_ id: TransferID, _ stage: Stage, until: Instant) {
        let ticket = nextTicket()
        entries[id]?.stage = stage
        entries[id]?.ticket = ticket
        deadlines.insert(Deadline(at: until, target: .transfer(id), ticket: ticket))
        tell(id)
    }

    private mutating func makeReady(_ id: TransferID, first: Bool = false) {
        guard let peer = entries[id]?.peer else { return }
        let ticket = Ticket(id: id, number: nextTicket())
        entries[id]?.stage = .ready
        entries[id]?.ticket = ticket.number
        var lane = lanes.removeValue(forKey: peer) ?? Lane()
        if lane.ready.count > 64 + 2 * entries.count { lane.ready.removeAll { entries[$0.id]?.ticket != $0.number } }
        if first { lane.ready.prepend(ticket) } else { lane.ready.append(ticket) }
        lanes[peer] = lane
        enqueue(peer)
    }

    /// Puts a peer that could have a turn at the end of the ring.
    private mutating func enqueue(_ peer: PeerID) {
        guard reachable.contains(peer), let lane = lanes[peer], !lane.isInRing, lane.rest == nil, !lane.ready.isEmpty else { return }
        lanes[peer]?.isInRing = true
        ring.append(peer)
    }

    /// Lets a peer rest whose link was lost, a little longer each time.
    private mutating func rest(_ peer: PeerID, progressed: Bool, now: Instant) {
        // Of several runs that lose the same link the first one counts.
        guard var lane = lanes[peer], lane.rest == nil else { return }
        lane.interruptions = progressed ? 1 : lane.interruptions + 1
        lane.ticket = nextTicket()
        let until = now + Self.linkBackoff.pause(after: lane.interruptions)
        lane.rest = until
        if lane.isInRing {
            ring.removeAll { $0 == peer }
            lane.isInRing = false
        }
        lanes[peer] = lane
        deadlines.insert(Deadline(at: until, target: .lane(peer), ticket: lastTicket))
    }

    private mutating func endRest(_ peer: PeerID) {
        lanes[peer]?.rest = nil
        enqueue(peer)
    }

    private mutating func remove(_ id: TransferID, _ state: TransferState) {
        guard let entry = entries.removeValue(forKey: id) else { return }
        byKey[entry.key] = nil
        if state == .done { pauses.lift(entry.key) }
        actions.append(.changed(id, state))
    }

    private mutating func tell(_ id: TransferID) {
        if let state = state(of: id) { actions.append(.changed(id, state)) }
    }

    private mutating func nextTicket() -> UInt64 {
        lastTicket += 1
        return lastTicket
    }

    private func isMeant(_ deadline: Deadline) -> Bool {
        switch deadline.target {
        case .transfer(let id): entries[id]?.ticket == deadline.ticket
        case .lane(let peer): lanes[peer]?.rest != nil && lanes[peer]?.ticket == deadline.ticket
        }
    }

    /// Starts what has a place, arms the next deadline, and hands over the actions.
    private mutating func settle(_ now: Instant) -> [Action] {
        var index = ring.startIndex
        while received.count < Self.settling, index < ring.endIndex {
            let peer = ring[index]
            guard let id = next(of: peer) else {
                ring.remove(at: index)
                lanes[peer]?.isInRing = false
                continue
            }
            let run = TransferAttemptID(lastRun + 1)
            guard let place = place(for: id, of: peer, run) else {
                // Only a peer that has the most places lets others pass.
                guard places.hasMost(peer) else { break }
                index += 1
                continue
            }
            ring.remove(at: index)
            lanes[peer]?.isInRing = false
            lanes[peer]?.ready.removeFirst()
            lastRun = run.value
            entries[id]?.stage = .running(run)
            actions += [.changed(id, .running), .start(id, run: run, peer: peer, place: place)]
            enqueue(peer)
            index = ring.startIndex
        }
        let waiting = received.count < Self.settling && places.areAllTaken ? waitingPeers() : []
        let (leaving, measured) = places.makeWay(for: waiting, now: now)
        actions += leaving.map { .giveWay($0) }
        tidy()
        while let next = deadlines.min, !isMeant(next) { deadlines.removeMin() }
        let due = [deadlines.min?.at, measured].compactMap(\.self).min()
        if due != armed {
            armed = due
            actions.append(.arm(armed))
        }
        defer { actions = [] }
        return actions
    }

    /// The first two peers that wait for a place: enough to know whether another one than a certain peer waits.
    private mutating func waitingPeers() -> [PeerID] {
        var found: [PeerID] = []
        for peer in ring where found.count < 2 && next(of: peer) != nil { found.append(peer) }
        return found
    }

    /// Takes a place for a run of a peer in the ring; `nil` if it has to wait.
    private mutating func place(for id: TransferID, of peer: PeerID, _ run: TransferAttemptID) -> Place? {
        guard let entry = entries[id] else { return nil }
        return places.take(
            for: id, of: peer, run, isSmall: entry.isSmall, resumes: entry.resumes, othersWait: waitingPeers().contains { $0 != peer })
    }

    /// The transfer of a peer that is to run next; the tickets before it that count no more are gone.
    private mutating func next(of peer: PeerID) -> TransferID? {
        while let ticket = lanes[peer]?.ready.first {
            if entries[ticket.id]?.ticket == ticket.number { return ticket.id }
            lanes[peer]?.ready.removeFirst()
        }
        return nil
    }

    /// Forgets places and deadlines that count no more, once they are the most.
    private mutating func tidy() {
        if deadlines.count > 64 + 2 * entries.count { deadlines = Heap(deadlines.unordered.filter(isMeant)) }
        for (peer, lane) in lanes where lane.ready.isEmpty && lane.rest == nil && lane.interruptions == 0 { lanes[peer] = nil }
    }
}
