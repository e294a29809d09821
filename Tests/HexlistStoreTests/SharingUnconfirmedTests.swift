import HexlistLists
import HexlistModel
import TestSupport
import Testing

@testable import HexlistStore

private typealias Person = SharingPerson

/// Rows of a member that the owner may not have, from read-only access on until all rows were received again.
@Suite(.timeLimit(.minutes(5))) struct SharingUnconfirmedTests: SharingScenario {
    /// Requests only the overview.
    @discardableResult
    private func overviewOnly(_ person: Person, from other: Person, at offset: Int64) async throws -> [SharingChange] {
        let json = try other.test.read { try $0.listOverview(for: person.peer.id, at: start + offset) }.json
        return try await person.store.applyOverview(try ListOverview(decoding: json), from: other.peer.id, at: start + offset)
    }

    private func mine(_ person: Person) throws -> ListNode.ID { try person.test.read { try $0.mineList() } }

    private func unconfirmed(_ person: Person) throws -> Int {
        try person.test.read { try $0.first("SELECT count(*) FROM node WHERE isUnconfirmed = 1") { $0.int(0) } ?? 0 }
    }

    @Test("the empty page of an own machine that has no rows yet removes no rows that the owner has") func emptyMachine() async throws {
        let (ada, bob, hex) = try await shared()
        let phone = try Person(6)
        try await pair(bob, phone)
        let list = try list(bob)
        try await add("c", by: bob)
        _ = try await ada.page(of: list, from: bob, at: start + 4)  // stored, but the connection ends before it is acknowledged
        #expect(try ada.hexes.last?.contains("https://c.") == true)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .read], at: start + 5)
        try await overviewOnly(bob, from: ada, at: 6)
        #expect(try unconfirmed(bob) == 1)
        try await phone.pages(of: mine(phone), from: bob, at: start + 7)  // the phone learns of the entry and its epoch
        try await bob.request(from: phone, at: start + 8)
        try await bob.request(from: ada, at: start + 9)
        #expect(try bob.hexes.last == ada.hexes.last)
        #expect(try rejected(bob).isEmpty, "ada has the row")
    }

    @Test("a member keeps all rows if an own machine has none, and the sharing ends") func lostRows() async throws {
        let (ada, bob, hex) = try await shared(.read)
        let phone = try Person(6)
        try await pair(bob, phone)
        try await ada.store.renewReplicas()  // ada was restored, repaired a difference with her desktop, …
        try await bob.request(from: ada, at: start + 3)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .ended], at: start + 4)
        try await overviewOnly(bob, from: ada, at: 5)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .read], at: start + 6)
        try await overviewOnly(bob, from: ada, at: 7)
        try await phone.pages(of: mine(phone), from: bob, at: start + 7)
        try await bob.request(from: phone, at: start + 8)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .ended], at: start + 9)
        try await bob.request(from: ada, at: start + 10)
        #expect(try bob.hexes == ["Reading https://a.example/ https://b.example/"])
    }

    @Test("write, read and write again before the rows were requested: nothing is lost or copied") func writeAgain() async throws {
        let (ada, bob, hex) = try await shared()
        try await add("c", by: bob)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .read], at: start + 4)
        try await overviewOnly(bob, from: ada, at: 5)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .write], at: start + 6)
        try await overviewOnly(bob, from: ada, at: 7)
        try await ada.request(from: bob, at: start + 8)
        #expect(try ada.hexes.last?.contains("https://c.") == true)
        for offset in 9..<14 as Range<Int64> {
            try await bob.request(from: ada, at: start + offset)
            try await ada.request(from: bob, at: start + offset)
        }
        #expect(try bob.hexes.last == ada.hexes.last)
        #expect(try digest(bob) == digest(ada))
        #expect(try rejected(bob).isEmpty)
    }

    @Test("an edit after write was granted again stays") func editAfterwards() async throws {
        let (ada, bob, hex) = try await shared()
        try await bob.store.editMine(try bob.hex("Reading"), MineEdit(description: "Bob's"), at: start + 3)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .read], at: start + 4)
        try await overviewOnly(bob, from: ada, at: 5)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .write], at: start + 6)
        try await overviewOnly(bob, from: ada, at: 7)
        try await bob.store.editMine(try bob.hex("Bob's"), MineEdit(description: "Bob's, with write access"), at: start + 8)
        for offset in 9..<14 as Range<Int64> {
            try await bob.request(from: ada, at: start + offset)
            try await ada.request(from: bob, at: start + offset)
        }
        #expect(try bob.hexes.last?.contains("with write access") == true)
        #expect(try bob.hexes.last == ada.hexes.last)
    }

    @Test("a number that is in received versions is not replaced") func numberInVersions() async throws {
        let (bob, laptop) = (try Person(2), try Person(5))
        try await pair(bob, laptop)
        _ = try await bob.store.addMine(content("x", links: 1), at: start)
        try await bob.store.renewReplicas()
        // bob's machine runs as a snapshot of this state again: the laptop has rows with versions of the lost part.
        let number = try bob.test.read { try ListRecord(on: $0).replica }
        let lost = node(.hex, in: try mine(bob), "lost", version(5, number.value))
        try await send([lost], of: mine(bob), to: bob, from: laptop, as: .ownMachine)
        try await bob.store.repairList(mine(bob), with: laptop.peer.id)
        let stored = try bob.test.read { try SQLListStorage(ListRecord(on: $0), on: $0).row(lost.id) }
        #expect(stored?.node == lost)
        #expect(try bob.isConsistent())
    }

    @Test("a hostile owner of one list cannot change the versions of another list") func numberInOtherList() async throws {
        let (ada, bob, _) = try await shared(.read)
        // Bob shares another hex with ada.
        let own = try await bob.store.addMine(content("Own", links: 1), at: start + 3)
        let ownList = try await bob.store.shareMine(own, with: [ada.peer.id: .write], at: start + 3).list
        let joined = try #require(try bob.test.read { try $0.sharedHexes() }.first { !$0.isOwned }).list
        let row = try #require(try bob.test.read { try ListRecord(joined, on: $0) }).row
        try bob.test.write { try $0.renewReplica(of: row) }
        let number = try bob.test.read { try ListRecord(on: $0, row: row).replica }  // ada sees it in /lists and in requests
        let link = node(.link, in: ownList, "y", version(5, number.value))
        try await send([link], of: ownList, to: bob, from: ada)
        try bob.test.write { try $0.renewReplica(of: row) }
        #expect(try bob.isConsistent())
    }

    @Test("the number with which a join wrote versions is not replaced") func numberOfJoin() async throws {
        let (bob, laptop) = (try Person(2), try Person(5))
        _ = try await bob.store.addMine(content("Same", links: 2), at: start)
        _ = try await laptop.store.addMine(content("Same", links: 3), at: start + 1)
        try await pair(bob, laptop)
        for person in [bob, laptop] { #expect(try person.isConsistent()) }
        for _ in 0..<3 {
            try await bob.request(from: laptop, at: start + 3)
            try await laptop.request(from: bob, at: start + 3)
        }
        try await bob.store.renewReplicas()
        try await laptop.store.renewReplicas()
        for person in [bob, laptop] { #expect(try person.isConsistent()) }
        let digests = try [bob, laptop].map { person in
            try person.test.read { try $0.first("SELECT digest FROM list WHERE id = 1") { $0.int64(0) } }
        }
        #expect(digests[0] == digests[1])
        let nodes = try [bob, laptop].map { person in
            try person.test.read { try SQLListStorage(ListRecord(on: $0), on: $0).nodes().sorted { $0.id < $1.id } }
        }
        #expect(nodes[0] == nodes[1])
    }

    @Test("links of a removed hex stay, as on the owner's machine") func retained() async throws {
        let (ada, bob, hex) = try await shared()
        let list = try list(bob)
        let inner = try await bob.store.addMine(content("Chapter", links: 2_100), into: bob.hex("Reading"), at: start + 3)
        try await bob.store.editMine(inner, MineEdit(description: "Chapter 1"), at: start + 4)
        let page = try await ada.page(of: list, from: bob, at: start + 5)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .read], at: start + 6)
        for offset in 7..<10 as Range<Int64> { try await bob.request(from: ada, at: start + offset) }
        try await bob.store.repairList(list, with: ada.peer.id)
        try await bob.request(from: ada, at: start + 11)
        #expect(try digest(bob) == digest(ada))
        let hexes = try [ada, bob].map {
            try $0.test.read { try $0.first("SELECT count(*) FROM node WHERE list <> 1 AND kind = 1") { $0.int(0) } }
        }
        #expect(hexes[0] == hexes[1])
    }

    @Test("own machines have the hex, although the owner's machine was forgotten while rows were unconfirmed") func forgotten() async throws
    {
        let (ada, bob, hex) = try await shared()
        let list = try list(bob)
        try await add("c", by: bob)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .read], at: start + 4)
        try await overviewOnly(bob, from: ada, at: 5)
        try await bob.store.forgetPeer(ada.peer.id)
        let phone = try Person(6)
        try await pair(bob, phone)
        for _ in 0..<3 {
            try await phone.request(from: bob, at: start + 6)
            try await bob.request(from: phone, at: start + 6)
        }
        #expect(try phone.hexes == bob.hexes)
        #expect(try unconfirmed(bob) == 0)
        _ = list
    }

    @Test("a hostile owner cannot make the table of replica numbers grow") func growth() async throws {
        let (ada, bob, _) = try await shared(.read)
        let list = try list(bob)
        func count() throws -> Int { try bob.test.read { try $0.first("SELECT count(*) FROM replica") { $0.int(0) } ?? 0 } }
        var before = 0
        for round in 0..<40 as Range<Int64> {
            if round == 2 { before = try count() }
            try await send([node(.link, in: list, "x", version())], of: list, to: bob, from: ada, replica: 7)
            try await send([], of: list, to: bob, from: ada, replica: 8)
            _ = try await bob.store.applyOverview(overview(list, .ended, at: 20 + 2 * round), from: ada.peer.id, at: start + 200)
            _ = try await bob.store.applyOverview(overview(list, .read, at: 21 + 2 * round), from: ada.peer.id, at: start + 200)
            try await send([], of: list, to: bob, from: ada, replica: 8)
        }
        let grown = try count() - before
        #expect(grown < 5)
    }

    @Test("trash, undo and counts are right after the removal") func undo() async throws {
        let (ada, bob, hex) = try await shared()
        let outer = try await bob.store.addMine(content("Outer", links: 2), into: bob.hex("Reading"), at: start + 3)
        let inner = try await bob.store.addMine(content("Inner", links: 2), into: outer, at: start + 3)
        let first = try bob.test.read { try $0.lastMineChange() }
        _ = try bob.test.write { try $0.delete([inner], at: start + 3) }
        try await add("c", by: bob, at: 4)
        try await bob.store.editMine(try bob.hex("Reading"), MineEdit(links: [.init(from: 0)]), at: start + 4)
        let last = try bob.test.read { try $0.lastMineChange() }
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .read], at: start + 5)
        try await bob.request(from: ada, at: start + 6)
        #expect(try bob.isConsistent())
        #expect(try bob.test.read { try $0.trashPage(limit: 100, before: nil) }.items.isEmpty)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .write], at: start + 7)
        try await bob.request(from: ada, at: start + 8)
        for number in (first...last).reversed() {
            do { _ = try await bob.store.undoMine([number], at: start + 9) } catch { print("undo", number, error) }
            #expect(try bob.isConsistent())
        }
        for offset in 10..<14 as Range<Int64> {
            try await bob.request(from: ada, at: start + offset)
            try await ada.request(from: bob, at: start + offset)
        }
        #expect(try bob.hexes.last == ada.hexes.last)
        #expect(try digest(bob) == digest(ada))
        #expect(try bob.isConsistent() && ada.isConsistent())
    }

    @Test("leaving and joining again with unconfirmed rows loses nothing") func rejoin() async throws {
        let (ada, bob, hex) = try await shared()
        try await add("c", by: bob)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .read], at: start + 4)
        try await overviewOnly(bob, from: ada, at: 5)
        let left = try bob.hex("Reading")
        _ = try bob.test.write { try $0.delete([left], at: start + 6) }
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .write], at: start + 7)
        try await overviewOnly(bob, from: ada, at: 8)
        let offer = try #require(try bob.test.read { try $0.first("SELECT max(id) FROM listOffer") { $0.int64(0) } })
        _ = try await bob.store.joinOffer(offer, at: start + 9)
        for offset in 9..<14 as Range<Int64> {
            try await ada.request(from: bob, at: start + offset)
            try await bob.request(from: ada, at: start + offset)
        }
        #expect(try bob.hexes.last == ada.hexes.last)
        #expect(try digest(bob) == digest(ada))
        #expect(try bob.isConsistent() && ada.isConsistent())
    }
}
