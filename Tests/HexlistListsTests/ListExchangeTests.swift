import HexlistModel
import TestSupport
import Testing

@testable import HexlistLists

@Suite("Exchange of lists") struct ListExchangeTests {
    /// A machine with several peers. Collects the actions.
    private struct Machine {
        var exchange = ListExchange()
        var actions: [ListExchange.Action] = []
        var now = ContinuousClock.now
        /// Milliseconds since 1970.
        var clock: Int64 = 1_795_615_200_000
        /// First the collection.
        var localState = ListExchange.LocalState(lists: [
            ListExchange.LocalState.List(
                id: Machine.list, isCollection: true, sequence: 10, digest: ListDigest(5), cursor: nil, acknowledged: 0,
                receives: true, repairs: true)
        ])

        var collection: ListExchange.LocalState.List {
            get { localState.lists[0] }
            set { localState.lists[0] = newValue }
        }

        /// Adds a shared list of which all rows of `entry` were received.
        mutating func add(_ list: ListNode.ID, isReceived: Bool = false, repairs: Bool = true, epoch: UTF8Text = .empty) {
            let cursor = isReceived ? ListCursor(replica: Machine.replica, sequence: 3) : nil
            localState.lists.append(
                ListExchange.LocalState.List(
                    id: list, isCollection: false, sequence: 10, digest: ListDigest(5), cursor: cursor, acknowledged: 10,
                    receives: true, repairs: repairs, epoch: epoch))
        }

        mutating func received(_ list: ListNode.ID) {
            for index in localState.lists.indices where localState.lists[index].id == list {
                localState.lists[index].cursor = ListCursor(replica: Machine.replica, sequence: 3)
            }
        }

        /// An entry of an overview.
        static func entry(
            _ list: ListNode.ID, _ role: ListOverview.Role = .shared, access: ListOverview.Access = .write, sequence: Int64 = 3,
            digest: UInt64 = 5, epoch: UTF8Text = .empty
        ) -> ListOverview.Entry {
            ListOverview.Entry(
                list: list, role: role, access: access, replica: Machine.replica, sequence: sequence, digest: ListDigest(digest),
                epoch: epoch)
        }

        static let list = id(1)
        static let replica = ReplicaNumber(7)

        static func id(_ number: UInt64) -> ListNode.ID {
            var generator = SeededGenerator(seed: number)
            return ListNode.ID(kind: .hex, time: 1_700_000_000_000 + Int64(number), using: &generator)
        }

        mutating func take() -> [ListExchange.Action] {
            defer { actions = [] }
            return actions
        }

        mutating func open(_ peer: PeerID, as relation: ListExchange.Relation = .ownMachine, requestsLists: Bool = true) {
            exchange.opened(peer, as: relation, requestsLists: requestsLists, now: now, &actions)
        }
        mutating func close(_ peer: PeerID) { exchange.closed(peer, now: now, &actions) }
        mutating func joined(_ list: ListNode.ID, _ peer: PeerID) {
            exchange.listReplaced(byThatOf: peer, now: now, &actions)
            exchange.joined(list, with: peer, now: now, &actions)
        }
        mutating func repaired(_ peer: PeerID) { exchange.repaired(peer, now: now, &actions) }
        mutating func acknowledged() { exchange.listAcknowledged(now: now, &actions) }
        mutating func news(_ peer: PeerID) { exchange.newsArrived(from: peer, now: now, &actions) }
        mutating func changed(_ peers: Set<PeerID>) { exchange.changed(for: peers, now: now, &actions) }
        mutating func wait(_ duration: Duration) {
            now += duration
            exchange.tick(now: now, &actions)
        }
        mutating func fail(_ failure: ListExchange.Failure, _ peer: PeerID) { exchange.failed(failure, peer, now: now, &actions) }

        mutating func overview(
            _ peer: PeerID, list: ListNode.ID = Machine.list, sequence: Int64 = 3, digest: UInt64 = 5,
            isOwn: Bool = true, ahead: Int64 = 0, before: ListExchange.LocalState? = nil
        ) {
            answer(
                peer, [Self.entry(list, .own, sequence: sequence, digest: digest)], isOwn: isOwn, ahead: ahead, before: before)
        }

        mutating func answer(
            _ peer: PeerID, _ entries: [ListOverview.Entry], isOwn: Bool = true, ahead: Int64 = 0,
            before: ListExchange.LocalState? = nil
        ) {
            var overview = ListOverview(now: clock + ahead, isOwnMachine: isOwn)
            overview.lists = entries
            exchange.overviewArrived(
                overview, from: peer, before: before ?? localState, localState: localState, clock: clock, now: now, &actions)
        }

        mutating func page(
            _ peer: PeerID, of list: ListNode.ID = Machine.list, hasRows: Bool = true, changedRows: Bool? = nil, isLast: Bool = true
        ) {
            exchange.pageStored(
                list, from: peer, hasRows: hasRows, changedRows: changedRows ?? hasRows, isLast: isLast, now: now, &actions)
        }
    }

    private static func peer(_ number: UInt64) -> PeerID { PeerID(UUIDBytes(high: number, low: number)) }
    private let ada = peer(1)

    /// A machine that has requested the overview of ada again, after it received all rows.
    private func synced() -> Machine {
        var machine = opened()
        machine.overview(ada)
        machine.page(ada, hasRows: false)
        machine.wait(.milliseconds(200))
        #expect(machine.take() == [.report(ada, .exchanging), .requestPage(Machine.list, ada), .requestOverview(ada)])
        machine.collection.cursor = ListCursor(replica: Machine.replica, sequence: 3)
        return machine
    }

    /// A machine that has requested the overview of ada.
    private func opened() -> Machine {
        var machine = Machine()
        machine.open(ada)
        #expect(machine.take() == [.announce(ada), .requestOverview(ada)])
        return machine
    }

    @Test("after an overview, pages are requested until one is last and has no rows; one more overview compares the digests") func pages() {
        var machine = opened()
        machine.overview(ada)
        #expect(machine.take() == [.report(ada, .exchanging), .requestPage(Machine.list, ada)])
        machine.page(ada, isLast: false)
        #expect(machine.take() == [.requestPage(Machine.list, ada)])
        machine.page(ada, hasRows: false, isLast: false)
        #expect(machine.take() == [.requestPage(Machine.list, ada)])
        machine.page(ada)
        #expect(machine.take() == [.requestPage(Machine.list, ada)])
        machine.page(ada, hasRows: false)
        #expect(machine.take() == [] && machine.exchange.nextWake == machine.now + ListExchange.interval)
        machine.wait(ListExchange.interval)
        machine.collection.cursor = ListCursor(replica: Machine.replica, sequence: 3)
        machine.overview(ada)
        #expect(machine.take() == [.requestOverview(ada), .report(ada, .received)] && machine.exchange.nextWake == nil)
    }

    @Test("nothing is requested if all rows were received, except one page in each session, which acknowledges them") func nothingNew() {
        var machine = synced()
        machine.overview(ada)
        #expect(machine.take() == [.report(ada, .received)] && machine.exchange.nextWake == nil)
        machine.close(ada)
        machine.open(ada)
        machine.overview(ada)
        #expect(
            machine.take() == [.announce(ada), .requestOverview(ada), .report(ada, .exchanging), .requestPage(Machine.list, ada)])
    }

    @Test(
        "rows are requested if the peer has another replica number, more rows, or fewer rows",
        arguments: [
            ListCursor(replica: ReplicaNumber(8), sequence: 3), ListCursor(replica: Machine.replica, sequence: 2),
            ListCursor(replica: Machine.replica, sequence: 4),
        ])
    func cursors(cursor: ListCursor) {
        var machine = opened()
        machine.collection.cursor = cursor
        machine.overview(ada)
        #expect(machine.take() == [.report(ada, .exchanging), .requestPage(Machine.list, ada)])
    }

    @Test("news that arrives meanwhile is followed up once, at most every 200 ms") func news() {
        var machine = synced()
        for _ in 0..<1_000 { machine.news(ada) }
        machine.overview(ada)
        #expect(machine.take() == [.report(ada, .received)])
        #expect(machine.exchange.nextWake == machine.now + ListExchange.interval)
        machine.news(ada)
        machine.wait(.milliseconds(199))
        #expect(machine.take() == [])
        machine.wait(.milliseconds(1))
        #expect(machine.take() == [.requestOverview(ada)])
        machine.overview(ada)
        #expect(machine.take() == [] && machine.exchange.nextWake == nil)
        machine.wait(.seconds(1))
        machine.news(ada)
        #expect(machine.take() == [.requestOverview(ada)])
    }

    @Test("changes are announced immediately, then at most every 200 ms") func announcements() {
        var machine = Machine()
        let peers: Set = [ada, Self.peer(2)]
        machine.changed(peers)
        #expect(machine.take() == [] && machine.exchange.nextWake == nil)
        machine.open(ada)
        machine.open(Self.peer(2))
        _ = machine.take()
        machine.changed(peers)
        let both = [ListExchange.Action.announce(ada), .announce(Self.peer(2))]
        #expect(machine.take() == both)
        for _ in 0..<100 { machine.changed(peers) }
        #expect(machine.take() == [] && machine.exchange.nextWake == machine.now + ListExchange.interval)
        machine.wait(.milliseconds(200))
        #expect(machine.take() == both)
        machine.wait(.milliseconds(200))
        #expect(machine.take() == [] && machine.exchange.nextWake == nil)
    }

    @Test("if the clocks differ by more than 12 hours, nothing is requested", arguments: [1, -1] as [Int64])
    func clocks(sign: Int64) {
        var machine = opened()
        let ahead = sign * (ListLimits.clockAhead + 1)
        machine.overview(ada, ahead: ahead)
        #expect(machine.take() == [.report(ada, .clocksDiffer(milliseconds: ahead))])
        #expect(machine.exchange.nextWake == machine.now + ListExchange.clockCheck)
        machine.wait(ListExchange.clockCheck)
        #expect(machine.take() == [.requestOverview(ada)])
        machine.overview(ada, ahead: sign * ListLimits.clockAhead)
        #expect(machine.take() == [.report(ada, .exchanging), .requestPage(Machine.list, ada)])
    }

    @Test("an impossible clock of a peer is no overflow") func extremeClock() throws {
        var machine = opened()
        machine.clock = -5
        machine.overview(ada, ahead: .max)
        guard case .report(_, .clocksDiffer) = try #require(machine.take().first) else { return #expect(Bool(false)) }
    }

    @Test("the delay grows if each overview succeeds and each page fails, and if only the join fails") func failuresOfPages() {
        for joins in [false, true] {
            var machine = opened()
            let list = joins ? Machine.id(0) : Machine.list
            for delay in [1, 2, 4, 8, 16] {
                machine.overview(ada, list: list)
                if joins { machine.page(ada, of: list, hasRows: false) }
                machine.fail(.diskFull, ada)
                _ = machine.take()
                #expect(machine.exchange.nextWake == machine.now + .seconds(delay))
                machine.wait(.seconds(delay))
                #expect(machine.take() == [.requestOverview(ada)])
            }
        }
    }

    @Test("a peer that has not added this machine is asked again only when it announces changes") func unconfirmed() {
        var machine = opened()
        machine.overview(ada, isOwn: false)
        #expect(machine.take() == [.report(ada, .unconfirmed)] && machine.exchange.nextWake == nil)
        machine.wait(.seconds(1))
        machine.news(ada)
        #expect(machine.take() == [.requestOverview(ada)])
    }

    @Test("failures are repeated after a delay that doubles; news does not shorten it") func failures() {
        var machine = opened()
        for (failures, delay) in [(1, 1), (2, 2), (3, 4), (4, 8)] {
            machine.fail(.busy, ada)
            #expect(machine.take() == (failures == 1 ? [.report(ada, .failed(.busy))] : []))
            machine.news(ada)
            #expect(machine.take() == [] && machine.exchange.nextWake == machine.now + .seconds(delay))
            machine.wait(.seconds(delay))
            #expect(machine.take() == [.requestOverview(ada)])
        }
        for _ in 0..<100 {
            machine.fail(.unreachable, ada)
            machine.wait(ListExchange.clockCheck)
        }
        _ = machine.take()
        machine.overview(ada)
        machine.page(ada)
        _ = machine.take()
        machine.fail(.unreachable, ada)
        #expect(machine.take() == [.report(ada, .failed(.unreachable))] && machine.exchange.nextWake == machine.now + .seconds(1))
    }

    @Test("after the end of the session, answers are ignored, and nothing is due") func ended() {
        var machine = opened()
        machine.changed([ada])
        machine.changed([ada])
        _ = machine.take()
        machine.close(ada)
        machine.overview(ada)
        machine.page(ada)
        machine.fail(.unreachable, ada)
        machine.news(ada)
        machine.wait(.seconds(1_000))
        #expect(machine.take() == [] && machine.exchange.nextWake == nil && machine.exchange.status(of: ada) == nil)
    }

    @Test("at most two peers are asked at once, and long exchanges take turns") func slots() {
        var machine = Machine()
        let peers = (1...25).map { Self.peer($0) }
        for peer in peers { machine.open(peer) }
        let asked = machine.take().filter { if case .requestOverview = $0 { true } else { false } }
        #expect(asked == [.requestOverview(peers[0]), .requestOverview(peers[1])])
        machine.overview(peers[0])
        for _ in 1..<ListExchange.pagesInTurn { machine.page(peers[0], isLast: false) }
        #expect(machine.take().last == .requestPage(Machine.list, peers[0]))
        machine.page(peers[0], isLast: false)
        #expect(machine.take() == [.requestOverview(peers[2])])
        // The last peer with a place is the 20th. Then the first one continues with its pages.
        for index in 1..<ListLimits.ownMachines { machine.fail(.unreachable, peers[index]) }
        let rest = machine.take().filter { if case .report = $0 { false } else { true } }
        #expect(rest.last == .requestPage(Machine.list, peers[0]))
        #expect(rest.dropLast() == (3..<ListLimits.ownMachines).map { .requestOverview(peers[$0]) })
    }

    @Test("a slot is passed on when its session ends") func slotOfEndedSession() {
        var machine = Machine()
        for number in 1...3 { machine.open(Self.peer(UInt64(number))) }
        _ = machine.take()
        machine.close(Self.peer(2))
        #expect(machine.take() == [.requestOverview(Self.peer(3))])
    }

    // MARK: - Joining

    @Test("the side whose collection does not remain fetches the other one, then joins") func join() {
        var machine = opened()
        let older = Machine.id(0)
        machine.overview(ada, list: older)
        #expect(machine.take() == [.report(ada, .exchanging), .requestPage(older, ada)])
        machine.page(ada, of: older, isLast: false)
        machine.page(ada, of: older)
        machine.page(ada, of: older, hasRows: false)
        #expect(machine.take() == [.requestPage(older, ada), .requestPage(older, ada), .join(older, ada)])
        machine.open(Self.peer(2))
        _ = machine.take()
        machine.collection.id = older
        machine.joined(older, ada)
        #expect(machine.take() == [.announce(ada), .announce(Self.peer(2)), .report(ada, .received)])
        machine.wait(.milliseconds(200))
        #expect(machine.take() == [.requestOverview(ada)])
    }

    @Test("a peer whose collection changes again is joined five times an hour, also in later sessions") func joinsOften() {
        var machine = opened()
        machine.collection.id = Machine.id(100)
        let time = machine.now
        for join in 1...5 {
            let older = Machine.id(100 - UInt64(join))
            machine.overview(ada, list: older)
            machine.page(ada, of: older, hasRows: false)
            machine.collection.id = older
            // The session ends while the store joins.
            machine.close(ada)
            machine.joined(older, ada)
            machine.wait(.seconds(60))
            machine.open(ada)
            #expect(machine.take().contains(.join(older, ada)))
        }
        machine.overview(ada, list: Machine.id(2))
        #expect(machine.take() == [.report(ada, .failed(.joinedRecently))])
        #expect(machine.exchange.nextWake == time + ListExchange.joinInterval)
        machine.news(ada)
        machine.wait(.seconds(3_299))
        #expect(machine.take() == [])
        machine.wait(.seconds(1))
        #expect(machine.take() == [.requestOverview(ada)])
        machine.overview(ada, list: Machine.id(2))
        #expect(machine.take() == [.report(ada, .exchanging), .requestPage(Machine.id(2), ada)])
    }

    @Test("after 16 pages of which the last has no new rows, the exchange pauses", arguments: [false, true])
    func emptyPages(repeatsRows: Bool) {
        var machine = opened()
        machine.overview(ada)
        for _ in 1..<ListExchange.pagesInTurn { machine.page(ada, hasRows: repeatsRows, changedRows: false, isLast: false) }
        _ = machine.take()
        machine.page(ada, hasRows: repeatsRows, changedRows: false, isLast: false)
        #expect(machine.take() == [] && machine.exchange.nextWake == machine.now + ListExchange.emptyPagesPause)
        machine.wait(ListExchange.emptyPagesPause)
        #expect(machine.take() == [.requestOverview(ada)])
    }

    @Test("a request that became outdated is repeated, and not reported") func outdated() {
        var machine = opened()
        machine.fail(.outdated, ada)
        #expect(machine.take() == [] && machine.exchange.status(of: ada) == nil)
        machine.wait(.seconds(1))
        #expect(machine.take() == [.requestOverview(ada)])
    }

    @Test(
        "the older collection remains", arguments: [(theirs: 0, joins: true), (theirs: 2, joins: false)] as [(theirs: UInt64, joins: Bool)])
    func choice(theirs: UInt64, joins: Bool) {
        var machine = opened()
        let list = Machine.id(theirs)
        machine.overview(ada, list: list)
        #expect(
            machine.take()
                == (joins ? [.report(ada, .exchanging), .requestPage(list, ada)] : [.report(ada, .awaitingJoin)]))
    }

    @Test("two machines of one collection are joined one after the other", arguments: ["joined", "failed", "closed"])
    func joinsOfTwo(end: String) {
        var machine = opened()
        let (older, bob) = (Machine.id(0), Self.peer(2))
        machine.overview(ada, list: older)
        machine.open(bob)
        _ = machine.take()
        machine.overview(bob, list: older)
        #expect(machine.take() == [.report(bob, .exchanging)])
        machine.news(bob)
        machine.wait(.milliseconds(200))
        machine.overview(bob, list: older)
        for _ in 0..<40 { machine.page(ada, of: older, isLast: false) }
        #expect(machine.take().allSatisfy { $0 == .requestPage(older, ada) || $0 == .requestOverview(bob) })
        machine.wait(.seconds(1))
        #expect(machine.take() == [] && machine.exchange.nextWake == nil)
        switch end {
        case "joined":
            machine.page(ada, of: older, hasRows: false)
            machine.collection.id = older
            machine.joined(older, ada)
            _ = machine.take().first { $0 == .requestOverview(bob) }
            machine.overview(bob, list: older)
            #expect(machine.take().last == .requestPage(older, bob))
        case "failed":
            machine.fail(.unreachable, ada)
            #expect(machine.take() == [.report(ada, .failed(.unreachable)), .requestOverview(bob)])
            machine.overview(bob, list: older)
            #expect(machine.take() == [.requestPage(older, bob)])
        default:
            machine.close(ada)
            #expect(machine.take() == [.requestOverview(bob)])
        }
    }

    // MARK: - Digest

    private func localState(_ sequence: Int64 = 10, acknowledged: Int64 = 10) -> ListExchange.LocalState {
        ListExchange.LocalState(lists: [
            ListExchange.LocalState.List(
                id: Machine.list, isCollection: true, sequence: sequence, digest: ListDigest(5),
                cursor: ListCursor(replica: Machine.replica, sequence: 3), acknowledged: acknowledged, receives: true, repairs: true)
        ])
    }

    @Test("different digests of equal sets of rows are repaired once an hour") func repair() {
        var machine = synced()
        machine.localState = localState()
        machine.overview(ada, digest: 6)
        #expect(machine.take() == [.repair(Machine.list, ada)])
        machine.collection.cursor = nil
        machine.repaired(ada)
        #expect(machine.take() == [.requestPage(Machine.list, ada), .announce(ada)])
        machine.page(ada, hasRows: false)
        machine.localState = localState()
        machine.wait(.seconds(1))
        machine.overview(ada, digest: 6)
        #expect(machine.take() == [.requestOverview(ada), .report(ada, .differs)])
        machine.wait(.seconds(3_500))
        #expect(machine.take() == [])
        // Further changes are exchanged nevertheless.
        machine.news(ada)
        #expect(machine.take() == [.requestOverview(ada)])
        machine.overview(ada, sequence: 4, digest: 6)
        #expect(machine.take() == [.report(ada, .exchanging), .requestPage(Machine.list, ada)])
        machine.page(ada, hasRows: false)
        machine.collection.cursor = ListCursor(replica: Machine.replica, sequence: 4)
        machine.wait(.seconds(1))
        machine.overview(ada, sequence: 4, digest: 6)
        #expect(machine.take() == [.requestOverview(ada), .report(ada, .differs)])
        machine.wait(.seconds(98))
        machine.overview(ada, sequence: 4, digest: 6)
        #expect(machine.take() == [.requestOverview(ada), .repair(Machine.list, ada)])
    }

    @Test("a repair requests all pages of the list") func repairOfSeveralPages() {
        var machine = synced()
        machine.localState = localState()
        machine.overview(ada, digest: 6)
        machine.collection.cursor = nil
        machine.repaired(ada)
        _ = machine.take()
        machine.page(ada, isLast: false)
        #expect(machine.take() == [.requestPage(Machine.list, ada)])
        machine.page(ada)
        #expect(machine.take() == [.requestPage(Machine.list, ada)])
        machine.page(ada, hasRows: false)
        machine.wait(.seconds(1))
        #expect(machine.take() == [.requestOverview(ada)])
    }

    @Test("digests that could not be compared are compared after the peer has acknowledged all rows") func laterComparison() {
        var machine = synced()
        machine.localState = localState(acknowledged: 9)
        machine.overview(ada, digest: 6)
        machine.wait(.seconds(60))
        #expect(machine.take() == [.report(ada, .received)])
        machine.localState = localState()
        machine.acknowledged()
        #expect(machine.take() == [.requestOverview(ada)])
        machine.overview(ada, digest: 6)
        #expect(machine.take() == [.repair(Machine.list, ada)])
    }

    @Test("rows that are acknowledged during an overview lead to another one", arguments: [true, false])
    func acknowledgedMeanwhile(isRead: Bool) {
        var machine = synced()
        let before = localState(acknowledged: 9)
        if isRead {
            machine.localState = localState()
        } else {
            machine.localState = before
            machine.acknowledged()
        }
        machine.overview(ada, digest: 6, before: before)
        machine.localState = localState()
        machine.wait(.seconds(1))
        #expect(machine.take() == [.report(ada, .received), .requestOverview(ada)])
        machine.overview(ada, digest: 6)
        #expect(machine.take() == [.repair(Machine.list, ada)])
    }

    @Test("an acknowledgement causes no request if the digests are equal") func acknowledgedEqual() {
        var machine = synced()
        machine.localState = localState()
        machine.overview(ada)
        machine.wait(.seconds(60))
        _ = machine.take()
        machine.acknowledged()
        machine.wait(.seconds(60))
        #expect(machine.take() == [])
    }

    @Test("digests are not compared unless both sides had all rows when the overview was made") func incomparable() {
        for (before, after) in [
            (localState(9, acknowledged: 9), localState()), (localState(acknowledged: 9), localState()),
            (localState(acknowledged: 0), localState()),
        ] {
            var machine = synced()
            machine.localState = after
            machine.overview(ada, digest: 6, before: before)
            #expect(machine.take() == [.report(ada, .received)])
        }
        var machine = opened()
        machine.localState = localState()
        machine.collection.cursor = ListCursor(replica: Machine.replica, sequence: 2)
        machine.overview(ada, digest: 6)
        #expect(machine.take() == [.report(ada, .exchanging), .requestPage(Machine.list, ada)])
    }

    // MARK: - Several lists

    private static let (reading, recipes, trips) = (Machine.id(11), Machine.id(12), Machine.id(13))
    private let bob = peer(2)

    /// A machine that has requested the overview of a peer, has its own collection completely, and has the shared lists.
    private func withLists(
        _ lists: [ListNode.ID], of peer: PeerID, as relation: ListExchange.Relation, isReceived: Bool = false
    ) -> Machine {
        var machine = Machine()
        machine.localState = localState()
        if relation == .otherPerson { machine.localState.lists = [] }
        for list in lists { machine.add(list, isReceived: isReceived) }
        machine.open(peer, as: relation)
        #expect(machine.take() == [.announce(peer), .requestOverview(peer)])
        return machine
    }

    private static let own = Machine.entry(Machine.list, .own)

    @Test("the collection and then each list of an own machine are received, and one more overview compares all digests") func lists() {
        var machine = withLists([Self.reading, Self.recipes], of: ada, as: .ownMachine)
        let entries = [Machine.entry(Self.recipes, .joined, access: .read), Machine.entry(Self.reading), Self.own]
        machine.answer(ada, entries)
        #expect(machine.take() == [.report(ada, .exchanging), .requestPage(Machine.list, ada)])
        machine.page(ada, hasRows: false)
        #expect(machine.take() == [.requestPage(Self.reading, ada)])
        machine.page(ada, of: Self.reading, isLast: false)
        machine.page(ada, of: Self.reading)
        machine.page(ada, of: Self.reading, hasRows: false)
        #expect(machine.take() == [.requestPage(Self.reading, ada), .requestPage(Self.reading, ada), .requestPage(Self.recipes, ada)])
        machine.page(ada, of: Self.recipes, hasRows: false)
        #expect(machine.take() == [] && machine.exchange.nextWake == machine.now + ListExchange.interval)
        machine.received(Self.reading)
        machine.received(Self.recipes)
        machine.wait(ListExchange.interval)
        machine.answer(ada, entries)
        #expect(machine.take() == [.requestOverview(ada), .report(ada, .received)] && machine.exchange.nextWake == nil)
    }

    @Test("only lists with new rows are requested again") func oneOfTheLists() {
        var machine = withLists([Self.reading, Self.recipes], of: bob, as: .otherPerson, isReceived: true)
        machine.answer(bob, [Machine.entry(Self.reading), Machine.entry(Self.recipes)], isOwn: false)
        machine.page(bob, of: Self.reading, hasRows: false)
        machine.page(bob, of: Self.recipes, hasRows: false)
        machine.wait(.seconds(1))
        _ = machine.take()
        machine.answer(bob, [Machine.entry(Self.reading), Machine.entry(Self.recipes, sequence: 4)], isOwn: false)
        #expect(machine.take() == [.requestPage(Self.recipes, bob)])
    }

    @Test("a page of each list is requested once in a session, also of one that is offered later") func laterList() {
        var machine = withLists([Self.reading, Self.recipes], of: bob, as: .otherPerson, isReceived: true)
        machine.answer(bob, [Machine.entry(Self.reading)], isOwn: false)
        machine.page(bob, of: Self.reading, hasRows: false)
        machine.wait(.seconds(1))
        _ = machine.take()
        machine.answer(bob, [Machine.entry(Self.reading), Machine.entry(Self.recipes)], isOwn: false)
        #expect(machine.take() == [.requestPage(Self.recipes, bob)])
    }

    @Test(
        "lists are not requested that are unknown here, not received from this peer, ended, of another role, or of another epoch",
        arguments: [ListExchange.Relation.ownMachine, .otherPerson])
    func otherLists(relation: ListExchange.Relation) {
        var machine = withLists([Self.reading, Self.recipes, Self.trips], of: ada, as: relation)
        for index in machine.localState.lists.indices where machine.localState.lists[index].id == Self.recipes {
            machine.localState.lists[index].receives = false
        }
        let isOwn = relation == .ownMachine
        let entries = [
            Machine.entry(Machine.id(99)), Machine.entry(Self.recipes), Machine.entry(Self.reading, access: .ended),
            Machine.entry(Self.trips, .own),
        ]
        machine.answer(ada, (isOwn ? [Self.own] : []) + entries, isOwn: isOwn)
        if isOwn {
            machine.page(ada, hasRows: false)
            #expect(machine.take() == [.report(ada, .exchanging), .requestPage(Machine.list, ada)])
        } else {
            #expect(machine.take() == [.report(ada, .received)] && machine.exchange.nextWake == nil)
        }
        machine.news(ada)
        machine.wait(ListExchange.interval)
        machine.answer(ada, (isOwn ? [Self.own] : []) + [Machine.entry(Self.reading, epoch: "2")], isOwn: isOwn)
        // Other persons have no epochs.
        #expect(machine.take().last == (isOwn ? .report(ada, .received) : .requestPage(Self.reading, ada)))
    }

    @Test("lists are requested while both own machines have the same epoch, which the request has to check again") func epochs() {
        var machine = withLists([], of: ada, as: .ownMachine)
        machine.add(Self.reading, epoch: "2")
        machine.answer(ada, [Self.own, Machine.entry(Self.reading, epoch: "2")])
        #expect(machine.exchange.epoch(of: Machine.list, with: ada) == .empty)
        #expect(machine.exchange.epoch(of: Self.reading, with: ada) == nil)
        machine.page(ada, hasRows: false)
        machine.localState.lists[1].epoch = "3"
        #expect(machine.exchange.epoch(of: Self.reading, with: ada) == "2" && machine.exchange.epoch(of: Self.reading, with: bob) == nil)
        _ = machine.take()
        machine.fail(.outdated, ada)
        machine.wait(.seconds(1))
        machine.answer(ada, [Self.own, Machine.entry(Self.reading, epoch: "2")])
        #expect(machine.take() == [.requestOverview(ada), .report(ada, .received)])
        machine.news(ada)
        machine.wait(.seconds(1))
        machine.answer(ada, [Self.own, Machine.entry(Self.reading, epoch: "3")])
        #expect(machine.take() == [.requestOverview(ada), .report(ada, .exchanging), .requestPage(Self.reading, ada)])
    }

    @Test("while the collections of two own machines differ, only the one that remains is requested", arguments: [0, 2] as [UInt64])
    func listsOfAnotherCollection(theirs: UInt64) {
        var machine = withLists([Self.reading], of: ada, as: .ownMachine)
        let list = Machine.id(theirs)
        machine.answer(ada, [Machine.entry(list, .own), Machine.entry(Self.reading)])
        guard theirs == 0 else { return #expect(machine.take() == [.report(ada, .awaitingJoin)] && machine.exchange.nextWake == nil) }
        machine.page(ada, of: list, hasRows: false)
        #expect(machine.take() == [.report(ada, .exchanging), .requestPage(list, ada), .join(list, ada)])
        machine.collection.id = list
        machine.joined(list, ada)
        machine.wait(ListExchange.interval)
        machine.answer(ada, [Machine.entry(list, .own), Machine.entry(Self.reading)])
        #expect(machine.take().suffix(2) == [.report(ada, .exchanging), .requestPage(Self.reading, ada)])
    }

    @Test("a list that occurs several times in an overview is requested once") func repeatedList() {
        var machine = withLists([Self.reading], of: bob, as: .otherPerson)
        machine.answer(bob, Array(repeating: Machine.entry(Self.reading), count: 512), isOwn: false)
        machine.page(bob, of: Self.reading, hasRows: false)
        #expect(machine.take() == [.report(bob, .exchanging), .requestPage(Self.reading, bob)])
        #expect(machine.exchange.nextWake == machine.now + ListExchange.interval)
    }

    @Test("a list that is received from a peer from now on is requested without news of the peer") func newList() {
        var machine = withLists([], of: bob, as: .otherPerson)
        machine.answer(bob, [Machine.entry(Self.reading)], isOwn: false)
        #expect(machine.take() == [.report(bob, .received)])
        machine.add(Self.reading)
        machine.wait(.seconds(1))
        machine.news(bob)
        machine.answer(bob, [Machine.entry(Self.reading)], isOwn: false)
        #expect(machine.take() == [.requestOverview(bob), .report(bob, .exchanging), .requestPage(Self.reading, bob)])
    }

    // MARK: - Failures of lists

    @Test(
        "a failure in one list delays this list, longer each time; the others go on, and the failure is the status until it succeeds",
        arguments: [
            ListExchange.Failure.busy, .notFound, .malformed, .full, .diskFull, .versionAhead, .joinedRecently, .store,
        ])
    func failureOfOneList(failure: ListExchange.Failure) {
        var machine = withLists([Self.reading, Self.recipes], of: bob, as: .otherPerson)
        let entries = [Machine.entry(Self.reading), Machine.entry(Self.recipes)]
        machine.answer(bob, entries, isOwn: false)
        machine.fail(failure, bob)
        #expect(
            machine.take() == [
                .report(bob, .exchanging), .requestPage(Self.reading, bob), .report(bob, .failed(failure)), .requestPage(Self.recipes, bob),
            ])
        machine.page(bob, of: Self.recipes, hasRows: false)
        machine.received(Self.recipes)
        machine.wait(ListExchange.interval)
        machine.answer(bob, entries, isOwn: false)
        #expect(machine.take() == [.requestOverview(bob)] && machine.exchange.status(of: bob) == .failed(failure))
        #expect(machine.exchange.nextWake == machine.now + .milliseconds(800))
        // News leads to an overview, but not to a request of the delayed list.
        machine.news(bob)
        machine.wait(ListExchange.interval)
        machine.answer(bob, entries, isOwn: false)
        #expect(machine.take() == [.requestOverview(bob)])
        machine.wait(.milliseconds(600))
        for delay in [2, 4, 8, 16] {
            machine.answer(bob, entries, isOwn: false)
            machine.fail(failure, bob)
            #expect(machine.take() == [.requestOverview(bob), .requestPage(Self.reading, bob)])
            #expect(machine.exchange.nextWake == machine.now + .seconds(delay))
            machine.wait(.seconds(delay))
        }
        for _ in 0..<20 {
            machine.answer(bob, entries, isOwn: false)
            machine.fail(failure, bob)
            machine.wait(.seconds(300))
        }
        _ = machine.take()
        machine.answer(bob, entries, isOwn: false)
        machine.page(bob, of: Self.reading)
        #expect(
            machine.take() == [.requestPage(Self.reading, bob), .report(bob, .exchanging), .requestPage(Self.reading, bob)])
        machine.fail(failure, bob)
        #expect(machine.take() == [.report(bob, .failed(failure))] && machine.exchange.nextWake == machine.now + .seconds(1))
        machine.wait(.seconds(1))
        machine.answer(bob, entries, isOwn: false)
        machine.page(bob, of: Self.reading, hasRows: false)
        machine.received(Self.reading)
        machine.wait(.seconds(1))
        machine.answer(bob, entries, isOwn: false)
        #expect(machine.take().last == .report(bob, .received) && machine.exchange.nextWake == nil)
    }

    @Test("a full collection does not keep the other lists of an own machine from being exchanged") func failureOfCollection() {
        var machine = withLists([Self.reading], of: ada, as: .ownMachine)
        machine.answer(ada, [Self.own, Machine.entry(Self.reading)])
        machine.fail(.full, ada)
        machine.page(ada, of: Self.reading, hasRows: false)
        #expect(
            machine.take() == [
                .report(ada, .exchanging), .requestPage(Machine.list, ada), .report(ada, .failed(.full)), .requestPage(Self.reading, ada),
            ])
    }

    @Test(
        "an unreachable peer and an outdated request delay all lists of the peer",
        arguments: [ListExchange.Failure.unreachable, .outdated])
    func failureOfPeer(failure: ListExchange.Failure) {
        var machine = withLists([Self.reading, Self.recipes], of: bob, as: .otherPerson)
        for delay in [1, 2, 4] {
            machine.answer(bob, [Machine.entry(Self.reading), Machine.entry(Self.recipes)], isOwn: false)
            _ = machine.take()
            machine.fail(failure, bob)
            #expect(machine.exchange.nextWake == machine.now + .seconds(delay))
            machine.news(bob)
            #expect(machine.take() == (failure == .unreachable ? [.report(bob, .failed(.unreachable))] : []))
            // News of a peer that could not be reached shows that it can be reached now.
            let wait = failure == .unreachable ? ListExchange.retryInterval : .seconds(delay)
            #expect(machine.exchange.nextWake == machine.now + wait)
            machine.wait(wait)
            #expect(machine.take() == [.requestOverview(bob)])
        }
    }

    @Test("a list that is missing in one overview is not requested earlier, and its failure is forgotten when it is due") func missingList()
    {
        var machine = withLists([Self.reading], of: bob, as: .otherPerson)
        machine.answer(bob, [Machine.entry(Self.reading)], isOwn: false)
        machine.fail(.malformed, bob)
        machine.news(bob)
        machine.wait(ListExchange.interval)
        _ = machine.take()
        machine.answer(bob, [], isOwn: false)
        machine.news(bob)
        machine.wait(ListExchange.interval)
        machine.answer(bob, [Machine.entry(Self.reading)], isOwn: false)
        #expect(machine.take() == [.requestOverview(bob)] && machine.exchange.status(of: bob) == .failed(.malformed))
        machine.wait(.milliseconds(600))
        machine.answer(bob, [], isOwn: false)
        #expect(machine.take() == [.requestOverview(bob), .report(bob, .received)] && machine.exchange.nextWake == nil)
    }

    @Test("the failure of a list that was removed here is forgotten") func removedList() {
        var machine = withLists([Self.reading], of: bob, as: .otherPerson)
        machine.answer(bob, [Machine.entry(Self.reading)], isOwn: false)
        machine.fail(.full, bob)
        machine.localState.lists = []
        machine.news(bob)
        machine.wait(ListExchange.interval)
        machine.answer(bob, [Machine.entry(Self.reading)], isOwn: false)
        #expect(machine.take().last == .report(bob, .received) && machine.exchange.nextWake == nil)
    }

    // MARK: - Digests of several lists

    /// Receives everything, so that the next overview compares digests.
    private func compared(_ lists: [ListNode.ID], of peer: PeerID, as relation: ListExchange.Relation) -> Machine {
        var machine = withLists(lists, of: peer, as: relation, isReceived: true)
        let isOwn = relation == .ownMachine
        machine.answer(peer, (isOwn ? [Self.own] : []) + lists.map { Machine.entry($0) }, isOwn: isOwn)
        if isOwn { machine.page(peer, hasRows: false) }
        for list in lists { machine.page(peer, of: list, hasRows: false) }
        machine.wait(ListExchange.interval)
        #expect(machine.take().last == .requestOverview(peer))
        return machine
    }

    @Test("each list is repaired once an hour, one after the other") func repairs() {
        var machine = compared([Self.reading, Self.recipes], of: ada, as: .ownMachine)
        let entries = [Self.own, Machine.entry(Self.reading, digest: 6), Machine.entry(Self.recipes, digest: 6)]
        machine.answer(ada, entries)
        #expect(machine.take() == [.repair(Self.reading, ada)])
        machine.wait(.seconds(5))
        machine.repaired(ada)
        machine.page(ada, of: Self.reading, hasRows: false)
        #expect(machine.take() == [.requestPage(Self.reading, ada), .announce(ada), .repair(Self.recipes, ada)])
        machine.repaired(ada)
        machine.page(ada, of: Self.recipes, hasRows: false)
        machine.wait(.seconds(1))
        _ = machine.take()
        machine.answer(ada, entries)
        #expect(machine.take() == [.report(ada, .differs)] && machine.exchange.nextWake == machine.now + .seconds(3_594))
        machine.wait(.seconds(3_594))
        machine.answer(ada, entries)
        #expect(machine.take() == [.requestOverview(ada), .repair(Self.reading, ada)])
    }

    @Test("one list is repaired once an hour with all peers together") func repairsWithTwo() {
        var machine = compared([Self.reading], of: ada, as: .ownMachine)
        machine.open(bob)
        machine.answer(bob, [Self.own, Machine.entry(Self.reading)])
        machine.page(bob, hasRows: false)
        machine.page(bob, of: Self.reading, hasRows: false)
        machine.wait(ListExchange.interval)
        machine.answer(ada, [Self.own, Machine.entry(Self.reading, digest: 6)])
        _ = machine.take()
        machine.answer(bob, [Self.own, Machine.entry(Self.reading, digest: 6)])
        #expect(machine.take() == [.report(bob, .differs)])
    }

    @Test("a list that was repaired with another peer meanwhile is not repaired again", arguments: [true, false])
    func repairMeanwhile(isLastListReceived: Bool) {
        var machine = compared([Self.reading, Self.recipes], of: ada, as: .ownMachine)
        machine.answer(ada, [Self.own, Machine.entry(Self.reading, sequence: 4), Machine.entry(Self.recipes, digest: 6)])
        machine.open(bob)
        machine.answer(bob, [Self.own, Machine.entry(Self.reading), Machine.entry(Self.recipes)])
        for list in [Machine.list, Self.reading, Self.recipes] { machine.page(bob, of: list, hasRows: false) }
        machine.wait(ListExchange.interval)
        machine.answer(bob, [Self.own, Machine.entry(Self.reading), Machine.entry(Self.recipes, digest: 6)])
        #expect(machine.take().last == .repair(Self.recipes, bob))
        if isLastListReceived {
            machine.page(ada, of: Self.reading, hasRows: false)
            #expect(machine.take() == [.requestOverview(ada)])
        } else {
            machine.fail(.malformed, ada)
            #expect(machine.take() == [.report(ada, .failed(.malformed))] && machine.exchange.nextWake == machine.now + .seconds(1))
        }
    }

    @Test("the owner does not repair a list because of the digest of a member") func noRepair() {
        var machine = compared([Self.reading], of: bob, as: .otherPerson)
        machine.localState.lists[0].repairs = false
        machine.answer(bob, [Machine.entry(Self.reading, digest: 6)], isOwn: false)
        #expect(machine.take() == [.report(bob, .received)] && machine.exchange.nextWake == nil)
    }

    @Test("a failed repair is a failure of its list") func failedRepair() {
        var machine = compared([Self.reading, Self.recipes], of: ada, as: .ownMachine)
        machine.answer(ada, [Self.own, Machine.entry(Self.reading, digest: 6), Machine.entry(Self.recipes, sequence: 4)])
        machine.fail(.store, ada)
        #expect(
            machine.take() == [.repair(Self.reading, ada), .report(ada, .failed(.store)), .requestPage(Self.recipes, ada)])
    }

    // MARK: - Other persons

    @Test("a change is announced to the given peers only, and each has its own interval") func announcedToSome() {
        var machine = withLists([], of: ada, as: .ownMachine)
        machine.open(bob, as: .otherPerson)
        _ = machine.take()
        machine.changed([ada])
        #expect(machine.take() == [.announce(ada)])
        machine.wait(.milliseconds(100))
        machine.changed([ada, bob, Self.peer(3)])
        #expect(machine.take() == [.announce(bob)])
        machine.changed([ada, bob])
        #expect(machine.take() == [])
        machine.wait(.milliseconds(100))
        #expect(machine.take() == [.announce(ada)])
        machine.wait(.milliseconds(100))
        #expect(machine.take() == [.announce(bob)])
        machine.close(bob)
        machine.changed([ada])
        machine.wait(.seconds(1))
        #expect(machine.take() == [.announce(ada)] && machine.exchange.nextWake == nil)
    }

    @Test("nothing is sent to another person without lists, until it sends news or a list is shared with it") func otherWithoutLists() {
        var machine = Machine()
        machine.open(bob, as: .otherPerson, requestsLists: false)
        machine.wait(.seconds(600))
        #expect(machine.take() == [] && machine.exchange.nextWake == nil && machine.exchange.status(of: bob) == nil)
        machine.changed([bob])
        #expect(machine.take() == [.announce(bob)])
        machine.news(bob)
        #expect(machine.take() == [.requestOverview(bob)])
    }

    @Test("a joined collection is announced to own machines only") func joinIsPrivate() {
        var machine = withLists([], of: ada, as: .ownMachine)
        machine.open(bob, as: .otherPerson)
        machine.answer(bob, [], isOwn: false)
        machine.answer(ada, [Machine.entry(Machine.id(0), .own)])
        machine.page(ada, of: Machine.id(0), hasRows: false)
        machine.wait(.seconds(1))
        _ = machine.take()
        machine.joined(Machine.id(0), ada)
        #expect(machine.take() == [.announce(ada), .report(ada, .received), .requestOverview(ada)])
    }

    @Test(
        "with another person, collections are not compared, and it does not matter what the peer calls this machine",
        arguments: [true, false])
    func otherPerson(isOwn: Bool) {
        var machine = withLists([Self.reading], of: bob, as: .otherPerson)
        machine.answer(bob, [Machine.entry(Machine.id(0), .own), Machine.entry(Self.reading)], isOwn: isOwn)
        #expect(machine.take() == [.report(bob, .exchanging), .requestPage(Self.reading, bob)])
    }

    @Test("another relation begins the exchange with a peer again; answers to earlier requests change nothing while it waits")
    func relations() {
        var machine = withLists([Self.reading], of: ada, as: .otherPerson)
        machine.answer(ada, [Machine.entry(Self.reading)], isOwn: false)
        machine.fail(.malformed, ada)
        machine.wait(.seconds(1))
        for number in [3, 4] as [UInt64] { machine.open(Self.peer(number)) }
        _ = machine.take()
        machine.localState = localState()
        machine.open(ada, as: .ownMachine)
        #expect(machine.take() == [.requestOverview(Self.peer(4)), .announce(ada)])
        #expect(machine.exchange.status(of: ada) == nil)
        machine.answer(ada, [Self.own])
        machine.page(ada, of: Self.reading)
        machine.fail(.unreachable, ada)
        #expect(machine.take() == [])
        machine.close(Self.peer(3))
        machine.answer(ada, [Self.own], isOwn: false)
        #expect(machine.take() == [.requestOverview(ada), .report(ada, .unconfirmed)])
        machine.open(ada, as: .ownMachine)
        machine.wait(.seconds(1))
        #expect(machine.take() == [.announce(ada), .requestOverview(ada)])
    }

    @Test("other persons have 492 places, and 20 are kept for own machines") func places() {
        var machine = Machine()
        for number in 1...600 as ClosedRange<UInt64> { machine.open(Self.peer(number), as: .otherPerson) }
        func announced(_ actions: [ListExchange.Action]) -> Int { actions.count { if case .announce = $0 { true } else { false } } }
        #expect(announced(machine.take()) == ListLimits.exchangePeers - ListLimits.ownMachines)
        for number in 1_001...1_040 as ClosedRange<UInt64> { machine.open(Self.peer(number)) }
        #expect(announced(machine.take()) == ListLimits.ownMachines)
        // Becoming an own machine needs one of these places.
        machine.open(Self.peer(1))
        #expect(announced(machine.take()) == 0 && machine.exchange.status(of: Self.peer(1)) == nil)
        machine.close(Self.peer(1_001))
        machine.open(Self.peer(1))
        machine.open(Self.peer(600), as: .otherPerson)
        #expect(announced(machine.take()) == 2)
    }

    // MARK: - Fairness

    @Test("slow other persons use one slot, so that own machines are exchanged; other persons get their turn after 16 pages")
    func slowPersons() {
        var machine = Machine()
        machine.add(Self.reading)
        let persons = [Self.peer(11), Self.peer(12), Self.peer(13)]
        for person in persons { machine.open(person, as: .otherPerson) }
        #expect(machine.take() == [.announce(persons[0]), .requestOverview(persons[0]), .announce(persons[1]), .announce(persons[2])])
        machine.open(ada)
        machine.open(bob)
        #expect(machine.take() == [.announce(ada), .requestOverview(ada), .announce(bob)])
        // The person does not answer. Own machines take turns in the other slot.
        machine.overview(ada)
        for _ in 0..<ListExchange.pagesInTurn { machine.page(ada, isLast: false) }
        #expect(machine.take().last == .requestOverview(bob))
        machine.fail(.unreachable, bob)
        #expect(machine.take() == [.report(bob, .failed(.unreachable)), .requestPage(Machine.list, ada)])
        machine.answer(persons[0], [Machine.entry(Self.reading)], isOwn: false)
        for _ in 0..<ListExchange.pagesInTurn { machine.page(persons[0], of: Self.reading, isLast: false) }
        #expect(machine.take().last == .requestOverview(persons[1]))
        for person in persons.dropFirst() { machine.fail(.unreachable, person) }
        #expect(machine.take().last == .requestPage(Self.reading, persons[0]))
    }

    @Test("two own machines do not keep other persons from exchanging") func slowOwnMachines() {
        var machine = Machine()
        for peer in [ada, bob] {
            machine.open(peer)
            machine.overview(peer)
        }
        machine.open(Self.peer(3), as: .otherPerson)
        _ = machine.take()
        for _ in 0..<ListExchange.pagesInTurn { machine.page(ada, isLast: false) }
        #expect(machine.take().last == .requestOverview(Self.peer(3)))
    }

    @Test("a peer whose pages take long gives up its slot after 10 s, if other peers wait") func turnTime() {
        for waits in [true, false] {
            var machine = withLists([Self.reading], of: bob, as: .otherPerson)
            machine.answer(bob, [Machine.entry(Self.reading)], isOwn: false)
            if waits { machine.open(Self.peer(3), as: .otherPerson) }
            machine.wait(.milliseconds(9_999))
            machine.page(bob, of: Self.reading)
            #expect(machine.take().last == .requestPage(Self.reading, bob))
            machine.wait(.milliseconds(1))
            machine.page(bob, of: Self.reading)
            #expect(machine.take() == [waits ? .requestOverview(Self.peer(3)) : .requestPage(Self.reading, bob)])
        }
    }

    @Test(
        "of 512 lists with empty or malformed pages, 16 are requested in a turn, then the peer pauses for 1 s; each list gets its turn",
        arguments: ["empty", "endless", "malformed"])
    func manyLists(pages: String) {
        let lists = (0..<ListLimits.overviewLists).map { Machine.id(1_000 + UInt64($0)) }
        var machine = withLists(lists, of: bob, as: .otherPerson)
        machine.open(Self.peer(3), as: .otherPerson)
        _ = machine.take()
        // The numbers of rows always differ from the cursors.
        let entries = lists.map { Machine.entry($0) }
        var requested: [ListNode.ID] = []
        func collect() {
            for case .requestPage(let list, bob) in machine.take() { requested.append(list) }
        }
        let turns = ListLimits.overviewLists / (pages == "endless" ? 1 : ListExchange.pagesInTurn)
        for turn in 0..<turns {
            machine.answer(bob, entries, isOwn: false)
            collect()
            for _ in 0..<ListExchange.pagesInTurn {
                guard let list = requested.last else { return #expect(Bool(false)) }
                switch pages {
                case "empty": machine.page(bob, of: list, hasRows: false)
                case "endless": machine.page(bob, of: list, hasRows: false, isLast: false)
                default: machine.fail(.malformed, bob)
                }
                if turn == 0, requested.count == ListExchange.pagesInTurn {
                    #expect(machine.actions.last == .requestOverview(Self.peer(3)))
                    machine.fail(.unreachable, Self.peer(3))
                }
                collect()
            }
            #expect(requested.count == (turn + 1) * ListExchange.pagesInTurn)
            #expect(Set(requested).count == requested.count / (pages == "endless" ? ListExchange.pagesInTurn : 1))
            machine.wait(ListExchange.emptyPagesPause)
            machine.fail(.unreachable, Self.peer(3))
        }
        #expect(Set(requested) == Set(lists))
    }

    @Test("if 512 lists of a peer have failed, the failure of a further one is not remembered, and delays the peer") func manyFailures() {
        let lists = (0...ListLimits.overviewLists).map { Machine.id(1_000 + UInt64($0)) }
        var machine = withLists(lists, of: bob, as: .otherPerson)
        for _ in 0..<ListLimits.overviewLists / ListExchange.pagesInTurn {
            machine.answer(bob, lists.map { Machine.entry($0) }, isOwn: false)
            for _ in 0..<ListExchange.pagesInTurn { machine.fail(.malformed, bob) }
            machine.wait(ListExchange.emptyPagesPause)
        }
        _ = machine.take()
        machine.answer(bob, lists.map { Machine.entry($0) }, isOwn: false)
        #expect(machine.take() == [.requestPage(lists[ListLimits.overviewLists], bob)])
        machine.fail(.malformed, bob)
        #expect(machine.take() == [] && machine.exchange.nextWake == machine.now + .seconds(1))
        machine.wait(.seconds(1))
        #expect(machine.take() == [.requestOverview(bob)])
    }

    @Test("512 lists that this machine does not have leave nothing behind") func unknownLists() {
        var machine = withLists([], of: bob, as: .otherPerson)
        machine.answer(bob, (0..<512).map { Machine.entry(Machine.id(1_000 + $0)) }, isOwn: false)
        #expect(machine.take() == [.report(bob, .received)] && machine.exchange.nextWake == nil)
    }

    // MARK: - Any order

    /// Events in random order with four own machines and four other persons. The local state does not follow the events, so lists need
    /// rows and repairs again and again.
    private struct RandomExchange {
        var machine = Machine()
        var requests: [PeerID: ListExchange.Action] = [:]
        var relations: [PeerID: ListExchange.Relation] = [:]
        var generator: SeededGenerator
        let seed: UInt64
        static let lists = [ListExchangeTests.reading, ListExchangeTests.recipes]

        init(seed: UInt64) {
            self.seed = seed
            generator = SeededGenerator(seed: seed)
            for list in Self.lists { machine.add(list, isReceived: true, epoch: "1") }
            machine.received(Machine.list)
            machine.collection.acknowledged = 10
        }

        mutating func random(_ bound: Int) -> Int { Int(generator.next() % UInt64(bound)) }

        /// - Parameter isQuiet: whether no further changes and failures occur.
        mutating func answer(_ peer: PeerID, isQuiet: Bool) {
            guard let request = requests.removeValue(forKey: peer) else { return }
            if !isQuiet, random(4) == 0 {
                let failures: [ListExchange.Failure] = [.unreachable, .malformed, .outdated, .full, .busy]
                return machine.fail(failures[random(failures.count)], peer)
            }
            switch request {
            case .requestOverview: machine.answer(peer, entries(isQuiet: isQuiet), isOwn: isQuiet || random(5) > 0)
            case .requestPage(let list, _):
                machine.page(peer, of: list, hasRows: !isQuiet && random(2) == 0, isLast: isQuiet || random(2) == 0)
            case .join(let list, _): machine.joined(list, peer)
            case .repair: machine.repaired(peer)
            case .announce, .report: break
            }
        }

        private mutating func entries(isQuiet: Bool) -> [ListOverview.Entry] {
            guard !isQuiet else {
                return [Machine.entry(Machine.list, .own)] + Self.lists.map { Machine.entry($0, epoch: "1") }
            }
            let collection = random(6) == 0 ? Machine.id(0) : Machine.list
            let sequences: [Int64] = [3, 3, 4]
            var entries = [Machine.entry(collection, .own, sequence: sequences[random(3)], digest: random(4) == 0 ? 6 : 5)]
            for list in Self.lists where random(4) > 0 {
                entries.append(
                    Machine.entry(
                        list, random(2) == 0 ? .shared : .joined, access: random(5) == 0 ? .ended : .write,
                        sequence: sequences[random(3)], digest: random(3) == 0 ? 6 : 5, epoch: random(5) == 0 ? "2" : "1"))
            }
            return entries
        }

        mutating func open(_ peer: PeerID) {
            let relation: ListExchange.Relation = (peer.uuid.low % 2 == 0) != (random(20) == 0) ? .ownMachine : .otherPerson
            if let before = relations[peer], before != relation { requests[peer] = nil }
            relations[peer] = relation
            machine.open(peer, as: relation)
        }

        mutating func close(_ peer: PeerID) {
            (requests[peer], relations[peer]) = (nil, nil)
            machine.close(peer)
        }

        /// Keeps the requests, and checks them.
        mutating func collect() {
            for action in machine.take() {
                switch action {
                case .requestOverview(let peer), .requestPage(_, let peer), .join(_, let peer), .repair(_, let peer):
                    #expect(requests[peer] == nil, "a second request at once, seed \(seed)")
                    requests[peer] = action
                case .announce, .report: break
                }
                switch action {
                case .requestPage(let list, let peer), .join(let list, let peer), .repair(let list, let peer):
                    #expect(relations[peer] == .ownMachine || Self.lists.contains(list), "seed \(seed)")
                case .announce, .report, .requestOverview: break
                }
            }
            let persons = requests.keys.count { relations[$0] == .otherPerson }
            #expect(requests.count <= ListExchange.slots && persons <= ListExchange.otherSlots, "seed \(seed)")
        }
    }

    @Test("any order of events ends with everything received, and no more than two requests at once", .offPool) func anyOrder() {
        for seed in 0..<300 as Range<UInt64> {
            var run = RandomExchange(seed: seed)
            for _ in 0..<300 {
                let peer = Self.peer(UInt64(run.random(8) + 1))
                switch run.random(8) {
                case 0: run.open(peer)
                case 1: if run.random(3) == 0 { run.close(peer) }
                case 2: run.machine.news(peer)
                case 3: run.machine.changed([peer, ada])
                case 4: run.machine.wait(.milliseconds(run.random(400)))
                default: run.answer(run.requests.keys.sorted().first ?? peer, isQuiet: false)
                }
                run.collect()
            }
            for _ in 0..<1_000 {
                for peer in run.requests.keys.sorted() { run.answer(peer, isQuiet: true) }
                run.collect()
                if run.requests.isEmpty, run.machine.exchange.nextWake == nil { break }
                run.machine.wait(.seconds(10))
                run.collect()
            }
            #expect(run.requests.isEmpty && run.machine.exchange.nextWake == nil, "seed \(seed)")
            for peer in run.relations.keys {
                run.machine.news(peer)
                for _ in 0..<3 {  // rows, then digests
                    run.machine.wait(.seconds(1))
                    run.collect()
                    while let peer = run.requests.keys.sorted().first {
                        run.answer(peer, isQuiet: true)
                        run.collect()
                    }
                }
                #expect([.received, nil].contains(run.machine.exchange.status(of: peer)), "seed \(seed)")
            }
        }
    }
}
