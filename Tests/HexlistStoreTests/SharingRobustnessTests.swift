import HexlistLists
import HexlistModel
import TestSupport
import Testing

@testable import HexlistStore

private typealias Person = SharingPerson

/// Hostile members and owners, machines that were away, lost rows and wrong clocks.
@Suite(.timeLimit(.minutes(5))) struct SharingRobustnessTests: SharingScenario {
    @Test("accepted changes of a member's second machine, which is no member itself, are not rejected") func secondMachine() async throws {
        let (ada, bob, hex) = try await shared()
        let laptop = try Person(5)
        try await pair(bob, laptop)
        try await exchange((bob, laptop), at: 3)
        try await add("c", by: laptop, at: 4)
        try await exchange((bob, laptop), (ada, bob), (bob, laptop), at: 5)
        #expect(try ada.hexes == ["Reading https://a.example/ https://b.example/ https://c.example/"])
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .read], at: start + 6)
        try await exchange((ada, bob), (bob, laptop), at: 7)
        #expect(try rejected(bob).isEmpty)
        #expect(try rejected(laptop).isEmpty)
    }

    @Test("accepted changes are not rejected after the replica number was renewed") func renewed() async throws {
        let (ada, bob, hex) = try await shared()
        try await add("c", by: bob, at: 4)
        try await exchange((ada, bob), at: 5)
        try await bob.store.renewReplicas()  // as a restored backup does
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .read], at: start + 6)
        try await exchange((ada, bob), at: 7)
        #expect(try rejected(bob).isEmpty)
        #expect(try ada.hexes.last == bob.hexes.last)
    }

    @Test("deleting and restoring a hex that was joined twice loses nothing") func leaveTwice() async throws {
        let (ada, bob, hex) = try await shared()
        _ = try await bob.store.change([try bob.hex("Reading")], .delete, at: start + 3)
        try await ada.request(from: bob, at: start + 3)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .read], at: start + 4)
        try await join(bob, ada)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .write], at: start + 5)
        try await exchange((ada, bob), at: 6)
        try await add("c", by: bob, at: 7)
        let number = try bob.hex("Reading")
        _ = try await bob.store.change([number], .delete, at: start + 8)
        #expect(try bob.hexes == [])
        _ = try await bob.store.restoreMine(number, at: start + 9)
        #expect(try bob.hexes == ["Reading https://a.example/ https://b.example/ https://c.example/"])
    }

    @Test("deleting and restoring a hex whose sharing has ended loses nothing") func leaveTwiceEnded() async throws {
        let (ada, bob, hex) = try await shared()
        _ = try await bob.store.change([try bob.hex("Reading")], .delete, at: start + 3)
        try await ada.request(from: bob, at: start + 3)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .read], at: start + 4)
        try await join(bob, ada)
        try await bob.store.repairList(try list(bob), with: ada.peer.id)
        try await exchange((ada, bob), at: 5)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .ended], at: start + 6)
        try await exchange((ada, bob), at: 7)
        let number = try bob.hex("Reading")
        #expect(try bob.hexes == ["Reading https://a.example/ https://b.example/"])
        _ = try await bob.store.change([number], .delete, at: start + 8)
        _ = try await bob.store.restoreMine(number, at: start + 9)
        try await exchange((ada, bob), at: 10)
        #expect(try bob.hexes == ["Reading https://a.example/ https://b.example/"])
    }

    @Test("an owner cannot take back what a member has received") func takeBack() async throws {
        let (ada, bob, hex) = try await shared()
        try await add("c", by: bob, at: 4)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .read], at: start + 5)
        // The overview arrives, but ada goes offline before the pages do, and ends the sharing before she is online again.
        let json = try ada.test.read { try $0.listOverview(for: bob.peer.id, at: start + 6) }.json
        _ = try await bob.store.applyOverview(ListOverview(decoding: json), from: ada.peer.id, at: start + 6)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .ended], at: start + 7)
        try await exchange((ada, bob), at: 8)
        #expect(try bob.hexes == ["Reading https://a.example/ https://b.example/ https://c.example/"])
    }

    @Test("a hostile owner cannot empty the copy of a member") func takeBackHostile() async throws {
        let (ada, bob, _) = try await shared()
        let list = try list(bob)
        try await send([node(.link, in: list, "x", version(9, 100))], of: list, to: bob, from: ada, replica: 100)
        try await send([node(.link, in: list, "y", version(9, 101))], of: list, to: bob, from: ada, replica: 101)
        _ = try await bob.store.applyOverview(overview(list, .read, at: 20), from: ada.peer.id, at: start + 200)
        _ = try await bob.store.applyOverview(overview(list, .ended, at: 21), from: ada.peer.id, at: start + 200)
        #expect(try bob.hexes.last?.contains("https://a.example/") ?? false)
    }

    @Test("an undo of the move that was a part of sharing does not bring back the old hex") func undoMove() async throws {
        let (ada, bob) = (try Person(1), try Person(2))
        try ada.trust(bob)
        try bob.trust(ada)
        let outer = try await ada.store.addMine(content("Outer", links: 0), at: start)
        let hex = try await ada.store.addMine(content("Reading", links: 1), into: outer, at: start)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .write], at: start + 1)
        let before = try ada.hexes
        for change in try ada.test.read({ try $0.mineChanges(limit: 10, before: nil) }).items {
            _ = try? await ada.store.undoMine([change.number], at: start + 2)
        }
        #expect(try ada.hexes == before || ada.hexes.count < before.count)
        #expect(try ada.isConsistent())
    }

    @Test("an owner cannot use up the replica numbers of My Hexlist") func replicaNumbers() async throws {
        let (ada, bob, _) = try await shared()
        let list = try list(bob)
        func numbers() throws -> Int64 {
            try bob.test.read {
                try $0.first("SELECT (SELECT count(*) FROM replica) - (SELECT coalesce(sum(replicas), 0) FROM list)") { $0.int64(0) } ?? 0
            }
        }
        let before = try numbers()
        for round in 0..<50 as Range<Int64> {
            try await send([node(.link, in: list, "x", version(9, 100))], of: list, to: bob, from: ada, replica: 100)
            try await send([node(.link, in: list, "y", version(9, 101))], of: list, to: bob, from: ada, replica: 101)
            _ = try await bob.store.applyOverview(overview(list, .read, at: 20 + 2 * round), from: ada.peer.id, at: start + 200)
            _ = try await bob.store.applyOverview(overview(list, .write, at: 21 + 2 * round), from: ada.peer.id, at: start + 200)
        }
        #expect(try numbers() - before < 10)
    }

    @Test("repairs do not use up the replica numbers of My Hexlist") func repairs() async throws {
        let (ada, bob, _) = try await shared()
        let list = try list(bob)
        func numbers() throws -> Int64 {
            try bob.test.read {
                try $0.first("SELECT (SELECT count(*) FROM replica) - (SELECT coalesce(sum(replicas), 0) FROM list)") { $0.int64(0) } ?? 0
            }
        }
        let before = try numbers()
        for _ in 0..<50 { try await bob.store.repairList(list, with: ada.peer.id) }
        #expect(try numbers() - before < 10)
    }

    @Test("what an owner accepts of a member can be received by all other members: replica numbers") func boundReplicas() async throws {
        let (ada, bob, hex) = try await shared()
        let list = try list(bob)
        try await add("c", by: bob, at: 4)
        try await exchange((ada, bob), at: 5)
        let used = try ada.test.read { try $0.first("SELECT replicas FROM list WHERE id <> 1") { $0.int(0) } ?? 0 }
        let nodes = (0..<(375 - used)).map { node(.link, in: list, "x", version(9, 1_000 + UInt64($0))) }
        try await send(nodes, of: list, to: ada, from: bob, replica: 1_000)
        let carol = try Person(3)
        try carol.trust(ada)
        try ada.trust(carol)
        _ = try await ada.store.shareMine(hex, with: [carol.peer.id: .read], at: start + 10)
        await #expect(throws: Never.self) { try await join(carol, ada) }
        #expect(try digest(carol) == digest(ada))
    }

    @Test("what an owner accepts of a member can be received by all other members: texts") func boundTexts() async throws {
        let (ada, bob, hex) = try await shared()
        let list = try list(bob)
        // 4 MiB of the owner's own texts.
        let long = String(repeating: "a", count: 60_000)
        let links = (0..<60).map { MineEdit.Link(url: "https://\($0).example/", linkDescription: long) }
        try await ada.store.editMine(hex, MineEdit(links: links), at: start + 3)
        let note = UTF8Text(String(repeating: "n", count: 65_000))
        for _ in 0..<65 {
            let nodes = (0..<4).map { _ in
                var node = node(.link, in: list, "x", version(9))
                for name in ["a", "b", "c", "d"] as [UTF8Text] where node.registers.count < 3 {
                    node.registers[name] = ListNode.Register(version: version(9), value: note)
                }
                node.title?.value = note
                return node
            }
            try await send(nodes, of: list, to: ada, from: bob, replica: 1_000)
            let bytes = try ada.test.read { try $0.first("SELECT textBytes FROM list WHERE id <> 1") { $0.int(0) } ?? 0 }
            if bytes > 49_000_000 { break }
        }
        let carol = try Person(3)
        try carol.trust(ada)
        try ada.trust(carol)
        _ = try await ada.store.shareMine(hex, with: [carol.peer.id: .read], at: start + 10)
        await #expect(throws: Never.self) { try await join(carol, ada) }
        #expect(try digest(carol) == digest(ada))
    }

    @Test("a member cannot change a URL, which has no version") func url() async throws {
        let (ada, bob, _) = try await shared()
        let list = try list(bob)
        let victim = try #require(
            try ada.test.read { reader in
                let record = try ListRecord(list, on: reader)
                return try record.flatMap { try SQLListStorage($0, on: reader).nodes().first { $0.url.description.contains("//a.") } }
            })
        var node = victim
        node.url = "https://zzz.example/phishing"
        try await send([node], of: list, to: ada, from: bob)
        #expect(try ada.hexes == ["Reading https://a.example/ https://b.example/"])
    }

    @Test("emptying the trash changes no row of a list that can only be read") func emptyTrash() async throws {
        let (ada, bob, hex) = try await shared(.read)
        let inner = try await ada.store.addMine(content("Chapter", links: 2), into: hex, at: start + 3)
        try await exchange((ada, bob), at: 4)
        _ = try await ada.store.change([inner], .delete, at: start + 5)
        try await exchange((ada, bob), at: 6)
        #expect(try digest(ada) == digest(bob))
        let sequence = try bob.test.read { try $0.first("SELECT seq FROM list WHERE id <> 1") { $0.int(0) } }
        _ = try await bob.store.emptyTrash()
        #expect(try bob.test.read { try $0.first("SELECT seq FROM list WHERE id <> 1") { $0.int(0) } } == sequence)
        #expect(try digest(ada) == digest(bob), "they differ until the owner empties the trash, too")
        // And these rows count as changes of bob.
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .write], at: start + 7)
        try await bob.request(from: ada, at: start + 8)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .read], at: start + 9)
        let changes = try await bob.request(from: ada, at: start + 10)
        guard changes.count == 1, case .becameReadOnly = changes.first else {
            Issue.record("\(changes)")
            return
        }
    }

    @Test("sharing works after the owner's clock was once wrong") func clock() async throws {
        let (ada, bob) = (try Person(1), try Person(2))
        try ada.trust(bob)
        try bob.trust(ada)
        _ = try await ada.store.addMine(content("Future", links: 0), at: start + 86_400_000)  // a day ahead, once
        let hex = try await ada.store.addMine(content("Reading", links: 1), at: start)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .write], at: start + 1)
        try await bob.request(from: ada)
        #expect(try bob.test.read { try $0.listOffers() }.count == 1)
    }

    @Test("a member learns of read-only access after the owner's clock was once wrong") func clockRevocation() async throws {
        let (ada, bob, hex) = try await shared()
        _ = try await ada.store.addMine(content("Future", links: 0), at: start + 86_400_000)  // a day ahead, once
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .read], at: start + 2)
        try await exchange((ada, bob), at: 3)
        #expect(try bob.test.read { try $0.sharedHexes() }.first?.access == .read)
        await #expect(throws: (any Error).self) { try await add("c", by: bob, at: 4) }
    }

    @Test("links that a member deletes together with an unknown hex are in the trash") func hiddenDeletion() async throws {
        let (ada, bob, _) = try await shared()
        let list = try list(bob)
        let links = try ada.test.read { reader in
            let record = try ListRecord(list, on: reader)
            return try record.map { try SQLListStorage($0, on: reader).nodes().filter { $0.id.kind == .link } } ?? []
        }
        var random = SystemRandomNumberGenerator()
        let unknown = ListNode.ID(kind: .hex, time: start, using: &random)
        let deleted = links.map { link in
            var node = link
            node.deletion = DeletionMark(version: link.version ?? version(), with: unknown)
            return node
        }
        try await send(deleted, of: list, to: ada, from: bob)
        #expect(try ada.hexes == ["Reading"])
        let items = try ada.test.read { try $0.trashPage(limit: 10, before: nil).items }
        _ = try await ada.store.restoreMine(numbers: items.map(\.number), at: start + 3)
        #expect(try ada.hexes == ["Reading https://a.example/ https://b.example/"])
    }

    @Test("a member cannot delete anything that is in no item of the trash", arguments: ["itself", "root", "each other", "new", "link"])
    func deletionsWithoutItem(kind: String) async throws {
        let (ada, bob, hex) = try await shared()
        let list = try list(bob)
        for title in ["A", "B"] { _ = try await ada.store.addMine(content(title, links: 1), into: hex, at: start + 3) }
        let before = try ada.hexes
        let shown = try ada.test.read { reader in
            let record = try ListRecord(list, on: reader)
            return try record.map { try SQLListStorage($0, on: reader).nodes().filter { $0.id != list } } ?? []
        }
        var new = node(.hex, in: list, "new", version())
        new.deletion = DeletionMark(version: version())
        let hexes = shown.filter { $0.id.kind == .hex }
        let link = try #require(shown.first { $0.id.kind == .link })
        let deleted = shown.enumerated().map { index, node in
            var node = node
            let with: ListNode.ID =
                switch kind {
                case "itself": node.id
                case "root": list
                case "each other": node.id == hexes[0].id ? hexes[1].id : hexes[0].id
                case "new": new.id
                default: link.id
                }
            node.deletion = DeletionMark(version: version(), with: with)
            return node
        }
        try await send(kind == "new" ? [new] + deleted : deleted, of: list, to: ada, from: bob)
        #expect(try ada.hexes == ["Reading"] && ada.isConsistent())
        let change = try ada.test.read { try $0.mineChanges(limit: 1, before: nil).items.first }
        #expect((change?.hexes.deleted ?? 0) + (change?.links.deleted ?? 0) > 0)
        let items = try ada.test.read { try $0.trashPage(limit: 10, before: nil).items }
        _ = try await ada.store.restoreMine(numbers: items.map(\.number), at: start + 5)
        #expect(try ada.hexes == before && ada.isConsistent())
    }

    @Test("new links of a deleted hex that arrives with a later page are not shown") func deletedHexAfterLinks() async throws {
        let (ada, bob, _) = try await shared()
        let list = try list(bob)
        var hex = node(.hex, in: list, "Gone", version())
        var link = node(.link, in: hex.id, "x", version())
        link.deletion = DeletionMark(version: version(), with: hex.id)
        hex.deletion = DeletionMark(version: version())
        let before = try ada.hexes
        try await send([link], of: list, to: ada, from: bob)
        #expect(try ada.hexes == before)
        try await send([hex], of: list, to: ada, from: bob)
        #expect(try ada.hexes == before && ada.isConsistent())
    }

    @Test("two machines that both are members have one copy") func oneCopy() async throws {
        let (ada, bob, hex) = try await shared()
        let laptop = try Person(5)
        try await pair(bob, laptop)
        try await exchange((bob, laptop), at: 3)
        try ada.trust(laptop)
        try laptop.trust(ada)
        _ = try await ada.store.shareMine(hex, with: [laptop.peer.id: .write], at: start + 3)
        try await add("c", by: bob)
        try await add("d", by: laptop)
        try await exchange((bob, laptop), at: 4)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .read, laptop.peer.id: .read], at: start + 5)
        try await bob.request(from: ada, at: start + 6)
        try await laptop.request(from: ada, at: start + 6)
        try await exchange((bob, laptop), (laptop, ada), (bob, ada), at: 7)
        #expect(try rejected(bob).count == 1)
    }

    @Test("a peer that was forgotten while the hex was in the trash is no machine of the owner after it is restored") func forgotten()
        async throws
    {
        let (ada, bob, _) = try await shared()
        let number = try bob.hex("Reading")
        _ = try await bob.store.change([number], .delete, at: start + 3)
        let owner = ada.peer.id
        try bob.test.write { writer in try writer.change { try writer.removeFromSharedLists(owner) } }
        _ = try await bob.store.restoreMine(number, at: start + 4)
        #expect(try bob.test.read { try $0.sharedHexes() }.first?.peers.map(\.peer) == [])
    }

    @Test("a member cannot hide its rows from another member by a foreign replica number") func foreignReplica() async throws {
        let (ada, bob, hex) = try await shared()
        let list = try list(bob)
        let carol = try Person(3)
        try carol.trust(ada)
        try ada.trust(carol)
        _ = try await ada.store.shareMine(hex, with: [carol.peer.id: .write], at: start + 3)
        try await join(carol, ada)
        try await add("c", by: carol, at: 4)
        try await exchange((ada, carol), at: 5)
        let replica = try carol.test.read { try ListRecord(list, on: $0)?.replica.value ?? 0 }
        await #expect(throws: ListFault.invalid) {
            try await send([node(.link, in: list, "hidden", version(9, 7))], of: list, to: ada, from: bob, replica: replica)
        }
        try await exchange((ada, carol), at: 10)
        #expect(try digest(ada) == digest(carol))
    }

    @Test("an undo of received changes after the list was received again") func undoAfterDiscard() async throws {
        let (ada, bob, hex) = try await shared()
        try await add("c", by: bob, at: 4)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .read], at: start + 5)
        try await exchange((ada, bob), at: 6)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .write], at: start + 7)
        try await exchange((ada, bob), at: 8)
        let log = try bob.test.read { try $0.mineChanges(limit: 100, before: nil) }.items
        for change in log where change.isUndoable {
            _ = try? await bob.store.undoMine([change.number], at: start + 9)
            #expect(try bob.isConsistent())
        }
        try await exchange((ada, bob), at: 10)
        #expect(try digest(ada) == digest(bob))
    }

    @Test("a member cannot make a node so large that no other machine can receive it") func largeNode() async throws {
        let (ada, bob, hex) = try await shared()
        let list = try list(bob)
        var link = node(.link, in: list, "x", version(9))
        let text = UTF8Text(String(repeating: "n", count: 65_000))
        for part in 0..<20 {
            link.registers = [:]
            for register in 0..<3 { link.registers[UTF8Text("r\(part)-\(register)")] = ListNode.Register(version: version(9), value: text) }
            try await send([link], of: list, to: ada, from: bob)
        }
        let carol = try Person(3)
        try carol.trust(ada)
        try ada.trust(carol)
        _ = try await ada.store.shareMine(hex, with: [carol.peer.id: .read], at: start + 10)
        await #expect(throws: Never.self) { try await join(carol, ada) }
        #expect(try digest(carol) == digest(ada))
    }

    @Test("a member cannot make a node that other machines leave out") func largeNodeLeftOut() async throws {
        let (ada, bob, hex) = try await shared()
        let list = try list(bob)
        // A victim: the link of ada.
        let links = try ada.test.read { reader in
            let record = try ListRecord(list, on: reader)
            return try record.map { try SQLListStorage($0, on: reader).nodes().filter { $0.id.kind == .link } } ?? []
        }
        var link = try #require(links.first)
        let text = UTF8Text(String(repeating: "n", count: 65_000))
        for part in 0..<2 {
            link.registers = [:]
            for register in 0..<3 { link.registers[UTF8Text("r\(part)-\(register)")] = ListNode.Register(version: version(9), value: text) }
            try await send([link], of: list, to: ada, from: bob)
        }
        let carol = try Person(3)
        try carol.trust(ada)
        try ada.trust(carol)
        _ = try await ada.store.shareMine(hex, with: [carol.peer.id: .read], at: start + 10)
        try await join(carol, ada)
        #expect(try digest(carol) == digest(ada))
        // The owner's own machine, too.
        let desktop = try Person(4)
        try await pair(ada, desktop)
        try await exchange((ada, desktop), at: 11)
        #expect(try digest(desktop) == digest(ada))
    }

    @Test("a member whose clock is slow receives the owner's changes, also if another member's clock is fast") func fastMember()
        async throws
    {
        let (ada, bob, hex) = try await shared()
        let list = try list(bob)
        let carol = try Person(3)
        try carol.trust(ada)
        try ada.trust(carol)
        _ = try await ada.store.shareMine(hex, with: [carol.peer.id: .read], at: start + 3)
        try await join(carol, ada)
        let now: Int64 = 100_000
        try await send([node(.link, in: list, "fast", version(now + ListLimits.clockAhead))], of: list, to: ada, from: bob, at: start + now)
        try await ada.store.editMine(hex, MineEdit(description: "Changed by ada"), at: start + now)
        // The clock of carol is a second slow.
        for _ in 0..<3 { try await carol.request(from: ada, at: start + now - 1_000) }
        // The repair an hour later requests all rows again.
        try await carol.store.repairList(list, with: ada.peer.id)
        for _ in 0..<3 { try await carol.request(from: ada, at: start + now + 600_000) }
        #expect(try digest(carol) == digest(ada))
    }

    @Test("a new member does not get what was deleted before") func deletedBefore() async throws {
        let (ada, _, hex) = try await shared()
        try await add("secret", by: ada, at: 4)
        try await ada.store.editMine(hex, MineEdit(links: [.init(from: 0), .init(from: 1)]), at: start + 5)
        let carol = try Person(3)
        try carol.trust(ada)
        try ada.trust(carol)
        _ = try await ada.store.shareMine(hex, with: [carol.peer.id: .read], at: start + 10)
        try await join(carol, ada)
        let count = try carol.test.read { try $0.first("SELECT count(*) FROM node WHERE url LIKE '%secret%'") { $0.int(0) } }
        #expect(count == 0)
    }

    @Test("an own machine that has not received the hex yet does not make the changes of another one appear rejected")
    func emptyOwnMachine()
        async throws
    {
        let (ada, bob, hex) = try await shared()
        let laptop = try Person(5)
        try await pair(bob, laptop)
        try await exchange((bob, laptop), at: 3)
        // As if bob had joined again, without rows yet.
        let list = try list(bob)
        try bob.test.write { writer in
            try writer.change { try writer.removeRows(of: try #require(try ListRecord(list, on: writer))) }
        }
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .read], at: start + 4)
        let json = try ada.test.read { try $0.listOverview(for: bob.peer.id, at: start + 5) }.json
        _ = try await bob.store.applyOverview(ListOverview(decoding: json), from: ada.peer.id, at: start + 5)
        try await exchange((bob, laptop), at: 6)
        #expect(try laptop.hexes.last == "Reading https://a.example/ https://b.example/" && rejected(laptop).isEmpty)
        try await exchange((ada, bob), (bob, laptop), at: 7)
        #expect(try laptop.hexes == bob.hexes && bob.hexes.last == ada.hexes.last && rejected(laptop).isEmpty)
    }

    @Test("write access that comes back before all rows were received again loses nothing that the owner has") func writeAgain()
        async throws
    {
        let (ada, bob, hex) = try await shared()
        try await add("c", by: bob, at: 4)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .read], at: start + 5)
        let json = try ada.test.read { try $0.listOverview(for: bob.peer.id, at: start + 6) }.json
        _ = try await bob.store.applyOverview(ListOverview(decoding: json), from: ada.peer.id, at: start + 6)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .write], at: start + 7)
        try await ada.request(from: bob, at: start + 8)
        try await exchange((ada, bob), at: 9)
        #expect(try bob.hexes.last == ada.hexes.last && digest(ada) == digest(bob))
        #expect(try bob.hexes.joined().contains("https://c.example/"))
    }

    @Test("a replica number that versions of others have is not replaced") func foreignVersion() async throws {
        let (ada, bob, _) = try await shared(.read)
        let list = try list(bob)
        try bob.test.write { writer in try writer.renewReplica(of: try #require(try ListRecord(list, on: writer)).row) }
        let own = try bob.test.read { try ListRecord(list, on: $0)?.replica.value ?? 0 }
        try await send([node(.link, in: list, "x", version(9, own))], of: list, to: bob, from: ada)
        try bob.test.write { writer in try writer.renewReplica(of: try #require(try ListRecord(list, on: writer)).row) }
        #expect(try bob.isConsistent())
        let stored = try bob.test.read { reader in
            try ListRecord(list, on: reader).flatMap {
                try SQLListStorage($0, on: reader).nodes().compactMap(\.title?.version.replica.value)
            } ?? []
        }
        #expect(stored.contains(own))
    }
}
