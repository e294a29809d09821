import HexlistEventLoop
import HexlistJSON
import HexlistLists
import HexlistModel
import HexlistSession
import HexlistStore
import HexlistSystem
import HexlistTransfers
import HexlistWire
import Logging
import NIOCore

/// Carries out the actions of `ListExchange`: announcements on sessions, requests over connections for files, writes to the store.
final class ListDriver {
    private var exchange = ListExchange()
    /// The trusted peers, as `PeerRegistry` last read them. Each request looks them up again.
    private var relations: [PeerID: ListExchange.Relation] = [:]
    /// The state of each list that was last announced.
    private var announced: [ListNode.ID: AnnouncedList] = [:]
    /// The peers that offer lists. An offer may have ended without the knowledge of the peer, which runs an old copy of its store.
    private var offering: Set<PeerID> = []
    /// Whether `announcedLists` is being read, and whether lists changed meanwhile, so that they are read once more.
    private var isReadingChanges = false
    private var hasFurtherChanges = false
    private let timer: DeadlineTimer
    /// The running requests by their numbers, also those of ended sessions. `stop` waits for them.
    private var requests: [Int: Task<Void, Never>] = [:]
    private var lastRequest = 0
    /// The number of each peer's current request. Results of earlier requests are ignored.
    private var currentRequests: [PeerID: Int] = [:]
    private var changeReports = ListChangeReports()
    private let reportTimer: DeadlineTimer
    /// The last reason of each own machine for which its lists are not exchanged.
    private var stuckReasons: [PeerID: String] = [:]

    init(on eventLoop: any EventLoop, _ clocks: Clocks) {
        timer = DeadlineTimer(on: eventLoop, clocks)
        reportTimer = DeadlineTimer(on: eventLoop, clocks)
    }

    /// Reads which peers exchange lists.
    func start(_ node: isolated Node) { changed(node) }

    /// Waits for the running requests.
    func stop(_ node: isolated Node) async {
        timer.cancel()
        reportTimer.cancel()
        for task in requests.values { task.cancel() }
        for task in requests.values { await task.value }
        record(changeReports.takeAll(), node)
    }

    /// Whether the epoch of a list is that of the overview because of which its rows are requested.
    fileprivate func isCurrent(_ epoch: UTF8Text, of list: ListNode.ID, with peer: PeerID) -> Bool {
        exchange.epoch(of: list, with: peer).map { $0 == epoch } ?? true
    }

    /// Whether the user has another machine that is trusted.
    var hasOwnMachines: Bool { relations.values.contains(.ownMachine) }

    /// The status of a peer; `nil` if there is no session with it, or no answer yet.
    func status(of peer: PeerID) -> ListExchange.Status? { exchange.status(of: peer) }

    // MARK: - Events

    /// Called when the records of peers were read.
    func peersChanged(to relations: [PeerID: ListExchange.Relation], _ node: isolated Node) {
        let before = self.relations
        self.relations = relations
        for (peer, relation) in before.sorted(by: { $0.key < $1.key }) where relations[peer] != relation {
            ended(peer, node)
            record(changeReports.remove(peer), node)
            stuckReasons[peer] = nil
            // The peer then requests the overview once more, and learns that it is no own machine.
            if relation == .ownMachine { node.links[peer]?.sending?.act { $0.announceLists(&$1) } }
        }
        for (peer, relation) in relations.sorted(by: { $0.key < $1.key }) where before[peer] != relation {
            // The peer may have sent `ListNews` before it became trusted.
            opened(peer, requestsLists: true, node)
        }
    }

    /// Handles a new session with a peer. Nothing is requested from another person's machine with which no list is or was shared: if it
    /// shares one, it sends `ListNews`.
    func opened(_ peer: PeerID, _ node: isolated Node) {
        opened(peer, requestsLists: relations[peer] == .ownMachine || hasLists(with: peer), node)
    }

    private func hasLists(with peer: PeerID) -> Bool {
        offering.contains(peer) || announced.values.contains { $0.access[peer] != nil }
    }

    private func opened(_ peer: PeerID, requestsLists: Bool, _ node: isolated Node) {
        guard let relation = relations[peer], node.links[peer]?.sending?.machine.peerHello?.exchangesLists ?? false else { return }
        handle(node) { exchange, now, actions in exchange.opened(peer, as: relation, requestsLists: requestsLists, now: now, &actions) }
    }

    /// Handles the end of the last session with a peer.
    func ended(_ peer: PeerID, _ node: isolated Node) {
        if let number = currentRequests.removeValue(forKey: peer) { requests[number]?.cancel() }
        handle(node) { exchange, now, actions in exchange.closed(peer, now: now, &actions) }
    }

    /// Handles `ListNews`. Ignored unless the peer is trusted.
    func newsArrived(from peer: PeerID, _ node: isolated Node) {
        handle(node) { exchange, now, actions in exchange.newsArrived(from: peer, now: now, &actions) }
    }

    /// Handles that a peer has acknowledged all rows of a list.
    func listAcknowledged(_ node: isolated Node) {
        handle(node) { exchange, now, actions in exchange.listAcknowledged(now: now, &actions) }
    }

    /// Handles a commit that changed lists, or access to them. Reads the state of all lists, and announces the changed ones to the peers
    /// that may see them.
    func changed(_ node: isolated Node) {
        guard !node.isStopping else { return }
        guard !isReadingChanges else {
            hasFurtherChanges = true
            return
        }
        isReadingChanges = true
        lastRequest += 1
        let number = lastRequest
        requests[number] = Task {
            let read = try? await node.store.read { (lists: try $0.announcedLists(), offers: try $0.listOffers()) }
            let driver = node.lists
            driver.requests[number] = nil
            driver.isReadingChanges = false
            if let read {
                driver.offering = Set(read.offers.map(\.peer))
                driver.announce(read.lists, node)
            }
            guard driver.hasFurtherChanges else { return }
            driver.hasFurtherChanges = false
            driver.changed(node)
        }
    }

    private func announce(_ lists: [AnnouncedList], _ node: isolated Node) {
        var (changed, affected): (Set<PeerID>, Set<PeerID>) = ([], [])
        for list in lists {
            let before = announced[list.id]
            if list.sequence != before?.sequence { changed.formUnion(Set(list.access.keys).subtracting(list.former)) }
            for peer in Set(list.access.keys).union(before?.access.keys ?? [:].keys) where list.access[peer] != before?.access[peer] {
                affected.insert(peer)
            }
            announced[list.id] = list
        }
        announced = announced.filter { id, _ in lists.contains { $0.id == id } }
        handle(node) { exchange, now, actions in
            exchange.changed(for: changed.union(affected), now: now, &actions)
            // After a change of access, rows may have to be requested from these peers.
            for peer in affected.sorted() { exchange.newsArrived(from: peer, now: now, &actions) }
        }
    }

    // MARK: - Actions

    fileprivate func handle(
        _ node: isolated Node, _ event: (inout ListExchange, ContinuousClock.Instant, inout [ListExchange.Action]) -> Void
    ) {
        guard !node.isStopping else { return }
        var actions: [ListExchange.Action] = []
        event(&exchange, node.clocks.now, &actions)
        for action in actions { carryOut(action, node) }
        timer.set(exchange.nextWake, node) { node in
            node.lists.handle(node) { exchange, now, actions in exchange.tick(now: now, &actions) }
        }
    }

    private func carryOut(_ action: ListExchange.Action, _ node: isolated Node) {
        switch action {
        case .announce(let peer): node.links[peer]?.sending?.act { $0.announceLists(&$1) }
        case .requestOverview(let peer): perform(with: peer, node) { try await $0.requestOverview(of: peer) }
        case .requestPage(let list, let peer): perform(with: peer, node) { try await $0.requestPage(of: list, from: peer) }
        case .join(let list, let peer): perform(with: peer, node) { try await $0.join(list, with: peer) }
        case .repair(let list, let peer):
            perform(with: peer, node) { node in
                try await node.store.repairList(list, with: peer)
                return { exchange, now, actions in exchange.repaired(peer, now: now, &actions) }
            }
        case .report(let peer, let status): report(status, of: peer, node)
        }
    }

    typealias Event = @Sendable (inout ListExchange, ContinuousClock.Instant, inout [ListExchange.Action]) -> Void

    /// Runs the request of a peer, and passes its result to the state machine, unless the session has ended meanwhile.
    private func perform(
        with peer: PeerID, _ node: isolated Node, _ request: @escaping @Sendable (isolated Node) async throws -> Event
    ) {
        lastRequest += 1
        let number = lastRequest
        currentRequests[peer] = number
        requests[number] = Task {
            let event: Event
            do {
                event = try await request(node)
            } catch {
                let failure = ListExchange.Failure(error)
                node.logger.debug("lists cannot be exchanged", metadata: ["peer.id": "\(peer)", "error": "\(error)"])
                event = { exchange, now, actions in exchange.failed(failure, peer, now: now, &actions) }
            }
            let driver = node.lists
            driver.requests[number] = nil
            guard driver.currentRequests[peer] == number else { return }
            driver.currentRequests[peer] = nil
            driver.handle(node, event)
        }
    }

    private func report(_ status: ListExchange.Status, of peer: PeerID, _ node: isolated Node) {
        node.logger.debug("lists", metadata: ["peer.id": "\(peer)", "status": "\(status)"])
        if status == .received { stuckReasons[peer] = nil }
        // Each attempt ends with the reason again. It is recorded once.
        if let reason = status.stuckReason, stuckReasons.updateValue(reason, forKey: peer) != reason {
            var data = ["reason": reason]
            if case .clocksDiffer(let milliseconds) = status { data["milliseconds"] = "\(milliseconds)" }
            node.events.record(.listStuck, peer: peer, data: data, from: .lists(of: peer), node)
        }
        node.notifyWatchers()
    }

    // MARK: - Changes

    /// Handles the result of a page.
    fileprivate func merged(_ result: ListPageResult, from peer: PeerID, isLast: Bool, _ node: isolated Node) {
        guard relations[peer] != nil else { return }
        record(changeReports.add(result, from: peer, isLast: isLast, now: node.clocks.now), node)
        if let rejection = result.rejection { record([rejection], of: peer, node) }
        scheduleReports(node)
    }

    private func scheduleReports(_ node: isolated Node) {
        reportTimer.set(changeReports.nextDeadline, node) { node in
            let driver = node.lists
            driver.record(driver.changeReports.takeDue(now: node.clocks.now), node)
            driver.scheduleReports(node)
        }
    }

    private func record(_ reports: [ListChangeReports.Report], _ node: isolated Node) {
        for report in reports {
            switch report {
            case .changed(let source, let sums):
                var data = ["added": "\(sums.added)", "changed": "\(sums.changed)", "deleted": "\(sums.deleted)"]
                data["hex"] = source.sharedHex.map(String.init)
                node.events.record(.listChanged, peer: source.peer, data: data, from: .lists(of: source.peer), node)
            case .deleted(let source, let deletion):
                let changes = deletion.changes.map(String.init).joined(separator: " ")
                var data = ["links": "\(deletion.links)", "of": "\(deletion.linksBefore)", "changes": changes]
                data["hex"] = source.sharedHex.map(String.init)
                node.events.record(.listDeleted, peer: source.peer, data: data, from: .deletions(of: source.peer), node)
            }
        }
    }

    /// Records the changes of sharing that an overview of a peer announced.
    fileprivate func record(_ changes: [SharingChange], of peer: PeerID, _ node: isolated Node) {
        for change in changes {
            switch change {
            case .offered(let offer):
                let data = [
                    "offer": "\(offer.number)", "title": offer.title, "access": offer.access.rawValue, "links": "\(offer.links)",
                ]
                node.events.record(.listOffered, peer: peer, data: data, from: .lists(of: peer), node)
            case .ended(let shared): record(shared, ["access": "none"], as: .listEnded, of: peer, node)
            case .resumed(let shared): record(shared, ["access": shared.access.rawValue], as: .listResumed, of: peer, node)
            case .becameReadOnly(let shared): record(shared, ["access": "read"], as: .listEnded, of: peer, node)
            case .rejected(let shared, let rows, let copy):
                var data = ["access": "read", "rejected": "\(rows)"]
                data["copy"] = copy.map(String.init)
                // The rows may have come from an own machine.
                record(
                    shared, data, as: .listEnded, of: shared.peers.contains { $0.peer == peer } ? peer : shared.peers.first?.peer ?? peer,
                    node)
            case .member: break
            }
        }
        if !changes.isEmpty { node.notifyWatchers() }
    }

    private func record(
        _ shared: SharedHex, _ data: [String: String], as type: EventType, of peer: PeerID, _ node: isolated Node
    ) {
        var data = data
        data["title"] = shared.subject
        data["hex"] = shared.hex.map(String.init)
        node.events.record(type, peer: peer, data: data, from: .lists(of: peer), node)
    }
}

extension ListExchange.Status {
    /// The reason for which the lists will not be exchanged without the user; `nil` if there is none.
    fileprivate var stuckReason: String? {
        switch self {
        case .clocksDiffer, .failed(.versionAhead): "clock"
        case .differs: "differs"
        case .failed(.full): "full"
        case .failed(.diskFull): "disk"
        case .exchanging, .received, .unconfirmed, .awaitingJoin, .failed: nil
        }
    }
}

extension Node {
    fileprivate func requestOverview(of peer: PeerID) async throws -> ListDriver.Event {
        let before = try await store.read { try $0.localListState(with: peer) }
        let json = try await transfers.requestList(.overview, from: peer)
        let overview = try ListOverview(decoding: json)
        let clock = clocks.milliseconds
        if overview.clockDifference(at: clock) == nil {
            let corrected = try await store.correctVersions(inListsOf: peer, at: clock)
            if corrected > 0 {
                logger.notice(
                    "values of shared hexes were written while the clock was ahead, and have the present time now",
                    metadata: ["count": "\(corrected)"])
            }
        }
        lists.record(try await store.applyOverview(overview, from: peer, at: clock), of: peer, self)
        let localState = try await store.read { try $0.localListState(with: peer) }
        return { exchange, now, actions in
            exchange.overviewArrived(overview, from: peer, before: before, localState: localState, clock: clock, now: now, &actions)
        }
    }

    fileprivate func requestPage(of list: ListNode.ID, from peer: PeerID) async throws -> ListDriver.Event {
        let (request, isFirst, isOwn, known) = try await store.read { reader in
            (
                try reader.listPageRequest(of: list, from: peer), try list == reader.mineList() && !reader.hasReceivedList(from: peer),
                try reader.isOwnMachine(peer), try reader.localListState(with: peer).lists.first { $0.id == list }
            )
        }
        guard lists.isCurrent(known?.epoch ?? .empty, of: list, with: peer) else { throw ListFault.outdated }
        let json = try await transfers.requestList(.page(list, request), from: peer)
        let now = clocks.milliseconds
        let sender = isOwn ? ListPage.Peer.ownMachine : .otherPerson
        // A collection that is to be joined is not known yet.
        let isShared = known?.isCollection == false
        let page = try await transfers.onFileThread { try ListPage(decoding: json, from: sender, isShared: isShared, now: now) }
        func merge(_ backup: MyHexlistBackup?) async throws -> ListPageResult {
            try await store.mergeListPage(
                page, answering: request, from: peer, as: sender, backup: backup?.path, at: now, diskReserve: diskReserve)
        }
        let result = try await isFirst && !page.nodes.isEmpty ? withBackup(for: peer, merge) : merge(nil)
        if page.skipped > 0 {
            logger.warning("rows of a list were left out", metadata: ["peer.id": "\(peer)", "count": "\(page.skipped)"])
        }
        lists.merged(result, from: peer, isLast: page.isLast && result.fault == nil, self)
        if let fault = result.fault { throw fault }
        return { exchange, now, actions in
            exchange.pageStored(
                list, from: peer, hasRows: !page.nodes.isEmpty, changedRows: result.changedRows, isLast: page.isLast, now: now, &actions)
        }
    }

    /// Writes the hexes of My Hexlist to a file beside the store, then joins the collections. The file is deleted if that fails.
    fileprivate func join(_ list: ListNode.ID, with peer: PeerID) async throws -> ListDriver.Event {
        let result = try await withBackup(for: peer) { backup in
            try await store.joinList(
                list, with: peer, ifStillAt: backup.sequence, backup: backup.path, at: clocks.milliseconds, diskReserve: diskReserve)
        }
        logger.notice(
            "My Hexlist was joined with that of another machine",
            metadata: ["peer.id": "\(peer)", "hexes": "\(result.hexes)", "links": "\(result.links)"])
        lists.handle(self) { exchange, now, actions in exchange.listReplaced(byThatOf: peer, now: now, &actions) }
        return { exchange, now, actions in exchange.joined(list, with: peer, now: now, &actions) }
    }
}

extension ListExchange.Failure {
    init(_ error: any Error) {
        switch error {
        case is JSONFault, ListFault.invalid: self = .malformed
        case is ListPage.VersionAhead: self = .versionAhead
        case ListFault.outdated: self = .outdated
        case ListFault.full: self = .full
        case ListFault.diskFull: self = .diskFull
        case let error as HexlistError:
            switch error.code {
            case .gone: self = .unreachable
            case .notFound: self = .notFound
            case .recentlyFailed: self = .busy
            case .refused: self = .malformed
            default: self = .store
            }
        default: self = .store
        }
    }
}
