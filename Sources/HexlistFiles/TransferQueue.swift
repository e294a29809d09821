import DequeModule
import HeapModule
public import HexlistModel

/// The state machine of all transfers, which decides which of them run, wait, or are suspended.
///
/// Performs no IO and has no clock: the caller passes in events and the current time, carries out the actions in order, and calls
/// `deadlineReached` at the last armed instant.
///
/// - At most `slotCount` slots are in use. Peers take turns (round robin); the transfers of a peer start in the order they were added.
/// - A slot runs one transfer, or up to `maximumPerSlot` small ones of one peer on their first attempt. No further transfer joins it while
///   another peer waits.
/// - While another peer waits, a peer has at most `maximumSlotsPerPeer` slots, and a transfer slower than `minimumRate` is preempted: it
///   goes to the end of its peer's queue and resumes later. A transfer that cannot resume keeps its slot.
/// - An offline peer, a lost connection and a full disk only make a transfer wait. After `attemptsPerRound` failures of the source it is
///   suspended, and until the suspension ends it starts only by force. After `maximumRounds` such rounds it has failed.
/// - An attempt that has received all bytes may release its slot before it ends (`received`). Up to `maximumReceived` attempts may be in
///   this state.
/// - Each start is a new attempt with its own ID. Events of stopped or cancelled attempts are ignored.
public struct TransferQueue: Sendable {
    public typealias Instant = ContinuousClock.Instant

    /// An action that the caller carries out.
    public enum Action: Equatable, Sendable {
        /// Start or resume a transfer, and call `ended` with this attempt. The slot is shared with other attempts if the transfer is small.
        case start(TransferID, attempt: TransferAttemptID, peer: PeerID, slot: Slot)
        /// Stop an attempt. Its later events are ignored.
        case stop(TransferAttemptID)
        /// Stop an attempt so that it ends as `preempted`, unless it has received all bytes.
        case preempt(TransferAttemptID)
        /// The state of one transfer changed. Not reported for the waiting transfers of a peer that connects or disconnects; see
        /// `state(of:)`.
        case changed(TransferID, TransferState)
        /// Call `deadlineReached` at this instant instead of the previous one; `nil` to cancel it.
        case arm(Instant?)
    }

    /// The way an attempt ended.
    public enum AttemptResult: Equatable, Sendable {
        /// The file has its final name.
        case done
        /// The connection failed or was lost. `progressed` says whether this attempt received bytes.
        case interrupted(progressed: Bool)
        case diskFull
        /// Stopped to free its slot; it resumes later.
        case preempted
        /// A failure of the source that may be temporary: a server error, too few bytes, a wrong digest.
        case sourceFault
        /// A retry would not help: the file no longer exists, has changed, or cannot be written here.
        case final
    }

    /// A slot, and whether small transfers may share it.
    public struct Slot: Hashable, Sendable {
        public let number: Int
        public let isShared: Bool
    }

    /// The result of a request to start or retry a transfer.
    public enum Admission: Equatable, Sendable {
        case accepted
        /// The same file is already being transferred into the same folder, by this transfer.
        case known(TransferID)
        /// The same transfer failed repeatedly and is suspended until this time, unless forced.
        case paused(until: Instant)
        /// The queue has its maximum length.
        case full
        /// The queue has no such transfer.
        case unknown
    }

    public static let slotCount = 4
    /// Maximum number of slots of one peer while another peer waits.
    public static let maximumSlotsPerPeer = 3
    /// Minimum average rate in bytes per second over `rateWindow`. A slower transfer is preempted while another peer waits. The value is 64
    /// kbit/s (ISDN), or two minutes for 1 MiB. A slower transfer thus runs for one window at a time, or without a limit if no other peer
    /// waits.
    public static let minimumRate: Int64 = 8 << 10
    /// Period over which the rate is measured, starting when another peer waits. It is longer than connecting takes.
    public static let rateWindow = Duration.seconds(30)
    /// Maximum number of small transfers in one slot.
    public static let maximumPerSlot = 16
    /// Maximum number of attempts that have released their slot but not ended, because their files wait for their final names.
    public static let maximumReceived = 256
    public static let attemptsPerRound = 3
    public static let maximumRounds = 3
    public static let pause = FailureBackoff<TransferKey>.duration
    /// Delay before a transfer that found the disk full is retried.
    public static let diskRetryDelay = Duration.seconds(60)
    /// Maximum number of transfers in the queue: ten folders of 10 000 files.
    public static let maximumCount = 100_000
    private static let linkBackoff = Backoff(from: .seconds(1), to: .seconds(60))
    private static let sourceBackoff = Backoff(from: .seconds(1), to: .seconds(10))

    private enum Stage: Sendable {
        /// The transfer waits in the queue of its peer.
        case ready
        case running(TransferAttemptID)
        case timed(TransferWait, until: Instant)
        case paused(until: Instant)
    }

    private struct Entry: Sendable {
        let peer: PeerID
        let key: TransferKey
        /// Whether the transfer may share a slot. False once an attempt failed, because the transfer may be the cause and would affect the
        /// others.
        var isSmall: Bool
        /// Whether the transfer can resume after an interruption without fetching the same bytes again.
        let resumes: Bool
        var stage = Stage.ready
        /// The generation of the newest entry of this transfer in a peer's queue or among the deadlines. Entries with another generation
        /// are stale.
        var generation: UInt64 = 0
        /// Number of consecutive failures of the source in this round, and number of earlier rounds.
        var failures = 0
        var rounds = 0
    }

    /// The transfers of one peer that are ready to start.
    private struct PeerQueue: Sendable {
        /// The ready transfers in order; may contain stale entries.
        var ready: Deque<ReadyEntry> = []
        /// End of the back-off after a lost connection.
        var backoffEnd: Instant?
        var generation: UInt64 = 0
        /// Number of consecutive lost connections without a received byte.
        var interruptions = 0
        var isInRing = false
    }

    private struct ReadyEntry: Sendable {
        let id: TransferID
        let generation: UInt64
    }

    private struct Deadline: Comparable, Sendable {
        enum Target: Equatable, Sendable {
            case transfer(TransferID)
            case peer(PeerID)
        }

        let at: Instant
        let target: Target
        let generation: UInt64

        static func < (left: Deadline, right: Deadline) -> Bool { (left.at, left.generation) < (right.at, right.generation) }
    }

    private var entries: [TransferID: Entry] = [:]
    private var byKey: [TransferKey: TransferID] = [:]
    private var slots = TransferSlots()
    /// Attempts without a slot: they have received all bytes, but their end is not reported yet.
    private var received: [TransferAttemptID: TransferID] = [:]
    private var peerQueues: [PeerID: PeerQueue] = [:]
    /// The connected peers with ready transfers in round-robin order, the next one first.
    private var ring: Deque<PeerID> = []
    private var reachable: Set<PeerID> = []
    private var pauses = FailureBackoff<TransferKey>()
    private var deadlines: Heap<Deadline> = []
    private var armed: Instant?
    private var lastAttempt: UInt64 = 0
    private var lastGeneration: UInt64 = 0
    private var actions: [Action] = []

    public init() {}

    /// Number of transfers in the queue. `runningCount` is the number of attempts that occupy a slot.
    public var count: Int { entries.count }
    public var runningCount: Int { slots.attempts.count }
    /// Number of all bookkeeping entries. Tests check that it stays bounded.
    var bookkeepingCount: Int {
        peerQueues.values.reduce(peerQueues.count) { $0 + $1.ready.count } + ring.count + pauses.count + deadlines.count
    }

    /// Returns the state of a transfer in the queue; `nil` if it ended or never existed.
    public func state(of id: TransferID) -> TransferState? {
        guard let entry = entries[id] else { return nil }
        switch entry.stage {
        case .ready: return .waiting(!reachable.contains(entry.peer) ? .peer : peerQueues[entry.peer]?.backoffEnd != nil ? .link : .slot)
        case .running: return .running
        case .timed(let wait, _): return .waiting(wait)
        case .paused(let until): return .paused(until: until)
        }
    }

    /// Returns the instant until which transfers with this key start only by force, after repeated failures; `nil` if they are not
    /// suspended.
    public func pause(of key: TransferKey, now: Instant) -> Instant? { pauses.end(of: key, now: now) }

    // MARK: Requests

    /// Adds a new transfer, or after a restart one from the store.
    /// - Parameters:
    ///   - isSmall: whether the transfer may share a slot.
    ///   - resumes: whether it can resume after an interruption without fetching the same bytes again.
    ///   - force: whether to start it even if it is suspended.
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
        guard entries.count < Self.maximumCount else { return (.full, []) }
        entries[id] = Entry(peer: peer, key: key, isSmall: isSmall, resumes: resumes)
        byKey[key] = id
        makeReady(id)
        reportState(id)
        return (.accepted, advance(now))
    }

    /// Retries a waiting transfer, or with `force` a suspended one, as soon as a slot is free. Has no effect on a running transfer.
    public mutating func retry(_ id: TransferID, force: Bool = false, now: Instant) -> (admission: Admission, actions: [Action]) {
        guard let entry = entries[id] else { return (.unknown, []) }
        switch entry.stage {
        case .running: return (.accepted, [])
        case .ready: endBackoff(entry.peer)
        case .timed: makeReady(id)
        case .paused(let until):
            guard force || until <= now else { return (.paused(until: until), []) }
            pauses.lift(entry.key)
            makeReady(id)
        }
        reportState(id)
        return (.accepted, advance(now))
    }

    /// Removes a transfer from the queue and stops its attempt.
    public mutating func cancel(_ id: TransferID, now: Instant) -> [Action] {
        guard let entry = entries[id] else { return [] }
        if case .running(let attempt) = entry.stage {
            if slots.leave(attempt) == nil { received[attempt] = nil }
            actions.append(.stop(attempt))
        }
        remove(id, .cancelled)
        return advance(now)
    }

    // MARK: Events

    /// Handles the connection of a peer, from which files can now be fetched.
    public mutating func peerCame(_ peer: PeerID, now: Instant) -> [Action] {
        reachable.insert(peer)
        endBackoff(peer)
        enqueue(peer)
        return advance(now)
    }

    /// Handles the disconnection of a peer. Its transfers wait until it is back; running attempts continue until they end.
    public mutating func peerWent(_ peer: PeerID, now: Instant) -> [Action] {
        reachable.remove(peer)
        if peerQueues[peer]?.isInRing == true {
            ring.removeAll { $0 == peer }
            peerQueues[peer]?.isInRing = false
        }
        return advance(now)
    }

    /// Records that an attempt received bytes.
    /// - Parameter arrived: total number of bytes received in this attempt.
    public mutating func progressed(_ attempt: TransferAttemptID, arrived: Int64) {
        slots.progressed(attempt, arrived: arrived)
    }

    /// Releases the slot of an attempt that has received all its bytes and ends later.
    public mutating func received(_ attempt: TransferAttemptID, now: Instant) -> [Action] {
        guard let id = slots.leave(attempt) else { return [] }
        received[attempt] = id
        return advance(now)
    }

    public mutating func ended(_ attempt: TransferAttemptID, _ result: AttemptResult, now: Instant) -> [Action] {
        guard let id = slots.leave(attempt) ?? received.removeValue(forKey: attempt), var entry = entries[id] else { return [] }
        if result != .preempted { entry.isSmall = false }
        entries[id] = entry
        switch result {
        case .done:
            peerQueues[entry.peer]?.interruptions = 0
            remove(id, .done)
        case .final: remove(id, .failed)
        case .interrupted(let progressed):
            makeReady(id, first: true)
            if reachable.contains(entry.peer) { backOff(entry.peer, progressed: progressed, now: now) }
            reportState(id)
        case .preempted:
            makeReady(id)
            reportState(id)
        case .diskFull: suspend(id, .timed(.disk, until: now + Self.diskRetryDelay), until: now + Self.diskRetryDelay)
        case .sourceFault: sourceFailed(id, entry, now: now)
        }
        return advance(now)
    }

    /// Handles the deadline that was armed last.
    public mutating func deadlineReached(now: Instant) -> [Action] {
        armed = nil
        while let next = deadlines.min, next.at <= now {
            deadlines.removeMin()
            guard isCurrent(next) else { continue }
            switch next.target {
            case .transfer(let id):
                makeReady(id)
                reportState(id)
            case .peer(let peer): endBackoff(peer)
            }
        }
        return advance(now)
    }

    // MARK: Parts

    private mutating func sourceFailed(_ id: TransferID, _ entry: Entry, now: Instant) {
        var entry = entry
        entry.failures += 1
        if entry.failures < Self.attemptsPerRound {
            let until = now + Self.sourceBackoff.pause(after: entry.failures)
            entries[id] = entry
            return suspend(id, .timed(.source, until: until), until: until)
        }
        (entry.failures, entry.rounds) = (0, entry.rounds + 1)
        entries[id] = entry
        let until = pauses.begin(entry.key, now: now)
        if entry.rounds < Self.maximumRounds { suspend(id, .paused(until: until), until: until) } else { remove(id, .failed) }
    }

    private mutating func suspend(_ id: TransferID, _ stage: Stage, until: Instant) {
        let generation = nextGeneration()
        entries[id]?.stage = stage
        entries[id]?.generation = generation
        deadlines.insert(Deadline(at: until, target: .transfer(id), generation: generation))
        reportState(id)
    }

    private mutating func makeReady(_ id: TransferID, first: Bool = false) {
        guard let peer = entries[id]?.peer else { return }
        let entry = ReadyEntry(id: id, generation: nextGeneration())
        entries[id]?.stage = .ready
        entries[id]?.generation = entry.generation
        var queue = peerQueues.removeValue(forKey: peer) ?? PeerQueue()
        if queue.ready.count > 64 + 2 * entries.count { queue.ready.removeAll { entries[$0.id]?.generation != $0.generation } }
        if first { queue.ready.prepend(entry) } else { queue.ready.append(entry) }
        peerQueues[peer] = queue
        enqueue(peer)
    }

    /// Appends a peer to the round robin, if it is connected and has ready transfers.
    private mutating func enqueue(_ peer: PeerID) {
        guard reachable.contains(peer), let queue = peerQueues[peer], !queue.isInRing, queue.backoffEnd == nil, !queue.ready.isEmpty else {
            return
        }
        peerQueues[peer]?.isInRing = true
        ring.append(peer)
    }

    /// Starts the back-off of a peer whose connection was lost.
    private mutating func backOff(_ peer: PeerID, progressed: Bool, now: Instant) {
        // Several attempts that lost the same connection count only once.
        guard var queue = peerQueues[peer], queue.backoffEnd == nil else { return }
        queue.interruptions = progressed ? 1 : queue.interruptions + 1
        queue.generation = nextGeneration()
        let until = now + Self.linkBackoff.pause(after: queue.interruptions)
        queue.backoffEnd = until
        if queue.isInRing {
            ring.removeAll { $0 == peer }
            queue.isInRing = false
        }
        peerQueues[peer] = queue
        deadlines.insert(Deadline(at: until, target: .peer(peer), generation: lastGeneration))
    }

    private mutating func endBackoff(_ peer: PeerID) {
        peerQueues[peer]?.backoffEnd = nil
        enqueue(peer)
    }

    private mutating func remove(_ id: TransferID, _ state: TransferState) {
        guard let entry = entries.removeValue(forKey: id) else { return }
        byKey[entry.key] = nil
        if state == .done { pauses.lift(entry.key) }
        actions.append(.changed(id, state))
    }

    private mutating func reportState(_ id: TransferID) {
        if let state = state(of: id) { actions.append(.changed(id, state)) }
    }

    private mutating func nextGeneration() -> UInt64 {
        lastGeneration += 1
        return lastGeneration
    }

    private func isCurrent(_ deadline: Deadline) -> Bool {
        switch deadline.target {
        case .transfer(let id): entries[id]?.generation == deadline.generation
        case .peer(let peer): peerQueues[peer]?.backoffEnd != nil && peerQueues[peer]?.generation == deadline.generation
        }
    }

    /// Starts transfers while slots are free, selects attempts to preempt, arms the next deadline, and returns all actions.
    private mutating func advance(_ now: Instant) -> [Action] {
        var index = ring.startIndex
        while received.count < Self.maximumReceived, index < ring.endIndex {
            let peer = ring[index]
            guard let id = next(of: peer) else {
                ring.remove(at: index)
                peerQueues[peer]?.isInRing = false
                continue
            }
            let attempt = TransferAttemptID(lastAttempt + 1)
            guard let slot = slot(for: id, of: peer, attempt) else {
                // A peer with its maximum number of slots is skipped. In any other case no slot is free for any peer.
                guard slots.hasMaximum(peer) else { break }
                index += 1
                continue
            }
            ring.remove(at: index)
            peerQueues[peer]?.isInRing = false
            peerQueues[peer]?.ready.removeFirst()
            lastAttempt = attempt.value
            entries[id]?.stage = .running(attempt)
            actions += [.changed(id, .running), .start(id, attempt: attempt, peer: peer, slot: slot)]
            enqueue(peer)
            index = ring.startIndex
        }
        let waiting = received.count < Self.maximumReceived && slots.areAllOccupied ? peersWaitingForSlot() : []
        let (preempted, measured) = slots.preempt(for: waiting, now: now)
        actions += preempted.map { .preempt($0) }
        compact()
        while let next = deadlines.min, !isCurrent(next) { deadlines.removeMin() }
        let due = [deadlines.min?.at, measured].compactMap(\.self).min()
        if due != armed {
            armed = due
            actions.append(.arm(armed))
        }
        defer { actions = [] }
        return actions
    }

    /// Returns the first two peers that wait for a slot. Two are enough to know whether any peer other than a given one waits.
    private mutating func peersWaitingForSlot() -> [PeerID] {
        var found: [PeerID] = []
        for peer in ring where found.count < 2 && next(of: peer) != nil { found.append(peer) }
        return found
    }

    /// Assigns a slot to an attempt of a peer; `nil` if the attempt has to wait.
    private mutating func slot(for id: TransferID, of peer: PeerID, _ attempt: TransferAttemptID) -> Slot? {
        guard let entry = entries[id] else { return nil }
        return slots.assign(
            for: id, of: peer, attempt, isSmall: entry.isSmall, resumes: entry.resumes,
            othersWait: peersWaitingForSlot().contains { $0 != peer })
    }

    /// Returns the next transfer of a peer, after removing stale entries before it.
    private mutating func next(of peer: PeerID) -> TransferID? {
        while let entry = peerQueues[peer]?.ready.first {
            if entries[entry.id]?.generation == entry.generation { return entry.id }
            peerQueues[peer]?.ready.removeFirst()
        }
        return nil
    }

    /// Removes stale deadlines once they are the majority, and the queues of idle peers.
    private mutating func compact() {
        if deadlines.count > 64 + 2 * entries.count { deadlines = Heap(deadlines.unordered.filter(isCurrent)) }
        for (peer, queue) in peerQueues where queue.ready.isEmpty && queue.backoffEnd == nil && queue.interruptions == 0 {
            peerQueues[peer] = nil
        }
    }
}
