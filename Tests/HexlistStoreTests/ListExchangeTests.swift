import HexlistLists
import HexlistModel
import TestSupport
import Testing

@testable import HexlistStore

/// A machine of one user: a store, and the state machine that decides what to request.
private final class Machine {
    let test: TestStore
    let peer: TestPeer
    var exchange = ListExchange()
    /// Rows that were received in pages.
    var received = 0
    private(set) var joins: [ListSize] = []

    var store: HexStore { test.store }

    init(_ number: UInt8, copyOf image: String? = nil) throws {
        test = try TestStore(copyOf: image)
        peer = try TestPeer(number)
    }

    func add(_ other: Machine) async throws {
        _ = try test.trust(other.peer)
        _ = try await store.addOwnMachine(other.peer.id, at: start)
    }

    /// Carries out the actions for one peer, until nothing is due soon.
    func run(with other: Machine, at now: Int64 = start) async throws {
        var actions: [ListExchange.Action] = []
        var time = ContinuousClock.now
        exchange.opened(other.peer.id, as: .ownMachine, requestsLists: true, now: time, &actions)
        var count = 0
        while true {
            if actions.isEmpty {
                // The overview that compares the digests.
                guard let wake = exchange.nextWake, wake <= time + ListExchange.interval else { break }
                time = wake
                exchange.tick(now: time, &actions)
                continue
            }
            count += 1
            guard count < 1_000 else { throw Failure("the exchange does not end") }
            try await run(actions.removeFirst(), with: other, at: now, time, &actions)
        }
        exchange.closed(other.peer.id, now: time, &actions)
    }

    private func run(
        _ action: ListExchange.Action, with other: Machine, at now: Int64, _ time: ContinuousClock.Instant,
        _ actions: inout [ListExchange.Action]
    ) async throws {
        let peer = other.peer.id
        switch action {
        case .announce, .report: break
        case .requestOverview:
            let before = try test.read { try $0.localListState(with: peer) }
            let json = try other.test.read { try $0.listOverview(for: self.peer.id, at: now) }.json
            let localState = try test.read { try $0.localListState(with: peer) }
            exchange.overviewArrived(
                try ListOverview(decoding: json), from: peer, before: before, localState: localState, clock: now, now: time, &actions)
        case .requestPage(let list, _):
            guard let page = try await page(of: list, from: other, at: now) else {
                return exchange.failed(.notFound, peer, now: time, &actions)
            }
            let hasRows = !page.nodes.isEmpty
            exchange.pageStored(list, from: peer, hasRows: hasRows, changedRows: hasRows, isLast: page.isLast, now: time, &actions)
        case .join(let list, _):
            let sequence = try #require(try record.sequence)
            joins.append(try await store.joinList(list, with: peer, ifStillAt: sequence, at: now, diskReserve: 0))
            exchange.listReplaced(byThatOf: peer, now: time, &actions)
            exchange.joined(list, with: peer, now: time, &actions)
        case .repair(let list, _):
            try await store.repairList(list, with: peer)
            exchange.repaired(peer, now: time, &actions)
        }
    }

    /// Requests a page through the text of the request, and merges it.
    func page(of list: ListNode.ID, from other: Machine, at now: Int64 = start) async throws -> ListPage? {
        let request = try test.read { try $0.listPageRequest(of: list, from: other.peer.id) }
        guard case .page(_, let parsed) = ListRequestTarget(ListRequestTarget.page(list, request).description) else { return nil }
        guard case .page(let json) = try other.store.listPageSync(list, parsed, for: peer.id, at: now) else { return nil }
        let page = try ListPage(decoding: json, from: .ownMachine, isShared: false, now: now)
        received += page.nodes.count
        _ = try await store.mergeListPage(page, answering: request, from: other.peer.id, as: .ownMachine, at: now, diskReserve: 0)
        return page
    }

    /// The change log, newest first.
    var log: [MyHexlistChange] { get throws { try test.read { try $0.mineChanges(limit: 100, before: nil) }.items } }

    var trash: [TrashedItem] { get throws { try test.read { try $0.trashPage(limit: 100, before: nil) }.items } }

    /// The number of nodes whose values will be removed with age.
    var agingNodes: Int { get throws { try count("SELECT count(*) FROM node WHERE lived IS NOT NULL") } }

    /// The number of links without values.
    var purgedLinks: Int { get throws { try count("SELECT count(*) FROM node WHERE kind = 2 AND title IS NULL AND url = ''") } }

    func count(_ sql: String) throws -> Int { try test.read { try $0.first(sql) { $0.int(0) } ?? 0 } }

    var list: ListNode.ID { get throws { try test.read { try ListRecord(on: $0).id } } }
    var record: ListRecord { get throws { try test.read { try ListRecord(on: $0) } } }

    /// The shown tree as text, in the order of the nodes.
    var tree: String {
        get throws {
            try test.read { reader in
                let storage = try SQLListStorage(ListRecord(on: reader), on: reader)
                func text(_ hex: ListNode.ID, _ indent: String) throws -> String {
                    try storage.contents(of: hex).map { row in
                        let node = row.node
                        let values = node.registers.filter { !$0.value.value.isEmpty }.map { "\($0)=\($1.value)" }.sorted().joined(
                            separator: ",")
                        return "\(indent)\(node.title?.value.description ?? "") \(node.url) \(values)\n"
                            + (node.id.kind == .hex ? try text(node.id, indent + "  ") : "")
                    }.joined()
                }
                return try text(storage.list, "")
            }
        }
    }

    /// Whether the rows show the nodes, and digest and counters are those of all rows.
    func isConsistent() throws -> Bool {
        let digest = try test.read { reader in
            let list = try ListRecord(on: reader)
            var digest = ListDigest()
            for node in try SQLListStorage(list, on: reader).nodes() { digest.toggle(node, in: list.id) }
            return (list.digest, digest)
        }
        #expect(digest.0 == nil || digest.0 == digest.1)
        return try MyHexlistNodeTests().rowsShowTheNodes(store) && test.countersAreRight()
    }
}

private struct Failure: Error {
    let text: String
    init(_ text: String) { self.text = text }
}

@Suite(.timeLimit(.minutes(5))) struct ListExchangeTests {
    private func pair() async throws -> (Machine, Machine) {
        let (ada, bob) = (try Machine(1), try Machine(2))
        try await ada.add(bob)
        try await bob.add(ada)
        return (ada, bob)
    }

    /// Exchanges until both have the same rows.
    private func exchange(_ machines: Machine..., at now: Int64 = start) async throws { try await exchange(machines, at: now) }

    private func exchange(_ machines: [Machine], at now: Int64 = start) async throws {
        for _ in 0..<3 {
            for left in machines { for right in machines where left !== right { try await left.run(with: right, at: now) } }
        }
        let first = try machines[0].record
        for machine in machines {
            #expect(try machine.record.digest == first.digest && machine.record.id == first.id)
            #expect(try machine.tree == machines[0].tree)
            #expect(try machine.isConsistent())
        }
    }

    @Test("an addition, a change, a move and a deletion arrive on the other machine") func changes() async throws {
        let (ada, bob) = try await pair()
        try await exchange(ada, bob)
        let hex = try await ada.store.addMine(content("Reading", extra: #"{"note":"n","tags":["a"]}"#), at: start)
        let other = try await ada.store.addMine(content("Work"), at: start + 1)
        try await exchange(ada, bob)
        let listed = try bob.test.read { try $0.hexPage(HexFilter(location: .mine)).items.map(\.description) }
        #expect(listed == ["Work", "Reading"])
        let detail = try #require(try bob.test.read { try $0.hex(1) })
        #expect(detail.content.texts == (try ada.test.read { try $0.hex(hex) })?.content.texts)

        try await bob.store.editMine(
            1, MineEdit(description: "Read", links: [.init(from: 1), .init(url: "https://new.example")]), at: start + 2)
        try await ada.store.moveMine(hex, into: other, at: start + 3)
        try await exchange(ada, bob)
        #expect(try ada.test.read { try $0.hex(hex) }?.content.links.count == 2)
        #expect(try bob.test.read { try $0.hex(1) }?.summary.parent == 2)
        _ = try await bob.store.change([2], .delete, at: start + 4)
        try await exchange(ada, bob)
        #expect(try ada.tree == "" && ada.test.read { try $0.hexPage(HexFilter(location: .mine)).items }.isEmpty)
    }

    @Test("nothing is sent back, and nothing is sent twice") func leftOut() async throws {
        let (ada, bob) = try await pair()
        try await exchange(ada, bob)
        _ = try await ada.store.addMine(content("Reading", links: 50), at: start)
        let before = (ada.received, bob.received)
        try await exchange(ada, bob)
        #expect(ada.received == before.0 && bob.received == before.1 + 51)
        let machines = try ada.test.read { try $0.ownMachines() }
        #expect(machines.map(\.behind) == [0] && machines.map(\.peer) == [bob.peer.id] && machines[0].receivedAt == start)
    }

    @Test("without an own machine, rows have no numbers, and a page is refused") func alone() async throws {
        let (ada, bob) = (try Machine(1), try Machine(2))
        _ = try await ada.store.addMine(content(), at: start)
        #expect(try ada.record.sequence == nil && ada.record.digest == nil)
        await #expect(throws: HexlistError.self) { try await ada.store.addOwnMachine(bob.peer.id, at: start) }
        _ = try ada.test.trust(bob.peer)
        let request = ListPageRequest(cursor: nil, requester: ReplicaNumber(1))
        #expect(try ada.store.listPageSync(ada.list, request, for: bob.peer.id, at: start) == .notFound)
        #expect(try ada.test.read { try $0.listOverview(for: bob.peer.id, at: start) } == ListOverview(now: start, isOwnMachine: false))
        #expect(try await ada.store.addOwnMachine(bob.peer.id, at: start))
        #expect(try await !ada.store.addOwnMachine(bob.peer.id, at: start))
        #expect(try ada.record.sequence == 3 && ada.isConsistent())
        guard case .page = try ada.store.listPageSync(ada.list, request, for: bob.peer.id, at: start) else { return #expect(Bool(false)) }
        var generator = SeededGenerator(seed: 1)
        let another = ListNode.ID(kind: .hex, time: 1, using: &generator)
        #expect(try ada.store.listPageSync(another, request, for: bob.peer.id, at: start) == .notFound)

        let replica = try ada.record.replica
        #expect(try await ada.store.removeOwnMachine(bob.peer.id))
        #expect(try await !ada.store.removeOwnMachine(bob.peer.id))
        #expect(try ada.record.sequence == nil && ada.store.listPageSync(ada.list, request, for: bob.peer.id, at: start) == .notFound)
        _ = try await ada.store.addMine(content(), at: start)
        #expect(try await ada.store.addOwnMachine(bob.peer.id, at: start))
        #expect(try ada.record.replica != replica && ada.isConsistent())
    }

    @Test("a machine that is no longer trusted is no own machine") func trust() async throws {
        let (ada, bob) = try await pair()
        let ends: [() throws -> Void] = [
            { _ = try ada.test.trust(bob.peer, .blocked) },
            { _ = try ada.test.write { [peer = bob.peer] in try $0.forgetPeer(peer.id) } },
        ]
        for end in ends {
            try await ada.add(bob)
            #expect(try ada.test.read { try $0.isOwnMachine(bob.peer.id) })
            try end()
            #expect(try ada.test.read { try !$0.isOwnMachine(bob.peer.id) && $0.ownMachines().isEmpty })
            _ = try ada.test.trust(bob.peer)
            #expect(try ada.test.read { try !$0.isOwnMachine(bob.peer.id) })
        }
    }

    @Test("several pages, and rows of a third machine") func pages() async throws {
        let (ada, bob) = try await pair()
        let carol = try Machine(3)
        try await exchange(ada, bob)
        for number in 0..<3 { _ = try await ada.store.addMine(content("Hex \(number)", links: 1_500), at: start + Int64(number)) }
        try await exchange(ada, bob)
        try await carol.add(bob)
        try await bob.add(carol)
        try await carol.run(with: bob)
        try await exchange(bob, carol)
        #expect(try carol.tree == ada.tree && carol.test.read { try $0.counts() }.mine == 3)
        _ = try await carol.store.addMine(content("From carol"), at: start + 9)
        try await exchange(bob, carol)
        try await exchange(ada, bob)
        #expect(try ada.tree == carol.tree)
    }

    @Test("a page that does not answer the last request is refused, and changes nothing") func stalePage() async throws {
        let (ada, bob) = try await pair()
        try await exchange(ada, bob)
        _ = try await ada.store.addMine(content("Reading"), at: start)
        let list = try ada.list
        let request = try bob.test.read { try $0.listPageRequest(of: list, from: ada.peer.id) }
        guard case .page(let json) = try ada.store.listPageSync(list, request, for: bob.peer.id, at: start) else {
            return #expect(Bool(false))
        }
        let page = try ListPage(decoding: json, from: .ownMachine, isShared: false, now: start)
        func merge(reserve: Int64 = 0) async throws -> ListPageResult {
            try await bob.store.mergeListPage(page, answering: request, from: ada.peer.id, as: .ownMachine, at: start, diskReserve: reserve)
        }
        await #expect(throws: ListFault.diskFull) { try await merge(reserve: .max) }
        let result = try await merge()
        #expect(result.changes == [1] && result.hexes.added == 1 && result.links.added == 2)
        let before = try bob.record.sequence
        var other = page
        (other.after, other.through) = (5, 9)
        await #expect(throws: ListFault.invalid) {
            _ = try await bob.store.mergeListPage(other, answering: request, from: ada.peer.id, as: .ownMachine, at: start, diskReserve: 0)
        }
        await #expect(throws: ListFault.outdated) { try await merge() }
        #expect(try bob.record.sequence == before)
        _ = try await bob.store.removeOwnMachine(ada.peer.id)
        await #expect(throws: ListFault.outdated) { try await merge() }
    }

    // MARK: - Log and trash

    @Test("changes of another machine are in the log, with the machine, and can be undone") func log() async throws {
        let (ada, bob) = try await pair()
        try await exchange(ada, bob)
        let hex = try await ada.store.addMine(content("Reading", links: 3), at: start)
        try await exchange(ada, bob, at: start + 1)
        try await ada.store.editMine(hex, MineEdit(description: "Read"), at: start + 2)
        try await exchange(ada, bob, at: start + 3)
        let changes = try bob.log
        #expect(changes.map(\.author) == [ada.peer.id, ada.peer.id] && changes.map(\.kind) == [.received, .received])
        #expect(changes.map(\.at) == [start + 3, start + 1] && changes.map(\.hex) == [1, 1] && changes.map(\.others) == [0, 0])
        #expect(changes[1].hexes.added == 1 && changes[1].links.added == 3 && changes[0].hexes.changed == 1)
        #expect(changes[0].values == [.init(link: nil, name: "title", before: "Reading", after: "Read")])
        #expect(try ada.log.allSatisfy { $0.author == nil && $0.kind == .user })

        _ = try await bob.store.undoMine([changes[0].number], at: start + 4)
        try await exchange(ada, bob, at: start + 5)
        #expect(try ada.test.read { try $0.hex(hex) }?.summary.description == "Reading")
        #expect(try ada.log.first?.author == bob.peer.id)
    }

    @Test("undoing what another machine added deletes it as one item, also if its values have several versions") func undoAddition()
        async throws
    {
        let (ada, bob) = try await pair()
        try await exchange(ada, bob)
        let hex = try await ada.store.addMine(content("Reading", links: 3), at: start)
        let inner = try await ada.store.addMine(content("Inner", links: 1), into: hex, at: start + 1)
        try await ada.store.editMine(hex, MineEdit(description: "Read", tags: ["t"]), at: start + 2)
        try await ada.store.editMine(inner, MineEdit(color: "red"), at: start + 3)
        try await exchange(ada, bob, at: start + 4)
        let (added, tree) = (try bob.log, try bob.tree)
        #expect(added.count == 1 && added[0].hexes.added == 2 && added[0].links.added == 4 && added[0].others == 0)

        let undone = try await bob.store.undoMine([added[0].number], at: start + 5)
        #expect(undone.hexes.deleted == 2 && undone.links.deleted == 4 && undone.keptCount == 0)
        #expect(try bob.tree == "" && bob.trash.map(\.hexesInside) == [1] && bob.trash.map(\.links) == [4])
        try await exchange(ada, bob, at: start + 6)
        #expect(try ada.trash.map(\.hex) == [hex] && ada.log.first?.hexes.deleted == 2 && ada.log.first?.links.deleted == 4)
        _ = try await bob.store.undoMine([undone.number], at: start + 7)
        try await exchange(ada, bob, at: start + 8)
        #expect(try ada.tree == tree && ada.trash.isEmpty && bob.trash.isEmpty)
        #expect(try ada.log.first?.hexes.restored == 2 && ada.log.first?.links.restored == 4)
    }

    @Test("what another machine deleted is in the trash, and can be restored") func trash() async throws {
        let (ada, bob) = try await pair()
        let hex = try await ada.store.addMine(content("Reading", links: 3), at: start)
        let gone = try await ada.store.addMine(content("Gone", links: 2), at: start)
        _ = try await ada.store.change([gone], .delete, at: start)
        try await exchange(ada, bob, at: start + 1)
        // bob never showed this hex. The values of its links are removed with the trash nevertheless.
        #expect(try bob.trash.isEmpty && bob.agingNodes == 2)
        let gains = try bob.log.map { $0.hexes.added }
        #expect(gains == [1])

        try await ada.store.editMine(hex, MineEdit(links: [.init(from: 0), .init(from: 2)]), at: start + 2)
        try await exchange(ada, bob, at: start + 3)
        _ = try await ada.store.change([hex], .delete, at: start + 4)
        try await exchange(ada, bob, at: start + 5)
        let deletion = try #require(try bob.log.first)
        #expect(deletion.author == ada.peer.id && deletion.hexes.deleted == 1 && deletion.links.deleted == 2)
        let trash = try bob.trash
        #expect(trash.map(\.hex) == [1, nil] && trash.map(\.links) == [2, 0] && trash.map(\.deletedAt) == [start + 5, start + 3])
        _ = try await bob.store.undoMine([deletion.number], at: start + 6)
        _ = try await bob.store.restoreMine(numbers: [trash[1].number], at: start + 7)
        try await exchange(ada, bob, at: start + 8)
        #expect(try ada.test.read { try $0.hex(hex) }?.summary.linkCount == 3)
        #expect(try bob.trash.isEmpty)
    }

    @Test("joining keeps the trash and the log") func joinWithTrash() async throws {
        let (ada, bob) = (try Machine(1), try Machine(2))
        let both = try await bob.store.addMine(content("Reading", links: 3), at: start)
        let gone = try await bob.store.addMine(content("Gone", links: 2), at: start + 1)
        try await bob.store.editMine(both, MineEdit(links: [.init(from: 0), .init(from: 2)]), at: start + 2)
        _ = try await bob.store.change([gone], .delete, at: start + 3)
        _ = try await ada.store.addMine(content("Reading", links: 1), at: start)
        let other = try await ada.store.addMine(content("Other", links: 9), at: start)
        let edit = try #require(try bob.log.dropFirst().first)
        try ada.test.setListTime(start)
        try bob.test.setListTime(start + 1)
        try await ada.add(bob)
        try await bob.add(ada)
        func lived() throws -> [Int64] {
            try bob.test.read { try $0.all("SELECT lived FROM node WHERE lived IS NOT NULL ORDER BY id") { $0.int64(0) } }
        }
        let before = (trash: try bob.trash, lived: try lived(), log: try bob.log)
        try await exchange(ada, bob, at: start + 9)
        #expect(bob.joins.count == 1)
        #expect(try bob.trash == before.trash && lived() == before.lived)
        let log = try bob.log
        let joined = try #require(log.first { $0.kind == .joined })
        #expect(joined.author == ada.peer.id && joined.hexes.added == 1 && joined.links.added == 9 && !joined.isUndoable)
        #expect(log.suffix(before.log.count) == before.log[...])
        await #expect(throws: HexlistError.self) { try await bob.store.undoMine([joined.number], at: start + 10) }
        #expect(try await bob.store.restoreMine(gone, at: start + 11) == gone)
        _ = try await bob.store.undoMine([edit.number], at: start + 12)
        #expect(try bob.trash.isEmpty)
        try await exchange(ada, bob, at: start + 13)
        _ = try await ada.store.change([other], .delete, at: start + 14)
        try await exchange(ada, bob, at: start + 15)
        #expect(try bob.trash.map(\.links) == [9])
        // On the machine whose collection remained, the merge cannot be undone either. Later changes can.
        let received = try #require(try ada.log.first { $0.kind == .joined })
        #expect(received.author == bob.peer.id && !received.isUndoable)
        await #expect(throws: HexlistError.self) { try await ada.store.undoMine([received.number], at: start + 16) }
        #expect(try ada.log.first { $0.kind == .received }?.isUndoable == true)
    }

    @Test("the log of a merged hex has the changes from before; their undo deletes nothing that the other machine added")
    func logBeforeJoin() async throws {
        let (ada, bob) = (try Machine(1), try Machine(2))
        try ada.test.setListTime(start)
        try bob.test.setListTime(start + 1)
        _ = try await ada.store.addMine(content("Reading", links: 2), at: start)
        let both = try await bob.store.addMine(content("Reading", links: 3), at: start + 5)
        try await bob.store.editMine(both, MineEdit(color: "FF0000"), at: start + 6)
        let moved = try await bob.store.addMine(content("Moved"), at: start + 7)
        try await bob.store.moveMine(moved, into: both, at: start + 8)
        try await ada.add(bob)
        try await bob.add(ada)
        func changes() throws -> [MyHexlistChange] { try bob.test.read { try $0.mineChanges(limit: 9, before: nil, hex: both) }.items }
        let before = try changes()
        #expect(before.count == 3)
        try await exchange(ada, bob, at: start + 9)
        #expect(bob.joins.count == 1)
        #expect(try changes() == before)
        let bytes = try bob.count("SELECT sum(bytes) FROM mineChange")
        #expect(try bob.count("SELECT changeBytes FROM list") == bytes)

        let (move, edit, addition) = (before[0].number, before[1].number, before[2].number)
        await #expect {
            _ = try await bob.store.undoMine([addition], at: start + 10)
        } throws: {
            ($0 as? HexlistError)?.message.contains("before the merge") ?? false
        }
        _ = try await bob.store.undoMine([edit], at: start + 11)
        _ = try await bob.store.undoMine([move], at: start + 12)
        #expect(try bob.test.read { try $0.hex(moved) }?.summary.parent == nil)
        try await exchange(ada, bob, at: start + 13)
        let top = try ada.tree.split(separator: "\n").filter { !$0.hasPrefix(" ") }
        #expect(top.count == 2 && top[0].hasPrefix("Moved") && top[1].hasPrefix("Reading") && !top[1].contains("FF0000"))
    }

    @Test("changes are listed by the machine from which they came, also after it was reinstalled") func authors() async throws {
        let (ada, bob) = try await pair()
        try await exchange(ada, bob)
        _ = try await ada.store.addMine(content("Ada's"), at: start + 1)
        _ = try await bob.store.addMine(content("Bob's"), at: start + 2)
        try await exchange(ada, bob, at: start + 3)
        func subjects(_ source: MyHexlistChange.Source) throws -> [String] {
            try bob.test.read { try $0.mineChanges(limit: 9, before: nil, from: source) }.items.map(\.subject)
        }
        #expect(try subjects(.here) == ["Bob's"] && subjects(.machine(ada.peer.id)) == ["Ada's"])
        let new = try TestPeer(9)
        _ = try bob.test.trust(new)
        _ = try await bob.store.takeOver(from: ada.peer.id, by: new.id)
        #expect(try subjects(.machine(new.id)) == ["Ada's"] && subjects(.machine(ada.peer.id)).isEmpty)
    }

    @Test("values of equal items are merged, also when a backup from before the join is restored and joins again") func joinAgain()
        async throws
    {
        let (ada, bob) = (try Machine(1), try Machine(2))
        _ = try await ada.store.addMine(content("Reading", links: 3), at: start)
        let both = try await bob.store.addMine(content("Reading", links: 3), at: start)
        let only = try await bob.store.addMine(content("Only bob", links: 3), at: start + 1)
        func edit(_ machine: Machine, _ hex: Int64, _ title: String, _ tag: String, at now: Int64) async throws {
            let links = [MineEdit.Link(from: 0, linkDescription: title, tags: [tag]), .init(from: 1), .init(from: 2)]
            try await machine.store.editMine(hex, MineEdit(color: "FF0000", tags: [tag], links: links), at: now)
        }
        try await edit(bob, both, "Bob's", "bob", at: start + 2)
        try ada.test.setListTime(start)
        try bob.test.setListTime(start + 1)
        let image = bob.test.folder + "/image"
        try bob.store.onWritingConnection { try $0.execute(sql: "VACUUM INTO '\(image)'") }
        try await ada.add(bob)
        try await bob.add(ada)
        try await exchange(ada, bob)
        #expect(try ada.tree.contains("Bob's") && ada.tree.contains("tag/bob") && ada.tree.contains("color=FF0000"))
        #expect(try bob.trash.isEmpty && bob.joins == [ListSize(hexes: 2, links: 6)])

        let restored = try Machine(2, copyOf: image)
        try await restored.store.renewReplicas()
        try await edit(restored, both, "Later", "later", at: start + 10)
        try await edit(restored, only, "Later too", "later too", at: start + 11)
        _ = try await ada.store.removeOwnMachine(bob.peer.id)
        try await ada.add(restored)
        try await restored.add(ada)
        try await exchange(ada, restored, at: start + 20)
        #expect(try ada.tree.contains("Later ") && ada.tree.contains("Later too") && ada.tree.contains("tag/later too"))
        #expect(try ada.tree.split(separator: "\n").count == 8)
    }

    @Test("a machine that is removed during a join leaves no rows") func removedWhileJoining() async throws {
        let (ada, bob) = (try Machine(1), try Machine(2))
        _ = try await ada.store.addMine(content("Reading", links: 4_000), at: start)
        try await ada.add(bob)
        for end in 0..<2 {
            try await bob.add(ada)
            _ = try await bob.page(of: ada.list, from: ada)
            #expect(try bob.count("SELECT count(*) FROM joinNode") > 0)
            if end == 0 { _ = try await bob.store.removeOwnMachine(ada.peer.id) } else { _ = try bob.test.trust(ada.peer, .blocked) }
            #expect(try bob.count("SELECT count(*) FROM joinNode") + bob.count("SELECT count(*) FROM joining") == 0)
        }
    }

    // MARK: - Purging

    @Test(
        "values of deleted links are removed with age, ids and deletion marks stay; a machine that was away brings nothing back",
        arguments: [false, true])
    func away(emptiesTrash: Bool) async throws {
        let (ada, bob) = try await pair()
        let hex = try await ada.store.addMine(content("Reading", links: 3), at: start)
        let gone = try await ada.store.addMine(content("Gone", links: 2), at: start)
        _ = try await ada.store.addMine(content("Inner", links: 1), into: gone, at: start)
        let single = try await ada.store.addMine(content("Single"), at: start)
        try await exchange(ada, bob)

        // bob is away.
        try await ada.store.editMine(hex, MineEdit(links: [.init(from: 0), .init(from: 2)]), at: start + 1)
        _ = try await ada.store.change([gone], .delete, at: start + 2)
        _ = try await ada.store.change([single], .delete, at: start + 3)
        let nodes = try ada.count("SELECT count(*) FROM node")
        let tree = try ada.tree
        func purge(_ machine: Machine) async throws {
            if emptiesTrash {
                let items = try machine.trash
                #expect(try await machine.store.emptyTrash() == (items.count { $0.hex != nil }, items.count { $0.hex == nil }))
            } else {
                let (first, last) = try (machine.count("SELECT min(lived) FROM node"), machine.count("SELECT max(lived) FROM node"))
                _ = try machine.test.write { try $0.maintain(at: Int64(first) + 60 * day - 1) }
                #expect(try machine.purgedLinks == 0)
                _ = try machine.test.write { try $0.maintain(at: Int64(last) + 60 * day) }
            }
        }
        try await purge(ada)
        #expect(try ada.trash.isEmpty && ada.agingNodes == 0)
        #expect(try ada.count("SELECT count(*) FROM node") == nodes && ada.purgedLinks == 6)
        #expect(try ada.isConsistent() && ada.tree == tree)
        let bytes = try ada.count(
            """
            SELECT max(length(uuid) + coalesce(length(goneWith), 0) + coalesce(length(parent), 0) + coalesce(length(orderKey), 0)
                + coalesce(length(registers), 0)) FROM node WHERE kind = 2 AND title IS NULL
            """)
        #expect(bytes == 16)

        try await exchange(ada, bob, at: start + 4)
        #expect(try bob.tree == tree && ada.tree == tree)
        try await purge(bob)
        #expect(try bob.trash.isEmpty && bob.purgedLinks == 6)
        let received = (ada.received, bob.received)
        try await exchange(ada, bob, at: start + 5)
        #expect((ada.received, bob.received) == received)

        // A third machine, which had the items all the time, as if it came back after years.
        let carol = try Machine(3)
        try await carol.add(ada)
        try await ada.add(carol)
        try await exchange(ada, carol, at: start + 6)
        #expect(try carol.tree == tree && carol.trash.isEmpty)
    }

    @Test("after the last own machine is removed, deleted items leave ids and deletion marks as well") func formerMachine() async throws {
        let (ada, bob) = try await pair()
        let hex = try await ada.store.addMine(content("Reading", links: 3), at: start)
        try await exchange(ada, bob)
        _ = try await ada.store.removeOwnMachine(bob.peer.id)
        _ = try await bob.store.removeOwnMachine(ada.peer.id)
        _ = try await ada.store.change([hex], .delete, at: start + 1)
        _ = try await ada.store.emptyTrash()
        #expect(try ada.purgedLinks == 3 && ada.count("SELECT count(*) FROM node") == 4)
        try await ada.add(bob)
        try await bob.add(ada)
        try await exchange(ada, bob, at: start + 2)
        #expect(try ada.tree == "" && bob.tree == "")
    }

    @Test("what was purged here is restored with its values by a machine that has them") func restoredElsewhere() async throws {
        let (ada, bob) = try await pair()
        let hex = try await ada.store.addMine(content("Reading", links: 3), at: start)
        try await exchange(ada, bob)
        let tree = try ada.tree
        try await ada.store.editMine(hex, MineEdit(links: [.init(from: 0), .init(from: 2)]), at: start + 1)
        try await exchange(ada, bob, at: start + 2)
        _ = try await ada.store.emptyTrash()
        let item = try #require(try bob.trash.first)
        _ = try await bob.store.restoreMine(numbers: [item.number], at: start + 3)
        try await exchange(ada, bob, at: start + 4)
        #expect(try ada.tree == tree)
    }

    @Test("a hex that is shown because of another machine's link is in the trash with its other contents") func retained() async throws {
        let (ada, bob) = try await pair()
        let hex = try await ada.store.addMine(content("Reading", links: 3), at: start)
        try await exchange(ada, bob)
        let (before, sent) = (try ada.tree, ada.received)
        let copy = try #require(try bob.test.read { try $0.hexPage(HexFilter(location: .mine)).items.first }).id
        try await bob.store.editMine(
            copy, MineEdit(links: (0..<3).map { .init(from: $0) } + [.init(url: "https://new.example/")]), at: start + 1)
        _ = try await ada.store.change([hex], .delete, at: start + 1)
        try await exchange(ada, bob, at: start + 2)
        #expect(ada.received == sent + 1)  // only the new link; the merge caused no change
        for machine in [ada, bob] {
            #expect(try machine.test.read { try $0.hexPage(HexFilter(location: .mine)).items.map(\.linkCount) } == [1])
            #expect(try machine.trash.map(\.links) == [3])
        }
        let item = try #require(try bob.trash.first)
        _ = try await bob.store.restoreMine(numbers: [item.number], at: start + 3)
        try await exchange(ada, bob, at: start + 4)
        #expect(try ada.tree.hasPrefix(before) && ada.tree.contains("new.example") && ada.trash.isEmpty && bob.trash.isEmpty)

        // Deleted again on both machines, it is an item as others.
        _ = try await ada.store.change([hex], .delete, at: start + 5)
        try await exchange(ada, bob, at: start + 6)
        #expect(try ada.trash.map(\.links) == [4] && bob.trash.map(\.links) == [4])
    }

    @Test("a deletion in several pages is as many changes, which are undone together", arguments: [false, true])
    func splitDeletion(isReversed: Bool) async throws {
        let (ada, bob) = try await pair()
        let hex = try await ada.store.addMine(content("Reading", links: 8), at: start)
        _ = try await ada.store.addMine(content("Inner", links: 2), into: hex, at: start)
        try await exchange(ada, bob)
        let tree = try bob.tree
        _ = try await ada.store.change([hex], .delete, at: start + 1)
        let list = try ada.list
        let request = try bob.test.read { try $0.listPageRequest(of: list, from: ada.peer.id) }
        guard case .page(let json) = try ada.store.listPageSync(list, request, for: bob.peer.id, at: start) else {
            return #expect(Bool(false))
        }
        let whole = try ListPage(decoding: json, from: .ownMachine, isShared: false, now: start)
        #expect(whole.nodes.count == 12)
        let nodes = isReversed ? whole.nodes.reversed() : whole.nodes
        var deleted = (hexes: 0, links: 0)
        for part in 0..<3 {
            var page = whole
            page.nodes = Array(nodes[(4 * part)..<(4 * part + 4)])
            (page.after, page.through) = (whole.after + Int64(4 * part), whole.after + Int64(4 * part + 4))
            page.isLast = part == 2
            let request = try bob.test.read { try $0.listPageRequest(of: list, from: ada.peer.id) }
            let result = try await bob.store.mergeListPage(
                page, answering: request, from: ada.peer.id, as: .ownMachine, at: start + 2, diskReserve: 0)
            deleted.hexes += result.hexes.deleted
            deleted.links += result.links.deleted
            if result.links.deleted > 0, deleted.links == result.links.deleted { #expect(result.linksBefore == 10) }
        }
        #expect(deleted == (2, 10))
        try await exchange(ada, bob, at: start + 3)
        #expect(try bob.tree == "" && bob.trash.map(\.links) == [10])
        let changes = try bob.log.filter { $0.links.deleted + $0.hexes.deleted > 0 }.map(\.number)
        _ = try await bob.store.undoMine(changes, at: start + 4)
        #expect(try bob.tree == tree && bob.trash.isEmpty)
        try await exchange(ada, bob, at: start + 5)
        #expect(try ada.tree == tree && ada.trash.isEmpty)
    }

    // MARK: - Bounds

    @Test("rows and replica numbers have a maximum; the page then changes nothing") func full() async throws {
        let (ada, bob) = try await pair()
        try await exchange(ada, bob)
        _ = try await ada.store.addMine(content("Reading"), at: start)
        let list = try ada.list
        let request = try bob.test.read { try $0.listPageRequest(of: list, from: ada.peer.id) }
        guard case .page(let json) = try ada.store.listPageSync(list, request, for: bob.peer.id, at: start) else {
            return #expect(Bool(false))
        }
        var page = try ListPage(decoding: json, from: .ownMachine, isShared: false, now: start)
        for index in page.nodes.indices {
            let version = ListVersion(clock: (page.nodes[index].version?.clock ?? 0) + 1, replica: ReplicaNumber(UInt64(index) + 1))
            page.nodes[index].title = ListNode.Register(version: version, value: "t")
        }
        let before = try bob.record
        try bob.test.write { writer in
            _ = try writer.change {
                try writer.run(
                    """
                    WITH RECURSIVE n (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n LIMIT ?)
                    INSERT INTO replica (number) SELECT -value FROM n
                    """, StoreWriter.maximumReplicas - 2)
            }
        }
        await #expect(throws: ListFault.full) {
            try await bob.store.mergeListPage(page, answering: request, from: ada.peer.id, as: .ownMachine, at: start, diskReserve: 0)
        }
        let after = try bob.record
        #expect(after.sequence == before.sequence && after.digest == before.digest && after.changes == before.changes)
        #expect(try bob.tree == "")
    }

    @Test("a node that both machines gave 40 tags keeps the 64 latest, and nothing is sent back and forth") func registers() async throws {
        let (ada, bob) = try await pair()
        let hex = try await ada.store.addMine(content("Reading", links: 1), at: start)
        try await exchange(ada, bob)
        let copy = try #require(try bob.test.read { try $0.hexPage(HexFilter(location: .mine)).items.first }).id
        try await ada.store.editMine(hex, MineEdit(tags: (0..<40).map { "a\($0)" }), at: start + 1)
        try await bob.store.editMine(copy, MineEdit(tags: (0..<40).map { "b\($0)" }), at: start + 2)
        try await exchange(ada, bob, at: start + 3)
        let received = (ada.received, bob.received)
        try await exchange(ada, bob, at: start + 4)
        #expect((ada.received, bob.received) == received)
        let tags = try ada.test.read { try $0.hex(hex) }?.content.extra
        #expect(tags != nil)
    }

    // MARK: - Copies of a store

    @Test("a rolled-back store loses nothing that the other machine has") func rollback() async throws {
        let (ada, bob) = try await pair()
        let first = try await ada.store.addMine(content("First"), at: start)
        try await exchange(ada, bob)
        let image = ada.test.folder + "/image"
        try ada.store.onWritingConnection { try $0.execute(sql: "VACUUM INTO '\(image)'") }
        _ = try await ada.store.addMine(content("Later"), at: start + 1)
        _ = try await ada.store.change([first], .delete, at: start + 2)
        try await exchange(ada, bob)

        // Once the old copy runs, bob's cursor is ahead of its numbers.
        let old = try Machine(1, copyOf: image)
        try await exchange(old, bob)
        #expect(try old.tree == ada.tree)
    }

    @Test("numbers that a store does not have cause a new replica number once an hour") func outdated() async throws {
        let (ada, bob) = try await pair()
        _ = try await ada.store.addMine(content("First"), at: start)
        try await exchange(ada, bob)
        func answer(at now: Int64) throws -> ListPageAnswer {
            let cursor = ListCursor(replica: try ada.record.replica, sequence: 9_000_000_000_000_000_000)
            let request = ListPageRequest(cursor: cursor, requester: try bob.record.replica)
            return try ada.store.listPageSync(ada.list, request, for: bob.peer.id, at: now)
        }
        let first = try ada.record.replica
        guard case .page = try answer(at: start) else { return #expect(Bool(false), "the first one is answered") }
        let second = try ada.record.replica
        #expect(second != first)
        #expect(try answer(at: start + 3_599_999) == .busy && ada.record.replica == second)
        guard case .page = try answer(at: start + 3_600_000) else { return #expect(Bool(false), "an hour later") }
        #expect(try ada.record.replica != second)
        // A clock that was set back does not block.
        guard case .page = try answer(at: start) else { return #expect(Bool(false), "after the clock was set back") }
    }

    @Test("unknown members that are no JSON object are not shown", arguments: ["7", "[1]", #"{"a":1"#, "", #"{"a":1}"#])
    func invalidExtra(text: String) async throws {
        let (ada, bob) = try await pair()
        let hex = try await ada.store.addMine(content("First", links: 1), at: start)
        try await exchange(ada, bob)
        try bob.test.write { writer in
            try writer.changeMine(at: start + 1) { transaction in
                let id = try #require(try writer.first("SELECT uuid FROM node WHERE title = 'First'") { $0.nodeID(0) } ?? nil)
                var node = ListNode(id: id)
                node.registers = [NodeRegisters.extra: .init(version: transaction.nodes.nextVersion(), value: UTF8Text(text))]
                try transaction.nodes.merge(node)
            }
        }
        try await exchange(ada, bob, at: start + 2)
        let content = try #require(try ada.test.read { try $0.hex(hex) }).content
        #expect(String(decoding: content.bytes(content.extra), as: UTF8.self) == (text.hasSuffix("}") ? text : ""))
    }

    @Test("a node of an unknown kind is passed on, and does not keep a deleted hex shown, also if both arrive in one page")
    func unknownKind() async throws {
        let (ada, bob) = try await pair()
        let hex = try await ada.store.addMine(content("First", links: 1), at: start)
        let id = try #require(UUIDBytes("018BCFE5-6800-8900-8000-000000000001").flatMap { ListNode.ID($0) })
        try ada.test.write { writer in
            try writer.changeMine(at: start + 1) { transaction in
                let parent = try #require(try writer.first("SELECT uuid FROM node WHERE title = 'First'") { $0.nodeID(0) } ?? nil)
                var node = ListNode(id: id)
                let version = transaction.nodes.nextVersion()
                node.place = ListNode.Place(version: version, parent: parent, key: OrderKey(bytes: [1]))
                node.registers = ["later version": .init(version: version, value: "text")]
                try transaction.nodes.merge(node)
            }
        }
        try await exchange(ada, bob, at: start + 2)
        #expect(try bob.count("SELECT count(*) FROM node WHERE kind = 9 AND state = 1 AND registers IS NOT NULL") == 1)
        _ = try await ada.store.change([hex], .delete, at: start + 3)
        try await exchange(ada, bob, at: start + 4)
        #expect(try bob.tree == "")
    }

    @Test("a rolled-back store whose numbers have caught up is repaired by the digests") func caughtUp() async throws {
        let (ada, bob) = try await pair()
        _ = try await ada.store.addMine(content("First"), at: start)
        try await exchange(ada, bob)
        let image = ada.test.folder + "/image"
        try ada.store.onWritingConnection { try $0.execute(sql: "VACUUM INTO '\(image)'") }
        _ = try await ada.store.addMine(content("Lost"), at: start + 1)
        try await exchange(ada, bob)
        let old = try Machine(1, copyOf: image)
        _ = try await old.store.addMine(content("Another"), at: start + 2)
        #expect(try old.record.sequence == ada.record.sequence)
        try await exchange(old, bob)
        #expect(try old.tree.contains("Lost") && old.tree.contains("Another"))
    }

    // MARK: - Joining

    @Test("two collections become one on both machines; rows keep their ids") func join() async throws {
        let (ada, bob) = (try Machine(1), try Machine(2))
        let both = try await bob.store.addMine(content("Reading", links: 3), at: start)
        let inner = try await bob.store.addMine(content("Inner", links: 1), into: both, at: start)
        let only = try await bob.store.addMine(content("Only bob", links: 1), at: start + 1)
        _ = try await ada.store.addMine(content("Other", links: 1), at: start)
        _ = try await ada.store.addMine(content("Reading", links: 4), at: start + 2)
        // ada's collection is older, so it remains.
        try ada.test.setListTime(start)
        try bob.test.setListTime(start + 1)
        let list = try ada.list
        try await ada.add(bob)
        try await bob.add(ada)
        try await exchange(ada, bob)
        #expect(try ada.list == list && ada.joins.isEmpty && bob.joins == [ListSize(hexes: 4, links: 7)])
        for (id, title, links) in [(both, "Reading", 4), (inner, "Inner", 1), (only, "Only bob", 1)] {
            let hex = try #require(try bob.test.read { try $0.hex(id) })
            #expect(hex.summary.description == title && hex.summary.linkCount == links)
        }
        #expect(try bob.test.read { try $0.hex(inner) }?.summary.parent == both)
        _ = try await bob.store.addMine(content("After"), at: start + 9)
        try await exchange(ada, bob)
        #expect(try ada.tree.contains("After"))
    }

    @Test("three machines with the same links have no duplicates, whatever the order") func joinThree() async throws {
        for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
            let machines = [try Machine(1), try Machine(2), try Machine(3)]
            for machine in machines {
                _ = try await machine.store.addMine(content("Reading", links: 40), at: start)
                _ = try await machine.store.addMine(content("Work", links: 40), at: start)
            }
            for left in machines { for right in machines where left !== right { try await left.add(right) } }
            for _ in 0..<3 {
                for left in order { for right in order where left != right { try await machines[left].run(with: machines[right]) } }
            }
            try await exchange(machines[0], machines[1], machines[2])
            #expect(try machines[0].tree.split(separator: "\n").count == 82)
        }
    }

    @Test("a collection is joined only if it is complete and no row was added meanwhile") func joinTooEarly() async throws {
        let (ada, bob) = (try Machine(1), try Machine(2))
        _ = try await ada.store.addMine(content("Reading", links: 4_000), at: start)
        _ = try await bob.store.addMine(content("Work"), at: start)
        try await ada.add(bob)
        try await bob.add(ada)
        let list = try ada.list
        func join(at sequence: Int64) async throws {
            _ = try await bob.store.joinList(list, with: ada.peer.id, ifStillAt: sequence, at: start, diskReserve: 0)
        }
        await #expect(throws: ListFault.outdated) { try await join(at: 3) }
        let page = try #require(try await bob.page(of: list, from: ada))
        #expect(!page.isLast)
        await #expect(throws: ListFault.outdated) { try await join(at: 3) }
        // A request for the incomplete collection.
        let request = ListPageRequest(cursor: nil, requester: ReplicaNumber(1))
        #expect(try bob.store.listPageSync(list, request, for: ada.peer.id, at: start) == .busy)
        for _ in 0..<10 { if try await bob.page(of: list, from: ada)?.isLast ?? true { break } }
        await #expect(throws: ListFault.outdated) { try await join(at: 2) }
        #expect(try bob.test.read { try $0.counts() }.mine == 1)
        try await join(at: 3)
        #expect(try bob.list == list && bob.isConsistent() && bob.test.read { try $0.counts() }.mine == 2)
    }

    // MARK: - Random

    @Test(
        "random changes on two machines converge, and nothing is sent afterwards",
        arguments: 0..<(LongTests.areWanted ? 100 : 4) as Range<UInt64>)
    func random(seed: UInt64) async throws { try await random(seed: seed, machines: 2, steps: 80) }

    @Test(
        "random changes on three machines converge, and nothing is sent afterwards",
        arguments: 100..<(LongTests.areWanted ? 150 : 102) as Range<UInt64>)
    func randomThree(seed: UInt64) async throws { try await random(seed: seed, machines: 3, steps: 80) }

    private func random(seed: UInt64, machines count: UInt8, steps: Int) async throws {
        var random = SeededGenerator(seed: seed)
        let machines = try (1...count).map { try Machine($0) }
        for left in machines { for right in machines where left !== right { try await left.add(right) } }
        try await exchange(machines)
        for step in 0..<steps {
            let machine = machines[Int.random(in: 0..<machines.count, using: &random)]
            // Each machine has a clock of its own, up to an hour off.
            let now = start + Int64(step) * 1_000 + Int64(machine.peer.id.uuid.low % 3) * 1_200_000
            do {
                if Int.random(in: 0..<6, using: &random) == 0 {
                    let peer = machines[Int.random(in: 0..<machines.count, using: &random)]
                    if peer !== machine { try await machine.run(with: peer, at: now) }
                } else {
                    try await change(machine, step, at: now, using: &random)
                }
            } catch let error as HexlistError where error.code == .badRequest {}
        }
        try await exchange(machines, at: start + 10_000_000)
        let received = machines.map(\.received)
        for left in machines { for right in machines where left !== right { try await left.run(with: right, at: start + 10_000_000) } }
        #expect(machines.map(\.received) == received, "seed \(seed): rows were sent again")
        // A machine that knows nothing has the same tree.
        let last = try Machine(9)
        try await machines[0].add(last)
        try await last.add(machines[0])
        try await last.run(with: machines[0], at: start + 10_000_000)
        if try last.list != machines[0].list { try await machines[0].run(with: last, at: start + 10_000_000) }
        try await exchange([last, machines[0]], at: start + 10_000_000)
    }

    /// Makes a random change.
    private func change(_ machine: Machine, _ step: Int, at now: Int64, using random: inout SeededGenerator) async throws {
        let store = machine.store
        let ids = try machine.test.read { try $0.all("SELECT id FROM hex ORDER BY id") { $0.int64(0) } }
        let (id, other) = (ids.randomElement(using: &random), ids.randomElement(using: &random))
        switch (Int.random(in: 0..<14, using: &random), id, other) {
        case (0...2, _, _), (_, nil, _):
            let extra = [#"{"note":"n","tags":["b","a"]}"#, #"{"x":1,"tags":["a"]}"#, ""].randomElement(using: &random) ?? ""
            let hex = content("Hex \(step)", links: step % 4, extra: extra)
            _ = try await store.addMine(hex, into: Bool.random(using: &random) ? id : nil, at: now)
        case (3, let id?, let other?): try await store.moveMine(id, into: other, at: now)
        case (4, let id?, _): try await store.moveMine(id, into: nil, at: now)
        case (5...6, let id?, _): _ = try await store.change([id], .delete, at: now)
        case (7...8, _, _):
            let items = try machine.trash.map(\.number)
            if let item = items.randomElement(using: &random) { _ = try await store.restoreMine(numbers: [item], at: now) }
        case (9...10, _, _):
            let changes = try machine.log.filter(\.isUndoable).prefix(9).map(\.number)
            let some = Set((0...1).compactMap { _ in changes.randomElement(using: &random) })
            if !some.isEmpty { _ = try await store.undoMine(Array(some), at: now) }
        case (11, _, _) where step % 4 == 0: _ = try await store.emptyTrash()
        case (_, let id?, _):
            let count = try #require(try machine.test.read { try $0.hex(id) }).content.links.count
            var links = (0..<count).shuffled(using: &random).dropLast(count / 3).map { MineEdit.Link(from: $0) }
            links.append(MineEdit.Link(url: "https://new.example/\(step)", tags: ["x", "y"]))
            if Bool.random(using: &random) { links.shuffle(using: &random) }
            if Bool.random(using: &random) { links[0].url = "https://changed.example/\(step)" }
            links[0].linkDescription = "Changed \(step)"
            links[0].tags = [["new"], [], (0..<40).map { "\(step) \($0)" }].randomElement(using: &random) ?? []
            try await store.editMine(
                id, MineEdit(description: Bool.random(using: &random) ? "Edited \(step)" : nil, tags: ["t\(step % 3)"], links: links),
                at: now)
        }
    }
}

extension TestStore {
    /// Replaces My Hexlist by a list with the same random bits and another time. The list must have no number yet.
    fileprivate func setListTime(_ time: Int64) throws {
        try write { writer in
            try writer.change {
                let list = try ListRecord(on: writer).id
                let uuid = UUIDBytes(high: UInt64(bitPattern: time) << 16 | list.uuid.high & 0xFFFF, low: list.uuid.low)
                try writer.run("UPDATE node SET parent = ?1 WHERE parent = ?2", uuid, list.uuid)
                try writer.run("UPDATE node SET previousParent = ?1 WHERE previousParent = ?2", uuid, list.uuid)
                try writer.run("UPDATE node SET container = ?1 WHERE container = ?2", uuid, list.uuid)
                try writer.run("UPDATE list SET uuid = ?", uuid)
            }
        }
    }
}
