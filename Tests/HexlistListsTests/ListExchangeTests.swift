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
        var localState = ListExchange.LocalState(
            list: Machine.list, sequence: 10, digest: ListDigest(5), cursor: nil, acknowledged: 0)

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

        mutating func open(_ peer: PeerID) { exchange.opened(peer, now: now, &actions) }
        mutating func close(_ peer: PeerID) { exchange.closed(peer, now: now, &actions) }
        mutating func joined(_ list: ListNode.ID, _ peer: PeerID) {
            exchange.listReplaced(byThatOf: peer, now: now, &actions)
            exchange.joined(list, with: peer, now: now, &actions)
        }
        mutating func repaired(_ peer: PeerID) { exchange.repaired(peer, now: now, &actions) }
        mutating func news(_ peer: PeerID) { exchange.newsArrived(from: peer, now: now, &actions) }
        mutating func changed() { exchange.changed(now: now, &actions) }
        mutating func wait(_ duration: Duration) {
            now += duration
            exchange.tick(now: now, &actions)
        }
        mutating func fail(_ failure: ListExchange.Failure, _ peer: PeerID) { exchange.failed(failure, peer, now: now, &actions) }

        mutating func overview(
            _ peer: PeerID, list: ListNode.ID = Machine.list, sequence: Int64 = 3, digest: UInt64 = 5,
            isOwn: Bool = true, ahead: Int64 = 0, before: ListExchange.LocalState? = nil
        ) {
            var overview = ListOverview(now: clock + ahead, isOwnMachine: isOwn)
            overview.lists = [
                ListOverview.Entry(
                    list: list, role: .own, replica: Machine.replica, sequence: sequence, digest: ListDigest(digest))
            ]
            exchange.overviewArrived(
                overview, from: peer, before: before ?? localState, localState: localState, clock: clock, now: now, &actions)
        }

        mutating func page(_ peer: PeerID, of list: ListNode.ID = Machine.list, hasRows: Bool = true, isLast: Bool = true) {
            exchange.pageStored(list, from: peer, hasRows: hasRows, isLast: isLast, now: now, &actions)
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
        machine.localState.cursor = ListCursor(replica: Machine.replica, sequence: 3)
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
        machine.localState.cursor = ListCursor(replica: Machine.replica, sequence: 3)
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
        machine.localState.cursor = cursor
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
        machine.changed()
        #expect(machine.take() == [] && machine.exchange.nextWake == nil)
        machine.open(ada)
        machine.open(Self.peer(2))
        _ = machine.take()
        machine.changed()
        let both = [ListExchange.Action.announce(ada), .announce(Self.peer(2))]
        #expect(machine.take() == both)
        for _ in 0..<100 { machine.changed() }
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
        machine.fail(.malformed, ada)
        #expect(machine.take() == [.report(ada, .failed(.malformed))] && machine.exchange.nextWake == machine.now + .seconds(1))
    }

    @Test("after the end of the session, answers are ignored, and nothing is due") func ended() {
        var machine = opened()
        machine.changed()
        machine.changed()
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
        machine.localState.list = older
        machine.joined(older, ada)
        #expect(machine.take() == [.announce(ada), .announce(Self.peer(2)), .report(ada, .received)])
        machine.wait(.milliseconds(200))
        #expect(machine.take() == [.requestOverview(ada)])
    }

    @Test("a peer whose collection changes again is joined five times an hour, also in later sessions") func joinsOften() {
        var machine = opened()
        machine.localState.list = Machine.id(100)
        let time = machine.now
        for join in 1...5 {
            let older = Machine.id(100 - UInt64(join))
            machine.overview(ada, list: older)
            machine.page(ada, of: older, hasRows: false)
            machine.localState.list = older
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

    @Test("after 16 pages of which the last has no rows, the exchange pauses") func emptyPages() {
        var machine = opened()
        machine.overview(ada)
        for _ in 1..<ListExchange.pagesInTurn { machine.page(ada, hasRows: false, isLast: false) }
        _ = machine.take()
        machine.page(ada, hasRows: false, isLast: false)
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
            machine.localState.list = older
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
        ListExchange.LocalState(
            list: Machine.list, sequence: sequence, digest: ListDigest(5),
            cursor: ListCursor(replica: Machine.replica, sequence: 3), acknowledged: acknowledged)
    }

    @Test("different digests of equal sets of rows are repaired once an hour") func repair() {
        var machine = synced()
        machine.localState = localState()
        machine.overview(ada, digest: 6)
        #expect(machine.take() == [.repair(Machine.list, ada)])
        machine.localState.cursor = nil
        machine.repaired(ada)
        #expect(machine.take() == [.requestPage(Machine.list, ada), .announce(ada)])
        machine.page(ada, hasRows: false)
        machine.localState = localState()
        machine.wait(.seconds(1))
        machine.news(ada)
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
        machine.localState.cursor = ListCursor(replica: Machine.replica, sequence: 4)
        machine.wait(.seconds(1))
        machine.overview(ada, sequence: 4, digest: 6)
        #expect(machine.take() == [.requestOverview(ada), .report(ada, .differs)])
        machine.wait(.seconds(98))
        machine.overview(ada, sequence: 4, digest: 6)
        #expect(machine.take() == [.requestOverview(ada), .repair(Machine.list, ada)])
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
        machine.localState.cursor = ListCursor(replica: Machine.replica, sequence: 2)
        machine.overview(ada, digest: 6)
        #expect(machine.take() == [.report(ada, .exchanging), .requestPage(Machine.list, ada)])
    }

    // MARK: - Any order

    @Test("any order of events ends with nothing to do, and no more than two requests at once") func anyOrder() {
        for seed in 0..<300 as Range<UInt64> {
            var generator = SeededGenerator(seed: seed)
            func random(_ bound: Int) -> Int { Int(generator.next() % UInt64(bound)) }
            var machine = Machine()
            machine.localState = localState()
            var requests: [PeerID: ListExchange.Action] = [:]
            func answer(_ peer: PeerID, quietly: Bool) {
                let request = requests.removeValue(forKey: peer)
                let (fails, first, second) = (!quietly && random(5) == 0, quietly || random(2) == 0, quietly || random(2) == 0)
                switch request {
                case _ where fails: machine.fail(.unreachable, peer)
                case .requestOverview: machine.overview(peer, sequence: first ? 3 : 4)
                case .requestPage(let list, _): machine.page(peer, of: list, hasRows: !first, isLast: second)
                case .join(let list, _): machine.joined(list, peer)
                case .repair: machine.repaired(peer)
                case .announce, .report, nil: break
                }
            }
            func collect() {
                for action in machine.take() {
                    switch action {
                    case .requestOverview(let peer), .requestPage(_, let peer), .join(_, let peer), .repair(_, let peer):
                        #expect(requests[peer] == nil, "a second request at once, seed \(seed)")
                        requests[peer] = action
                    case .announce, .report: break
                    }
                }
                #expect(requests.count <= ListExchange.slots, "seed \(seed)")
            }
            for _ in 0..<200 {
                let peer = Self.peer(UInt64(random(6) + 1))
                switch random(8) {
                case 0: machine.open(peer)
                case 1:
                    requests[peer] = nil
                    machine.close(peer)
                case 2: machine.news(peer)
                case 3: machine.changed()
                case 4: machine.wait(.milliseconds(random(400)))
                default: answer(peer, quietly: false)
                }
                collect()
            }
            for _ in 0..<1_000 {
                for peer in requests.keys.sorted() { answer(peer, quietly: true) }
                collect()
                if requests.isEmpty, machine.exchange.nextWake == nil { break }
                machine.wait(.seconds(10))
                collect()
            }
            #expect(requests.isEmpty && machine.exchange.nextWake == nil, "seed \(seed)")
        }
    }
}
