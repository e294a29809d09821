public import HexlistModel

/// Decides from which machines of the same user to request lists, and when (Docs/Lists.md, "Exchange").
///
/// Performs no IO, and uses no clock: the caller passes in the time, carries out the returned actions in order, and calls `tick` at
/// `nextWake`. Each request is answered by exactly one call. Answers that do not match the state of the peer are ignored, such as those of
/// a session that has ended. Memory is bounded by `ListLimits.ownMachines`.
public struct ListExchange: Sendable {
    public typealias Instant = ContinuousClock.Instant

    public enum Action: Equatable, Sendable {
        /// Send `ListNews` to the peer.
        case announce(PeerID)
        /// Read the local state of the list, request `GET /lists`, and read the local state again. Answered by `overviewArrived` or `failed`.
        case requestOverview(PeerID)
        /// Request the page after the stored cursor, and store its rows. Answered by `pageStored` or `failed`.
        case requestPage(ListNode.ID, PeerID)
        /// Replace the own collection by that of the peer, whose rows were all requested, and add the own rows to it. Answered by `joined`
        /// or `failed`.
        case join(ListNode.ID, PeerID)
        /// Draw a new replica number, and forget what was received of the peer. Answered by `repaired` or `failed`.
        case repair(ListNode.ID, PeerID)
        /// The status of the peer changed.
        case report(PeerID, Status)
    }

    /// The result of the last exchange with a peer.
    public enum Status: Equatable, Sendable {
        /// Rows are being requested.
        case exchanging
        /// All rows that the peer had at its last answer were received.
        case received
        /// The peer's user has not added this machine to the own machines.
        case unconfirmed
        /// The peer has another collection, which it will replace by that of this machine.
        case awaitingJoin
        /// The peer's clock is more than 12 hours ahead, or behind if negative. Nothing is exchanged.
        case clocksDiffer(milliseconds: Int64)
        /// The lists differ although each side has received all rows of the other. Exchanging all rows did not help.
        case differs
        case failed(Failure)
    }

    public enum Failure: Equatable, Sendable {
        /// The peer cannot be reached, or the connection was lost.
        case unreachable
        /// The peer cannot answer now: it is joining two collections, or was asked for rows after a number that it does not have (status
        /// 503).
        case busy
        /// The peer does not have the list any more (status 404).
        case notFound
        /// The answer is invalid.
        case malformed
        /// My Hexlist has the maximum of rows.
        case full
        /// The disk of this machine has too little free space.
        case diskFull
        /// A version of the peer is further ahead than `ListLimits.ownClockAhead`.
        case versionAhead
        /// The peer has another collection again, after `joinsInInterval` joins.
        case joinedRecently
        /// The store changed during the request. It is repeated, and the failure is not reported.
        case outdated
        /// This machine cannot store the rows.
        case store
    }

    /// The state of this machine's collection in relation to a peer, read in one transaction.
    public struct LocalState: Equatable, Sendable {
        public var list: ListNode.ID
        /// The greatest number of a row.
        public var sequence: Int64
        public var digest: ListDigest
        /// The rows that were received of the peer; `nil` for none.
        public var cursor: ListCursor?
        /// The peer has received all rows up to this number.
        public var acknowledged: Int64

        public init(
            list: ListNode.ID, sequence: Int64, digest: ListDigest, cursor: ListCursor?, acknowledged: Int64
        ) {
            self.list = list
            self.sequence = sequence
            self.digest = digest
            self.cursor = cursor
            self.acknowledged = acknowledged
        }
    }

    /// Minimum interval of announcements, and of overviews requested from one peer.
    public static let interval = Duration.milliseconds(200)
    /// Maximum peers from which rows are requested at the same time. Each may have a page in memory.
    public static let slots = 2
    /// Number of pages after which a peer gives up its slot, if other peers wait.
    public static let pagesInTurn = 16
    /// Pause after so many pages, if the last one has no rows. Such pages need no space at the peer, so it could send them without end.
    public static let emptyPagesPause = Duration.seconds(1)
    /// Interval of requests to a peer whose clock is wrong.
    public static let clockCheck = Duration.seconds(300)
    /// Minimum time between two repairs.
    public static let repairInterval = Duration.seconds(3_600)
    /// Maximum joins with one peer within `joinInterval`. Each writes a backup and all rows. A machine has another collection again after
    /// each join of its own.
    public static let joinsInInterval = 5
    public static let joinInterval = Duration.seconds(3_600)
    private static let backoff = Backoff(from: .seconds(1), to: .seconds(300))

    private enum Work: Equatable {
        case overview
        case pages(of: ListNode.ID, joins: Bool)
    }

    private enum Activity: Equatable {
        case idle
        /// In `queue`, until a slot is free.
        case waiting(Work)
        case overview
        /// - Parameter count: pages since the peer got its slot.
        case page(of: ListNode.ID, joins: Bool, count: Int)
        case joining(ListNode.ID)
        case repairing(ListNode.ID)
        case paused(until: Instant)

        /// Whether the collection of the peer is being received or joined.
        var isJoin: Bool {
            switch self {
            case .waiting(.pages(_, let joins)), .page(_, let joins, _): joins
            case .joining: true
            case .idle, .waiting(.overview), .overview, .repairing, .paused: false
            }
        }

        var hasSlot: Bool {
            switch self {
            case .overview, .page, .joining, .repairing: true
            case .idle, .waiting, .paused: false
            }
        }
    }

    private struct Peer {
        var activity = Activity.idle
        /// Whether the peer announced changes since its last overview was requested.
        var hasNews = false
        var lastOverview: Instant?
        /// Whether the peer's collection is joined after that of another peer.
        var waitsForJoin = false
        /// Whether a page was requested in this session. The last rows of the session before may have been stored, but not acknowledged.
        var hasRequestedPage = false
        /// Failures since rows were stored, or since nothing was left to request.
        var failures = 0
        var status: Status?
    }

    private var peers: [PeerID: Peer] = [:]
    /// The peers that wait for a slot, the first to get one first.
    private var queue: [PeerID] = []
    private var lastAnnouncement: Instant?
    private var isAnnouncementDue = false
    private var lastRepair: Instant?
    /// The times of the joins with each peer within `joinInterval`, also without a session.
    private var lastJoins: [PeerID: [Instant]] = [:]

    public init() {}

    /// The status of a peer; `nil` if there is no session with it, or no answer yet.
    public func status(of peer: PeerID) -> Status? { peers[peer]?.status }

    /// The time at which `tick` has to be called; `nil` if nothing is due.
    public var nextWake: Instant? {
        var earliest = isAnnouncementDue ? lastAnnouncement.map { $0 + Self.interval } : nil
        for case .paused(let until) in peers.values.lazy.map(\.activity) { earliest = earliest.map { min($0, until) } ?? until }
        return earliest
    }

    // MARK: - Peers

    /// Handles a new session with an own machine that exchanges lists, or an existing session when the peer becomes an own machine. Peers
    /// beyond `ListLimits.ownMachines` are ignored.
    public mutating func opened(_ peer: PeerID, now: Instant, _ actions: inout [Action]) {
        guard peers[peer] != nil || peers.count < ListLimits.ownMachines else { return }
        peers[peer, default: Peer()].hasNews = true
        peers[peer]?.hasRequestedPage = false
        actions.append(.announce(peer))
        schedule(peer, now: now, &actions)
    }

    /// Handles the end of the last session with a peer, or its removal from the own machines.
    public mutating func closed(_ peer: PeerID, now: Instant, _ actions: inout [Action]) {
        guard let state = peers.removeValue(forKey: peer) else { return }
        queue.removeAll { $0 == peer }
        if peers.isEmpty { isAnnouncementDue = false }
        if state.activity.isJoin { continueJoins(now: now, &actions) }
        fillSlots(now: now, &actions)
    }

    /// Handles `ListNews`. A peer can send it as often as it likes.
    public mutating func newsArrived(from peer: PeerID, now: Instant, _ actions: inout [Action]) {
        guard let state = peers[peer] else { return }
        // The pause after a repair that did not help delays the next repair, not the exchange of further changes.
        if state.status == .differs, case .paused = state.activity { peers[peer]?.activity = .idle }
        peers[peer]?.hasNews = true
        schedule(peer, now: now, &actions)
    }

    // MARK: - Announcing

    /// Announces a commit that changed rows. The first announcement is immediate, later ones follow after `interval`.
    public mutating func changed(now: Instant, _ actions: inout [Action]) {
        guard !peers.isEmpty else { return }
        if let lastAnnouncement, now < lastAnnouncement + Self.interval {
            isAnnouncementDue = true
        } else {
            announce(now: now, &actions)
        }
    }

    private mutating func announce(now: Instant, _ actions: inout [Action]) {
        isAnnouncementDue = false
        lastAnnouncement = now
        for peer in peers.keys.sorted() { actions.append(.announce(peer)) }
    }

    public mutating func tick(now: Instant, _ actions: inout [Action]) {
        if isAnnouncementDue, let lastAnnouncement, now >= lastAnnouncement + Self.interval { announce(now: now, &actions) }
        for (peer, state) in peers.sorted(by: { $0.key < $1.key }) {
            if case .paused(let until) = state.activity, now >= until { enqueue(peer, .overview) }
        }
        fillSlots(now: now, &actions)
    }

    // MARK: - Answers

    /// Handles the answer to `requestOverview`.
    /// - Parameters:
    ///   - before: the local state before the request was sent.
    ///   - localState: the local state after the answer arrived.
    ///   - clock: this machine's clock, in milliseconds since 1970.
    public mutating func overviewArrived(
        _ overview: ListOverview, from peer: PeerID, before: LocalState, localState: LocalState, clock: Int64, now: Instant,
        _ actions: inout [Action]
    ) {
        guard peers[peer]?.activity == .overview else { return }
        if let ahead = overview.clockDifference(at: clock) {
            report(.clocksDiffer(milliseconds: ahead), of: peer, &actions)
            return finish(peer, pauseUntil: now + Self.clockCheck, now: now, &actions)
        }
        guard overview.isOwnMachine else {
            report(.unconfirmed, of: peer, &actions)
            return finish(peer, now: now, &actions)
        }
        guard let theirs = overview.lists.first(where: { $0.role == .own }) else {
            return failed(.malformed, peer, now: now, &actions)
        }
        guard theirs.list == localState.list else {
            guard ListNode.ID.remaining(localState.list, theirs.list) == theirs.list else {
                report(.awaitingJoin, of: peer, &actions)
                return finish(peer, now: now, &actions)
            }
            let recent = lastJoins[peer, default: []].filter { now < $0 + Self.joinInterval }
            if recent.count >= Self.joinsInInterval, let first = recent.first {
                report(.failed(.joinedRecently), of: peer, &actions)
                return finish(peer, pauseUntil: first + Self.joinInterval, now: now, &actions)
            }
            // The store has the rows of one other collection. Afterwards, both may be the same one.
            guard !peers.values.contains(where: \.activity.isJoin) else {
                peers[peer]?.waitsForJoin = true
                report(.exchanging, of: peer, &actions)
                return finish(peer, now: now, &actions)
            }
            return request(.pages(of: theirs.list, joins: true), peer, now: now, &actions)
        }
        // A cursor ahead of the peer's number is sent as well: the peer then notices that an old copy of its store is running.
        guard localState.cursor == ListCursor(replica: theirs.replica, sequence: theirs.sequence), peers[peer]?.hasRequestedPage ?? false
        else {
            return request(.pages(of: theirs.list, joins: false), peer, now: now, &actions)
        }
        guard !isDifferent(theirs, before, localState) else { return repair(theirs.list, peer, now: now, &actions) }
        report(.received, of: peer, &actions)
        finish(peer, now: now, &actions)
    }

    /// Whether the digests of two equal sets of rows differ. The rows were equal when the peer made the overview, if the peer had received
    /// all own rows before the request, none were added since then, and all rows of the peer were received.
    private func isDifferent(_ theirs: ListOverview.Entry, _ before: LocalState, _ localState: LocalState) -> Bool {
        before.list == localState.list && before.sequence == localState.sequence && before.acknowledged >= before.sequence
            && localState.digest != theirs.digest
    }

    private mutating func repair(_ list: ListNode.ID, _ peer: PeerID, now: Instant, _ actions: inout [Action]) {
        if let lastRepair, now < lastRepair + Self.repairInterval {
            report(.differs, of: peer, &actions)
            return finish(peer, pauseUntil: lastRepair + Self.repairInterval, now: now, &actions)
        }
        lastRepair = now
        peers[peer]?.activity = .repairing(list)
        actions.append(.repair(list, peer))
    }

    /// Handles the end of `repair`.
    public mutating func repaired(_ peer: PeerID, now: Instant, _ actions: inout [Action]) {
        guard case .repairing(let list) = peers[peer]?.activity else { return }
        request(.pages(of: list, joins: false), peer, now: now, &actions)
        changed(now: now, &actions)
    }

    /// Handles a page whose rows are stored. After a page with rows, another one is requested, which acknowledges them.
    public mutating func pageStored(
        _ list: ListNode.ID, from peer: PeerID, hasRows: Bool, isLast: Bool, now: Instant, _ actions: inout [Action]
    ) {
        guard case .page(list, let joins, let count) = peers[peer]?.activity else { return }
        if hasRows { peers[peer]?.failures = 0 }
        if !isLast, !hasRows, count >= Self.pagesInTurn {
            peers[peer]?.hasNews = true
            return finish(peer, pauseUntil: now + Self.emptyPagesPause, now: now, &actions)
        }
        if !isLast || hasRows {
            guard count >= Self.pagesInTurn, !queue.isEmpty else {
                peers[peer]?.activity = .page(of: list, joins: joins, count: count + 1)
                actions.append(.requestPage(list, peer))
                return
            }
            enqueue(peer, .pages(of: list, joins: joins))
            return fillSlots(now: now, &actions)
        }
        if joins {
            peers[peer]?.activity = .joining(list)
            actions.append(.join(list, peer))
        } else {
            // One more overview compares the digests, and reports the result.
            peers[peer]?.failures = 0
            peers[peer]?.hasNews = true
            finish(peer, now: now, &actions)
        }
    }

    /// Handles a join that is stored, also if the session with the peer has ended. This machine has another list now, so it requests the
    /// lists of all peers again.
    public mutating func listReplaced(byThatOf peer: PeerID, now: Instant, _ actions: inout [Action]) {
        lastJoins = lastJoins.mapValues { $0.filter { now < $0 + Self.joinInterval } }.filter { !$0.value.isEmpty }
        lastJoins[peer, default: []].append(now)
        changed(now: now, &actions)
        for other in peers.keys.sorted() {
            peers[other]?.hasNews = true
            schedule(other, now: now, &actions)
        }
    }

    /// Handles the end of `join`, after `listReplaced`.
    public mutating func joined(_ list: ListNode.ID, with peer: PeerID, now: Instant, _ actions: inout [Action]) {
        guard peers[peer]?.activity == .joining(list) else { return }
        report(.received, of: peer, &actions)
        finish(peer, now: now, &actions)
    }

    /// Handles the failure of a request. It is repeated after a delay that doubles with each failure, up to 5 minutes.
    public mutating func failed(_ failure: Failure, _ peer: PeerID, now: Instant, _ actions: inout [Action]) {
        guard let state = peers[peer], state.activity.hasSlot else { return }
        peers[peer]?.failures = min(state.failures + 1, 64)
        if failure != .outdated { report(.failed(failure), of: peer, &actions) }
        finish(peer, pauseUntil: now + Self.backoff.pause(after: state.failures + 1), now: now, &actions)
        if state.activity.isJoin { continueJoins(now: now, &actions) }
    }

    /// Requests the overviews of the peers that waited for the end of a join.
    private mutating func continueJoins(now: Instant, _ actions: inout [Action]) {
        for peer in peers.keys.sorted() where peers[peer]?.waitsForJoin ?? false {
            peers[peer]?.hasNews = true
            schedule(peer, now: now, &actions)
        }
    }

    // MARK: - Slots

    /// Requests an overview if there is news and the peer is idle, but not before `interval` after the last one.
    private mutating func schedule(_ peer: PeerID, now: Instant, _ actions: inout [Action]) {
        guard let state = peers[peer], state.hasNews, state.activity == .idle else { return }
        if let last = state.lastOverview, now < last + Self.interval {
            peers[peer]?.activity = .paused(until: last + Self.interval)
            return
        }
        enqueue(peer, .overview)
        fillSlots(now: now, &actions)
    }

    private mutating func enqueue(_ peer: PeerID, _ work: Work) {
        peers[peer]?.activity = .waiting(work)
        queue.append(peer)
    }

    /// Ends the activity of a peer, and gives its slot to the next one.
    /// - Parameter time: the time of the next overview; `nil` for the time at which the peer announces changes.
    private mutating func finish(_ peer: PeerID, pauseUntil time: Instant? = nil, now: Instant, _ actions: inout [Action]) {
        peers[peer]?.activity = time.map { .paused(until: $0) } ?? .idle
        schedule(peer, now: now, &actions)
        fillSlots(now: now, &actions)
    }

    private mutating func fillSlots(now: Instant, _ actions: inout [Action]) {
        var free = Self.slots - peers.values.count { $0.activity.hasSlot }
        while free > 0, !queue.isEmpty {
            let peer = queue.removeFirst()
            guard case .waiting(let work) = peers[peer]?.activity else { continue }
            request(work, peer, now: now, &actions)
            free -= 1
        }
    }

    /// Sends the first request of a peer that has a slot.
    private mutating func request(_ work: Work, _ peer: PeerID, now: Instant, _ actions: inout [Action]) {
        switch work {
        case .overview:
            peers[peer]?.hasNews = false
            peers[peer]?.waitsForJoin = false
            peers[peer]?.lastOverview = now
            peers[peer]?.activity = .overview
            actions.append(.requestOverview(peer))
        case .pages(let list, let joins):
            peers[peer]?.activity = .page(of: list, joins: joins, count: 1)
            peers[peer]?.hasRequestedPage = true
            report(.exchanging, of: peer, &actions)
            actions.append(.requestPage(list, peer))
        }
    }

    private mutating func report(_ status: Status, of peer: PeerID, _ actions: inout [Action]) {
        switch status {
        case .received, .unconfirmed, .awaitingJoin: peers[peer]?.failures = 0
        case .exchanging, .clocksDiffer, .differs, .failed: break
        }
        guard peers[peer]?.status != status else { return }
        peers[peer]?.status = status
        actions.append(.report(peer, status))
    }
}
