import DequeModule
import HeapModule
public import HexlistModel

/// The state machine of all transfers. It decides which of them run, which wait, and which are suspended after failures.
///
/// Performs no IO and has no clock. The caller passes in events with the current time, carries out the returned actions in order, and calls
/// `deadlineReached` at the instant of the last `arm` action.
///
/// - At most `slotCount` slots are in use. Peers are served in round-robin order. The transfers of a peer start in the order in which they
///   were added.
/// - A slot has one transfer, or up to `maximumPerSlot` small transfers of one peer that were never tried before. If all slots are in use
///   and another peer waits, no further transfer joins a slot.
/// - While another peer waits, a peer has at most `maximumSlotsPerPeer` slots. A transfer slower than `minimumRate` is then preempted: it
///   goes to the end of its peer's queue, and resumes later. A transfer that cannot resume is not preempted.
/// - An offline peer, a lost connection or a full disk only makes a transfer wait. After `attemptsPerRound` failures of the source, the
///   transfer is suspended; meanwhile it starts only by force. After `maximumRounds` such rounds the transfer has failed.
/// - An attempt that has received all bytes may release its slot before it ends (`received`). At most `maximumReceived` attempts may be in
///   this state before no further transfer starts.
/// - Each start is a new attempt with its own ID. Calls for attempts that were stopped have no effect.
public struct TransferQueue: Sendable {
    public typealias Instant = ContinuousClock.Instant

    /// An action that the caller carries out.
    public enum Action: Equatable, Sendable {
        /// Start or resume a transfer, and call `ended` with this attempt at its end. The slot may be shared with other attempts.
        case start(TransferID, attempt: TransferAttemptID, peer: PeerID, slot: Slot)
        /// Stop an attempt. Calls for it have no effect any more.
        case stop(TransferAttemptID)
        /// Stop an attempt, and call `ended` with `preempted`. Ignore the action if the attempt has received all bytes.
        case preempt(TransferAttemptID)
        /// The state of a transfer has changed. When a peer connects or disconnects, the changes of its waiting transfers are not reported
        /// (`state(of:)`).
        case changed(TransferID, TransferState)
        /// Call `deadlineReached` at this instant instead of the previous one; `nil` to cancel it.
        case arm(Instant?)
    }

    /// The result of an attempt.
    public enum AttemptResult: Equatable, Sendable {
        /// The file is complete and has its final name.
        case done
        /// The connection failed or was lost. `progressed`: whether the attempt received any bytes.
        case interrupted(progressed: Bool)
        case diskFull
        /// The attempt was stopped to free its slot. The transfer resumes later.
        case preempted
        /// The source failed, but another attempt may succeed: a server error, too few bytes, or a wrong digest.
        case sourceFault
        /// Another attempt would fail too: the file no longer exists, has changed, or cannot be written.
        case final
    }

    /// A slot, and whether several small transfers may use it at the same time.
    public struct Slot: Hashable, Sendable {
        public let number: Int
        public let isShared: Bool
    }

    /// The result of a request to start or retry a transfer.
    public enum Admission: Equatable, Sendable {
        case accepted
        /// The same file is already being transferred into the same folder, by the transfer with this ID.
        case known(TransferID)
        /// The transfer failed repeatedly and is suspended until this instant. With `force`, it would have been accepted.
        case paused(until: Instant)
        /// The queue has `maximumCount` transfers.
        case full
        /// The queue has no such transfer.
        case unknown
    }

    /// Maximum number of slots in use.
    public static let slotCount = 4
    /// Maximum number of slots of one peer while another peer waits.
    public static let maximumSlotsPerPeer = 3
    /// Minimum average rate in bytes per second over `rateWindow`: 64 kbit/s (ISDN), or 1 MiB in two minutes. A slower transfer is
    /// preempted while another peer waits. It then runs for one window at a time.
    public static let minimumRate: Int64 = 8 << 10
    /// Period over which the rate is measured. It begins when another peer waits, and is longer than connecting takes.
    public static let rateWindow = Duration.seconds(30)
    /// Maximum number of small transfers that share a slot.
    public static let maximumPerSlot = 16
    /// Maximum number of attempts without a slot that have not ended: all bytes were received, but the files do not have their final names
    /// yet.
    public static let maximumReceived = 256
    /// Number of failures of the source after which a transfer is suspended.
    public static let attemptsPerRound = 3
    /// Number of suspensions after which a transfer has failed.
    public static let maximumRounds = 3
    /// Time for which a transfer is suspended.
    public static let pause = FailureBackoff<TransferKey>.duration
    /// Time after which a transfer is tried again if the disk was full.
    public static let diskRetryDelay = Duration.seconds(60)
    /// Maximum number of transfers in the queue, enough for ten folders of 10 000 files.
    public static let maximumCount = 100_000
    private static let linkBackoff = Backoff(from: .seconds(1), to: .seconds(60))
    private static let sourceBackoff = Backoff(from: .seconds(1), to: .seconds(10))

    private enum Stage: Sendable {
        /// The transfer is in the queue of its peer.
        case ready
        case running(TransferAttemptID)
        case timed(TransferWait, until: Instant)
        case paused(until: Instant)
    }

    private struct Entry: Sendable {
        let peer: PeerID
        let key: TransferKey
        /// Whether the transfer may share a slot. `false` after its first attempt, because this transfer may have caused the failure, and
        /// would also affect the others.
        var isSmall: Bool
        /// Whether an interrupted transfer can continue without fetching the same bytes again.
        let resumes: Bool
        var stage = Stage.ready
        /// The generation of the newest entry for this transfer in a queue or among the deadlines. Entries with another generation are
        /// outdated, and ignored.
        var generation: UInt64 = 0
        /// Number of consecutive failures of the source since the last suspension.
        var failures = 0
        /// Number of suspensions so far.
        var rounds = 0
    }

    /// The queue of the transfers of one peer that are ready to start, and the state of the connection to the peer.
    private struct PeerQueue: Sendable {
        /// The transfers in the order in which they start. May contain outdated entries.
        var ready: Deque<ReadyEntry> = []
        /// End of the pause after a lost connection; `nil` if there is none.
        var backoffEnd: Instant?
        var generation: UInt64 = 0
        /// Number of consecutive connections that were lost before any byte was received.
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
    /// Attempts that have released their slot: they have received all bytes, but have not ended.
    private var received: [TransferAttemptID: TransferID] = [:]
    private var peerQueues: [PeerID: PeerQueue] = [:]
    /// The connected peers that have ready transfers, in round-robin order, beginning with the next one.
    private var ring: Deque<PeerID> = []
    private var reachable: Set<PeerID> = []
    private var pauses = FailureBackoff<TransferKey>()
    private var deadlines: Heap<Deadline> = []
    private var armed: Instant?
    private var lastAttempt: UInt64 = 0
    private var lastGeneration: UInt64 = 0
    private var actions: [Action] = []

    public init() {}

    /// Number of transfers in the queue.
    public var count: Int { entries.count }
    /// Number of attempts that have a slot.
    public var runningCount: Int { slots.attempts.count }
    /// Number of entries in all collections of the queue. Tests check that it stays bounded.
    var bookkeepingCount: Int {
        peerQueues.values.reduce(peerQueues.count) { $0 + $1.ready.count } + ring.count + pauses.count + deadlines.count
    }

    /// Returns the state of a transfer; `nil` if it is not in the queue.
    public func state(of id: TransferID) -> TransferState? {
        guard let entry = entries[id] else { return nil }
        switch entry.stage {
        case .ready: return .waiting(!reachable.contains(entry.peer) ? .peer : peerQueues[entry.peer]?.backoffEnd != nil ? .link : .slot)
        case .running: return .running
        case .timed(let wait, _): return .waiting(wait)
        case .paused(let until): return .paused(until: until)
        }
    }

    /// Returns the instant until which transfers with this key are suspended after failures; `nil` if they are not suspended.
    public func pause(of key: TransferKey, now: Instant) -> Instant? { pauses.end(of: key, now: now) }

    // MARK: Requests

    /// Adds a transfer: a new one, or after a restart one from the store.
    /// - Parameters:
    ///   - isSmall: whether the transfer may share a slot.
    ///   - resumes: whether an interrupted transfer can continue without fetching the same bytes again.
    ///   - force: whether to start the transfer even if it is suspended.
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

    /// Ends the wait of a transfer, so that it starts as soon as a slot is free. A suspended transfer is started only with `force`. Has no
    /// effect on a running transfer.
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

    /// Removes a transfer from the queue, and stops its attempt if there is one.
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

    /// Handles the connection of a peer. Its transfers may start now.
    public mutating func peerCame(_ peer: PeerID, now: Instant) -> [Action] {
        reachable.insert(peer)
        endBackoff(peer)
        enqueue(peer)
        return advance(now)
    }

    /// Handles the disconnection of a peer. Its transfers wait until it is connected again; running attempts continue until they end.
    public mutating func peerWent(_ peer: PeerID, now: Instant) -> [Action] {
        reachable.remove(peer)
        if peerQueues[peer]?.isInRing == true {
            ring.removeAll { $0 == peer }
            peerQueues[peer]?.isInRing = false
        }
        return advance(now)
    }

    /// Records the progress of an attempt.
    /// - Parameter arrived: total number of bytes that the attempt has received.
    public mutating func progressed(_ attempt: TransferAttemptID, arrived: Int64) {
        slots.progressed(attempt, arrived: arrived)
    }

    /// Releases the slot of an attempt that has received all bytes, but has not ended.
    public mutating func received(_ attempt: TransferAttemptID, now: Instant) -> [Action] {
        guard let id = slots.leave(attempt) else { return [] }
        received[attempt] = id
        return advance(now)
    }

    /// Handles the end of an attempt. Without effect if the attempt was stopped.
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

    /// Handles the instant of the last `arm` action.
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

    // MARK: Helpers

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

    /// Adds a peer at the end of the round-robin order, if it is connected and has ready transfers.
    private mutating func enqueue(_ peer: PeerID) {
        guard reachable.contains(peer), let queue = peerQueues[peer], !queue.isInRing, queue.backoffEnd == nil, !queue.ready.isEmpty else {
            return
        }
        peerQueues[peer]?.isInRing = true
        ring.append(peer)
    }

    /// Begins a pause for a peer whose connection was lost.
    private mutating func backOff(_ peer: PeerID, progressed: Bool, now: Instant) {
        // Several attempts may have used the same connection. Its loss counts only once.
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

    /// Starts transfers while slots are free, chooses attempts to preempt, sets the next deadline, and returns all actions.
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
                // A peer with its maximum number of slots is skipped. For any other peer, the reason is that no slot is free.
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

    /// Returns the first two peers that wait for a slot. Two suffice to tell whether any peer other than a given one waits.
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

    /// Returns the next transfer of a peer. Outdated entries before it are removed.
    private mutating func next(of peer: PeerID) -> TransferID? {
        while let entry = peerQueues[peer]?.ready.first {
            if entries[entry.id]?.generation == entry.generation { return entry.id }
            peerQueues[peer]?.ready.removeFirst()
        }
        return nil
    }

    /// Removes outdated deadlines once they are the majority, and the queues of peers without transfers.
    private mutating func compact() {
        if deadlines.count > 64 + 2 * entries.count { deadlines = Heap(deadlines.unordered.filter(isCurrent)) }
        for (peer, queue) in peerQueues where queue.ready.isEmpty && queue.backoffEnd == nil && queue.interruptions == 0 {
            peerQueues[peer] = nil
        }
    }
}
