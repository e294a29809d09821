public import HexlistModel

/// Decides from which peers to request which lists, and when (Docs/Lists.md, "Exchange"). The peers are the other machines of the user, and
/// trusted machines of other persons.
///
/// Performs no IO, and uses no clock: the caller passes in the time, carries out the returned actions in order, and calls `tick` at
/// `nextWake`. Each request is answered by exactly one call. Answers that do not match the state of the peer are ignored, such as those of
/// a session that has ended. The number of peers is bounded by `ListLimits.exchangePeers`, and the memory of each by
/// `ListLimits.overviewLists`: it has no state of lists that this machine does not have.
public struct ListExchange: Sendable {
    public typealias Instant = ContinuousClock.Instant

    public enum Action: Equatable, Sendable {
        /// Send `ListNews` to the peer.
        case announce(PeerID)
        /// Read the local state of the lists, request `GET /lists`, and read the local state again. Answered by `overviewArrived` or
        /// `failed`.
        case requestOverview(PeerID)
        /// Request the page after the stored cursor, and store its rows, unless the epoch of the list is no longer `epoch(of:with:)`.
        /// Answered by `pageStored` or `failed`.
        case requestPage(ListNode.ID, PeerID)
        /// Replace the own collection by that of the peer, whose rows were all requested, and add the own rows to it. Answered by `joined`
        /// or `failed`.
        case join(ListNode.ID, PeerID)
        /// Draw a new replica number of the list, and forget which of its rows were received of the peer. Answered by `repaired` or
        /// `failed`.
        case repair(ListNode.ID, PeerID)
        /// The status of the peer changed.
        case report(PeerID, Status)
    }

    /// The result of the last exchange with a peer.
    public enum Status: Equatable, Sendable {
        /// Rows are being requested.
        case exchanging
        /// All rows that the peer had at its last answer were received, of every list.
        case received
        /// The peer's user has not added this machine to the own machines.
        case unconfirmed
        /// The peer has another collection, which it will replace by that of this machine.
        case awaitingJoin
        /// The peer's clock is more than 12 hours ahead, or behind if negative. Nothing is exchanged.
        case clocksDiffer(milliseconds: Int64)
        /// A list differs although each side has received all rows of the other. Exchanging all rows did not help.
        case differs
        /// The last request failed, or the last one for one of the lists.
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
        /// The list has the maximum of rows.
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

    /// The relation of this machine's user to a peer.
    public enum Relation: Equatable, Sendable {
        /// Another machine of the user. Both have one collection.
        case ownMachine
        /// A trusted machine of another person. Only shared lists are exchanged with it.
        case otherPerson
    }

    /// The state of this machine's lists in relation to a peer, read in one transaction.
    public struct LocalState: Equatable, Sendable {
        /// The collection, only for an own machine, and the shared lists of the user.
        public var lists: [List]

        public init(lists: [List]) { self.lists = lists }

        public struct List: Equatable, Sendable {
            public var id: ListNode.ID
            /// Whether the list is My Hexlist.
            public var isCollection: Bool
            /// The greatest number of a row.
            public var sequence: Int64
            public var digest: ListDigest
            /// The rows that were received of the peer; `nil` for none.
            public var cursor: ListCursor?
            /// The peer has received all rows up to this number.
            public var acknowledged: Int64
            /// Whether rows of the list are requested from the peer.
            public var receives: Bool
            /// Whether a different digest leads to a repair. `false` on a machine of the list's owner if the peer is a member: each repair
            /// makes all members fetch all rows again, so a faulty member could cause that every hour.
            public var repairs: Bool
            /// Compared with that of an own machine (`ListOverview.Entry.epoch`).
            public var epoch: UTF8Text

            public init(
                id: ListNode.ID, isCollection: Bool, sequence: Int64, digest: ListDigest, cursor: ListCursor?, acknowledged: Int64,
                receives: Bool, repairs: Bool, epoch: UTF8Text = .empty
            ) {
                self.id = id
                self.isCollection = isCollection
                self.sequence = sequence
                self.digest = digest
                self.cursor = cursor
                self.acknowledged = acknowledged
                self.receives = receives
                self.repairs = repairs
                self.epoch = epoch
            }
        }
    }

    /// Minimum interval of announcements to one peer, and of overviews requested from it.
    public static let interval = Duration.milliseconds(200)
    /// Maximum peers from which rows are requested at the same time. Each may have a page in memory.
    public static let slots = 2
    /// Maximum slots of machines of other persons. The others are left to own machines even if none waits, because a slow peer can keep its
    /// slot until its request times out.
    public static let otherSlots = 1
    /// Number of pages, and the time, after which a peer gives up its slot, if other peers wait.
    public static let pagesInTurn = 16
    public static let turnTime = Duration.seconds(10)
    /// Pause after `pagesInTurn` requests if the last page had no new rows and there is more to request. Such pages take no space, so a
    /// peer could send them without end.
    public static let emptyPagesPause = Duration.seconds(1)
    /// Minimum time between overviews requested from a peer that cannot be reached, but sends news.
    public static let retryInterval = Duration.seconds(1)
    /// Interval of requests to a peer whose clock is wrong.
    public static let clockCheck = Duration.seconds(300)
    /// Minimum time between two repairs of one list.
    public static let repairInterval = Duration.seconds(3_600)
    /// Maximum joins with one peer within `joinInterval`. Each writes a backup and all rows. A machine has another collection again after
    /// each join of its own.
    public static let joinsInInterval = 5
    public static let joinInterval = Duration.seconds(3_600)
    private static let backoff = Backoff(from: .seconds(1), to: .seconds(300))

    /// The lists of which rows are requested after one overview.
    private struct Round: Equatable {
        struct Step: Equatable {
            enum Kind: Equatable {
                case pages
                /// Pages of the collection that will replace the own one.
                case join
                /// A repair, then pages.
                case repair
            }
            let list: ListNode.ID
            var kind: Kind
            let epoch: UTF8Text
        }

        private(set) var steps: [Step]
        var index = 0
        /// Requests since the peer got its slot.
        var requests = 0
        var turnEnd: Instant
        /// Whether all rows of a list were received.
        var hasFinishedList = false

        init(_ steps: [Step], now: Instant) {
            self.steps = steps
            turnEnd = now + ListExchange.turnTime
        }

        var current: Step? { steps.indices.contains(index) ? steps[index] : nil }

        /// Ends the repair of the current list. Its pages follow.
        mutating func finishRepair() { steps[index].kind = .pages }

        mutating func beginTurn(now: Instant) { (requests, turnEnd) = (0, now + ListExchange.turnTime) }
        func isTurnOver(at now: Instant) -> Bool { requests >= ListExchange.pagesInTurn || now >= turnEnd }
    }

    private enum Work: Equatable {
        case overview
        case round(Round)
    }

    private enum Activity: Equatable {
        case idle
        /// In `queue`, until a slot is free.
        case waiting(Work)
        case overview
        case page(Round)
        case joining(ListNode.ID)
        case repairing(Round)
        case paused(until: Instant)

        /// Whether the collection of the peer is being received or joined.
        var isJoin: Bool {
            switch self {
            case .waiting(.round(let round)), .page(let round): round.current?.kind == .join
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

    /// The reason for which a list is requested again later.
    private enum Problem {
        /// - Parameter count: failures since rows were stored, or since nothing was left to request.
        case failed(Failure, count: Int, until: Instant)
        case differs(until: Instant)

        var until: Instant {
            switch self {
            case .failed(_, _, let until), .differs(let until): until
            }
        }
    }

    private struct Peer {
        let relation: Relation
        var activity = Activity.idle
        /// Whether the peer announced changes since its last overview was requested.
        var hasNews = false
        var lastOverview: Instant?
        /// Whether digests differ, but could not be compared yet because the peer had not acknowledged all own rows.
        var awaitsAcknowledgement = false
        /// Whether a peer acknowledged all rows of a list while the overview is requested.
        var wasAcknowledged = false
        /// Whether the peer's collection is joined after that of another peer.
        var waitsForJoin = false
        /// The lists of which a page was requested in this session. The last rows of the session before may have been stored, but not
        /// acknowledged.
        var requestedLists: Set<ListNode.ID> = []
        /// The next round begins with the list after this one, so that each list gets its turn.
        var lastList: ListNode.ID?
        var problems: [ListNode.ID: Problem] = [:]
        /// Failures of requests, not counting those of single lists, since rows were stored, or since nothing was left to request.
        var failures = 0
        var status: Status?
        var lastAnnouncement: Instant?
        var isAnnouncementDue = false

        init(_ relation: Relation) { self.relation = relation }
    }

    private var peers: [PeerID: Peer] = [:]
    /// The peers that wait for a slot, the first to get one first.
    private var queue: [PeerID] = []
    /// The times of the repairs within `repairInterval`, also without a session.
    private var lastRepairs: [ListNode.ID: Instant] = [:]
    /// The times of the joins with each peer within `joinInterval`, also without a session.
    private var lastJoins: [PeerID: [Instant]] = [:]

    public init() {}

    /// The status of a peer; `nil` if there is no session with it, or no answer yet.
    public func status(of peer: PeerID) -> Status? { peers[peer]?.status }

    /// The epoch that a list had on this machine at the peer's last overview, if a page of it is being requested from the peer; otherwise
    /// `nil`. If the epoch is another one now, the page may have rows that were dropped here, and the request has failed as `outdated`.
    public func epoch(of list: ListNode.ID, with peer: PeerID) -> UTF8Text? {
        guard case .page(let round) = peers[peer]?.activity, let step = round.current, step.list == list else { return nil }
        return step.epoch
    }

    /// The time at which `tick` has to be called; `nil` if nothing is due.
    public var nextWake: Instant? {
        var earliest: Instant?
        func include(_ time: Instant) { earliest = earliest.map { min($0, time) } ?? time }
        for peer in peers.values {
            if peer.isAnnouncementDue, let last = peer.lastAnnouncement { include(last + Self.interval) }
            switch peer.activity {
            case .paused(let until): include(until)
            case .idle: for problem in peer.problems.values { include(problem.until) }
            case .waiting, .overview, .page, .joining, .repairing: break
            }
        }
        return earliest
    }

    // MARK: - Peers

    /// Handles a new session with a peer that exchanges lists, or an existing session when the peer becomes trusted. If the relation to the
    /// peer has changed, its exchange begins again, and answers to earlier requests must not be passed in. At most `ListLimits.ownMachines`
    /// own machines have a place, and other peers have the remaining places of `ListLimits.exchangePeers`. Further peers are ignored.
    /// - Parameter requestsLists: whether to send `ListNews` and request the overview now. If `false`, `ListNews` is sent after `changed`, and
    ///   the overview is requested after `newsArrived`.
    public mutating func opened(
        _ peer: PeerID, as relation: Relation, requestsLists: Bool, now: Instant, _ actions: inout [Action]
    ) {
        if let state = peers[peer], state.relation != relation { closed(peer, now: now, &actions) }
        guard peers[peer] != nil || hasPlace(for: relation) else { return }
        peers[peer, default: Peer(relation)].requestedLists = []
        guard requestsLists else { return }
        peers[peer]?.hasNews = true
        actions.append(.announce(peer))
        schedule(peer, now: now, &actions)
    }

    private func hasPlace(for relation: Relation) -> Bool {
        let places =
            switch relation {
            case .ownMachine: ListLimits.ownMachines
            case .otherPerson: ListLimits.exchangePeers - ListLimits.ownMachines
            }
        return peers.values.count { $0.relation == relation } < places
    }

    /// Handles the end of the last session with a peer, or the end of its trust.
    public mutating func closed(_ peer: PeerID, now: Instant, _ actions: inout [Action]) {
        guard let state = peers.removeValue(forKey: peer) else { return }
        queue.removeAll { $0 == peer }
        if state.activity.isJoin { continueJoins(now: now, &actions) }
        fillSlots(now: now, &actions)
    }

    /// Handles `ListNews`, or a change of the lists that this machine receives from the peer. A peer can send it as often as it likes.
    ///
    /// News shows that the peer can be reached, so a pause after `unreachable` ends, but not within `retryInterval` after the last overview.
    public mutating func newsArrived(from peer: PeerID, now: Instant, _ actions: inout [Action]) {
        if let state = peers[peer], state.status == .failed(.unreachable), case .paused(let until) = state.activity,
            let last = state.lastOverview
        {
            peers[peer]?.activity = .paused(until: min(until, max(now, last + Self.retryInterval)))
        }
        peers[peer]?.hasNews = true
        schedule(peer, now: now, &actions)
    }

    /// Handles that a peer has acknowledged all rows of a list. Requests the overview again from peers whose digests could not be compared.
    /// While an overview is requested, only notes it: the local state may be older than the acknowledgement.
    public mutating func listAcknowledged(now: Instant, _ actions: inout [Action]) {
        for (peer, state) in peers.sorted(by: { $0.key < $1.key }) {
            if state.activity == .overview { peers[peer]?.wasAcknowledged = true }
            guard state.awaitsAcknowledgement else { continue }
            peers[peer]?.hasNews = true
            schedule(peer, now: now, &actions)
        }
    }

    // MARK: - Announcing

    /// Announces a commit that changed rows to the peers that may see the changed lists, and to no other one. The first announcement to a
    /// peer is immediate, later ones follow after `interval`.
    public mutating func changed(for changedPeers: Set<PeerID>, now: Instant, _ actions: inout [Action]) {
        for peer in changedPeers.sorted() {
            guard let state = peers[peer] else { continue }
            if let last = state.lastAnnouncement, now < last + Self.interval {
                peers[peer]?.isAnnouncementDue = true
            } else {
                announce(to: peer, now: now, &actions)
            }
        }
    }

    private mutating func announce(to peer: PeerID, now: Instant, _ actions: inout [Action]) {
        peers[peer]?.isAnnouncementDue = false
        peers[peer]?.lastAnnouncement = now
        actions.append(.announce(peer))
    }

    public mutating func tick(now: Instant, _ actions: inout [Action]) {
        for (peer, state) in peers.sorted(by: { $0.key < $1.key }) {
            if state.isAnnouncementDue, let last = state.lastAnnouncement, now >= last + Self.interval {
                announce(to: peer, now: now, &actions)
            }
            switch state.activity {
            case .paused(let until) where now >= until: enqueue(peer, .overview)
            case .idle where state.problems.values.contains { now >= $0.until }:
                peers[peer]?.hasNews = true
                schedule(peer, now: now, &actions)
            case .paused, .idle, .waiting, .overview, .page, .joining, .repairing: break
            }
        }
        fillSlots(now: now, &actions)
    }

    // MARK: - Answers

    /// Handles the answer to `requestOverview`. Lists that this machine does not have are ignored.
    /// - Parameters:
    ///   - before: the local state before the request was sent.
    ///   - localState: the local state after the answer arrived.
    ///   - clock: this machine's clock, in milliseconds since 1970.
    public mutating func overviewArrived(
        _ overview: ListOverview, from peer: PeerID, before: LocalState, localState: LocalState, clock: Int64, now: Instant,
        _ actions: inout [Action]
    ) {
        guard let state = peers[peer], state.activity == .overview else { return }
        if let ahead = overview.clockDifference(at: clock) {
            report(.clocksDiffer(milliseconds: ahead), of: peer, &actions)
            return finish(peer, pauseUntil: now + Self.clockCheck, now: now, &actions)
        }
        if state.relation == .ownMachine {
            guard overview.isOwnMachine else {
                peers[peer]?.problems = [:]
                report(.unconfirmed, of: peer, &actions)
                return finish(peer, now: now, &actions)
            }
            guard let theirs = overview.lists.first(where: { $0.role == .own }) else {
                return failed(.malformed, peer, now: now, &actions)
            }
            guard let collection = localState.lists.first(where: \.isCollection) else {
                return failed(.outdated, peer, now: now, &actions)
            }
            guard theirs.list == collection.id else { return collectionsDiffer(collection.id, theirs.list, peer, now: now, &actions) }
        }
        let steps = steps(for: overview, from: peer, before, localState, now: now)
        guard steps.isEmpty else { return proceed(Round(steps, now: now), of: peer, now: now, &actions) }
        peers[peer]?.failures = 0
        reportProgress(of: peer, isExchanging: false, &actions)
        finish(peer, now: now, &actions)
    }

    /// Handles the overview of an own machine with another collection. No other lists of this machine are requested.
    private mutating func collectionsDiffer(
        _ own: ListNode.ID, _ theirs: ListNode.ID, _ peer: PeerID, now: Instant, _ actions: inout [Action]
    ) {
        peers[peer]?.problems = [:]
        guard ListNode.ID.remaining(own, theirs) == theirs else {
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
        proceed(Round([Round.Step(list: theirs, kind: .join, epoch: .empty)], now: now), of: peer, now: now, &actions)
    }

    // MARK: - Lists of a peer

    /// Returns the lists of an overview of which rows have to be requested now, the collection first.
    private mutating func steps(
        for overview: ListOverview, from peer: PeerID, _ before: LocalState, _ localState: LocalState, now: Instant
    ) -> [Round.Step] {
        guard let state = peers[peer] else { return [] }
        let known = Dictionary(localState.lists.map { ($0.id, $0) }) { first, _ in first }
        let knownBefore = Dictionary(before.lists.map { ($0.id, $0) }) { first, _ in first }
        var received: [ListNode.ID: ListOverview.Entry] = [:]
        for entry in overview.lists where received[entry.list] == nil {
            if let local = known[entry.list], Self.isReceived(local, entry, from: state.relation) { received[entry.list] = entry }
        }
        peers[peer]?.requestedLists.formIntersection(received.keys)
        // The delay after a failure stays if the list is missing in this overview, and comes back with a later one.
        peers[peer]?.problems = state.problems.filter { list, problem in
            guard received[list] == nil else { return true }
            guard case .failed = problem, let local = known[list] else { return false }
            return local.receives && now < problem.until
        }
        /// The collection first, then the lists after the one that was requested last, then the others.
        func order(_ list: ListNode.ID) -> (Int, ListNode.ID) {
            if known[list]?.isCollection ?? false { return (0, list) }
            let isAfterLast = state.lastList.map { list > $0 } ?? true
            return (isAfterLast ? 1 : 2, list)
        }
        var steps: [Round.Step] = []
        for list in received.keys.sorted(by: { order($0) < order($1) }) {
            guard let entry = received[list], let local = known[list] else { continue }
            guard let kind = nextRequest(of: local, entry, before: knownBefore[list], peer, now: now) else { continue }
            steps.append(Round.Step(list: list, kind: kind, epoch: local.epoch))
        }
        return steps
    }

    /// Whether rows of a list are requested from a peer that has it.
    private static func isReceived(_ local: LocalState.List, _ entry: ListOverview.Entry, from relation: Relation) -> Bool {
        guard local.receives, entry.access != .ended else { return false }
        return switch (entry.role, relation) {
        case (.own, .ownMachine): local.isCollection
        case (.own, .otherPerson): false
        case (.shared, .ownMachine), (.joined, .ownMachine): !local.isCollection && entry.epoch == local.epoch
        case (.shared, .otherPerson), (.joined, .otherPerson): !local.isCollection
        }
    }

    /// Returns `nil` if nothing has to be requested now. Updates the problem of the list.
    private mutating func nextRequest(
        of local: LocalState.List, _ theirs: ListOverview.Entry, before: LocalState.List?, _ peer: PeerID, now: Instant
    ) -> Round.Step.Kind? {
        if case .failed(_, _, let until) = peers[peer]?.problems[local.id], now < until { return nil }
        // A cursor ahead of the peer's number is sent as well: the peer then notices that an old copy of its store is running.
        guard local.cursor == ListCursor(replica: theirs.replica, sequence: theirs.sequence),
            peers[peer]?.requestedLists.contains(local.id) ?? false
        else { return .pages }
        guard local.repairs, let before, Self.isDifferent(theirs, before, local) else {
            peers[peer]?.problems[local.id] = nil
            if local.repairs, local.digest != theirs.digest {
                // If the acknowledgement arrived since the request, nothing else would lead to a comparison.
                let isAcknowledged = peers[peer]?.wasAcknowledged ?? false || local.acknowledged >= local.sequence
                if isAcknowledged { peers[peer]?.hasNews = true } else { peers[peer]?.awaitsAcknowledgement = true }
            }
            return nil
        }
        guard let next = nextRepair(of: local.id), now < next else { return .repair }
        peers[peer]?.problems[local.id] = .differs(until: next)
        return nil
    }

    /// Whether the digests of two equal sets of rows differ. The rows were equal when the peer made the overview, if the peer had received
    /// all own rows before the request, none were added since then, and all rows of the peer were received.
    private static func isDifferent(_ theirs: ListOverview.Entry, _ before: LocalState.List, _ local: LocalState.List) -> Bool {
        before.sequence == local.sequence && before.epoch == local.epoch && before.acknowledged >= before.sequence
            && local.digest != theirs.digest
    }

    /// The time from which a list may be repaired; `nil` if it was not repaired recently.
    private func nextRepair(of list: ListNode.ID) -> Instant? { lastRepairs[list].map { $0 + Self.repairInterval } }

    /// Sends the next request of a round, or ends it. After the end, one more overview compares the digests of the finished lists, and
    /// reports the result.
    private mutating func proceed(_ round: Round, of peer: PeerID, now: Instant, _ actions: inout [Action]) {
        var round = round
        while let step = round.current {
            guard step.kind == .repair else { return requestPage(round, of: peer, &actions) }
            guard let next = nextRepair(of: step.list), now < next else {
                lastRepairs = lastRepairs.filter { now < $0.value + Self.repairInterval }
                lastRepairs[step.list] = now
                round.requests += 1
                peers[peer]?.activity = .repairing(round)
                actions.append(.repair(step.list, peer))
                return
            }
            // Another peer led to a repair since the overview.
            peers[peer]?.problems[step.list] = .differs(until: next)
            round.index += 1
        }
        if round.hasFinishedList { peers[peer]?.hasNews = true }  // otherwise a list failed, which is the result
        finish(peer, now: now, &actions)
    }

    private mutating func requestPage(_ round: Round, of peer: PeerID, _ actions: inout [Action]) {
        guard let list = round.current?.list else { return }
        var round = round
        round.requests += 1
        peers[peer]?.activity = .page(round)
        peers[peer]?.requestedLists.insert(list)
        peers[peer]?.lastList = list
        reportProgress(of: peer, isExchanging: true, &actions)
        actions.append(.requestPage(list, peer))
    }

    /// Goes on with a round after an answer, if it is still the peer's turn.
    private mutating func proceed(
        _ round: Round, of peer: PeerID, afterChanges changedRows: Bool, now: Instant, _ actions: inout [Action]
    ) {
        guard round.current != nil else { return proceed(round, of: peer, now: now, &actions) }
        if !changedRows, round.requests >= Self.pagesInTurn {
            peers[peer]?.hasNews = true
            return finish(peer, pauseUntil: now + Self.emptyPagesPause, now: now, &actions)
        }
        guard round.isTurnOver(at: now), !queue.isEmpty else { return proceed(round, of: peer, now: now, &actions) }
        enqueue(peer, .round(round))
        fillSlots(now: now, &actions)
    }

    /// Handles a page whose rows are stored. After a page with rows, another one is requested, which acknowledges them.
    /// - Parameter changedRows: whether this machine did not have the rows already.
    public mutating func pageStored(
        _ list: ListNode.ID, from peer: PeerID, hasRows: Bool, changedRows: Bool, isLast: Bool, now: Instant, _ actions: inout [Action]
    ) {
        guard case .page(var round) = peers[peer]?.activity, let step = round.current, step.list == list else { return }
        let isFinished = isLast && !hasRows
        if isFinished, step.kind == .join {
            peers[peer]?.activity = .joining(list)
            return actions.append(.join(list, peer))
        }
        if hasRows || isFinished {
            peers[peer]?.failures = 0
            peers[peer]?.problems[list] = nil
        }
        if isFinished {
            round.hasFinishedList = true
            round.index += 1
        }
        proceed(round, of: peer, afterChanges: changedRows, now: now, &actions)
    }

    /// Handles the end of `repair`. The peer is told to request all rows, too. The caller may announce the new replica number to others.
    public mutating func repaired(_ peer: PeerID, now: Instant, _ actions: inout [Action]) {
        guard case .repairing(var round) = peers[peer]?.activity else { return }
        round.finishRepair()
        requestPage(round, of: peer, &actions)
        changed(for: [peer], now: now, &actions)
    }

    /// Handles a join that is stored, also if the session with the peer has ended. This machine has another collection now, so it requests
    /// the lists of all own machines again.
    public mutating func listReplaced(byThatOf peer: PeerID, now: Instant, _ actions: inout [Action]) {
        lastJoins = lastJoins.mapValues { $0.filter { now < $0 + Self.joinInterval } }.filter { !$0.value.isEmpty }
        lastJoins[peer, default: []].append(now)
        let ownMachines = peers.filter { $0.value.relation == .ownMachine }.keys
        changed(for: Set(ownMachines), now: now, &actions)
        for other in ownMachines.sorted() { newsArrived(from: other, now: now, &actions) }
    }

    /// Handles the end of `join`, after `listReplaced`.
    public mutating func joined(_ list: ListNode.ID, with peer: PeerID, now: Instant, _ actions: inout [Action]) {
        guard peers[peer]?.activity == .joining(list) else { return }
        report(.received, of: peer, &actions)
        finish(peer, now: now, &actions)
    }

    /// Handles the failure of a request. It is repeated after a delay that doubles with each failure, up to 5 minutes. If rows of a single
    /// list could not be requested or stored, only this list is delayed, and the others are exchanged.
    public mutating func failed(_ failure: Failure, _ peer: PeerID, now: Instant, _ actions: inout [Action]) {
        guard let state = peers[peer], state.activity.hasSlot else { return }
        if failure != .unreachable, failure != .outdated {
            switch state.activity {
            case .page(let round) where round.current?.kind != .join, .repairing(let round):
                if listFailed(failure, round, peer, now: now, &actions) { return }
            case .idle, .waiting, .overview, .page, .joining, .paused: break
            }
        }
        peers[peer]?.failures = min(state.failures + 1, 64)
        if failure != .outdated { report(.failed(failure), of: peer, &actions) }
        finish(peer, pauseUntil: now + Self.backoff.pause(after: state.failures + 1), now: now, &actions)
        if state.activity.isJoin { continueJoins(now: now, &actions) }
    }

    /// Delays the current list of a round, and goes on with the next one.
    /// - Returns: `false` if `ListLimits.overviewLists` lists are delayed.
    private mutating func listFailed(
        _ failure: Failure, _ round: Round, _ peer: PeerID, now: Instant, _ actions: inout [Action]
    ) -> Bool {
        guard let list = round.current?.list, let problems = peers[peer]?.problems else { return false }
        guard problems[list] != nil || problems.count < ListLimits.overviewLists else { return false }
        var count = 1
        if case .failed(_, let before, _) = problems[list] { count = min(before + 1, 64) }
        peers[peer]?.problems[list] = .failed(failure, count: count, until: now + Self.backoff.pause(after: count))
        reportProgress(of: peer, isExchanging: true, &actions)
        var round = round
        round.index += 1
        proceed(round, of: peer, afterChanges: false, now: now, &actions)
        return true
    }

    /// Requests the overviews of the peers that waited for the end of a join.
    private mutating func continueJoins(now: Instant, _ actions: inout [Action]) {
        for peer in peers.keys.sorted() where peers[peer]?.waitsForJoin ?? false { newsArrived(from: peer, now: now, &actions) }
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
        while let index = nextInQueue() {
            let peer = queue.remove(at: index)
            guard case .waiting(let work) = peers[peer]?.activity else { continue }
            begin(work, peer, now: now, &actions)
        }
    }

    /// The index in `queue` of the next peer that gets a slot; `nil` if none is free.
    private func nextInQueue() -> Int? {
        guard !queue.isEmpty else { return nil }
        let relations = peers.values.lazy.filter(\.activity.hasSlot).map(\.relation)
        guard relations.count < Self.slots else { return nil }
        guard relations.count(where: { $0 == .otherPerson }) >= Self.otherSlots else { return queue.startIndex }
        return queue.firstIndex { peers[$0]?.relation == .ownMachine }
    }

    /// Sends the first request of a peer that has a slot.
    private mutating func begin(_ work: Work, _ peer: PeerID, now: Instant, _ actions: inout [Action]) {
        switch work {
        case .overview:
            peers[peer]?.hasNews = false
            peers[peer]?.waitsForJoin = false
            peers[peer]?.awaitsAcknowledgement = false
            peers[peer]?.wasAcknowledged = false
            peers[peer]?.lastOverview = now
            peers[peer]?.activity = .overview
            actions.append(.requestOverview(peer))
        case .round(var round):
            round.beginTurn(now: now)
            proceed(round, of: peer, now: now, &actions)
        }
    }

    // MARK: - Status

    /// Reports the failure of a list if there is one, otherwise whether rows are being requested, or the result.
    private mutating func reportProgress(of peer: PeerID, isExchanging: Bool, _ actions: inout [Action]) {
        var status: Status = isExchanging ? .exchanging : .received
        var failedList: ListNode.ID?
        for (list, problem) in peers[peer]?.problems ?? [:] {
            switch problem {
            case .failed(let failure, _, _):
                guard failedList.map({ list < $0 }) ?? true else { continue }
                (status, failedList) = (.failed(failure), list)
            case .differs: if failedList == nil, !isExchanging { status = .differs }
            }
        }
        report(status, of: peer, &actions)
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
