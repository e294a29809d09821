import HexlistLists
import HexlistModel
import TestSupport
import Testing

@testable import HexlistStore

private typealias Person = SharingPerson

/// Changes that were made while the clock of a machine was more than 12 hours wrong.
@Suite(.timeLimit(.minutes(5))) struct SharingClockTests: SharingScenario {
    private static let wrong: Int64 = 3 * 86_400_000

    private func clock(_ person: Person) throws -> Int64 {
        HybridClock.milliseconds(of: try person.test.read { try $0.first("SELECT clock FROM list WHERE id <> 1") { $0.int64(0) } } ?? 0)
    }

    @Test("a member's changes arrive after its clock was corrected") func member() async throws {
        let (ada, bob, _) = try await shared()
        try await add("c", by: bob, at: Self.wrong)
        try await bob.store.editMine(bob.hex("Reading"), MineEdit(description: "Reading by bob"), at: start + Self.wrong + 1)
        try await exchange((ada, bob), at: 10)
        #expect(try ada.hexes == ["Reading by bob https://a.example/ https://b.example/ https://c.example/"])
        #expect(try ada.hexes == bob.hexes && digest(ada) == digest(bob))
        #expect(try clock(bob) < start + 100)
        #expect(try bob.isConsistent() && ada.isConsistent())
        // Later changes win over the corrected ones, on both sides.
        try await ada.store.editMine(ada.hex("Reading by bob"), MineEdit(description: "Reading"), at: start + 11)
        try await exchange((ada, bob), at: 12)
        #expect(try bob.hexes == ada.hexes && bob.hexes.first?.hasPrefix("Reading https") == true)
    }

    @Test("the owner's changes arrive after its clock was corrected, also at its other machine") func owner() async throws {
        let (ada, bob, _) = try await shared()
        let desktop = try Person(5)
        try await pair(ada, desktop)
        try await exchange((ada, desktop), at: 4)
        try await add("c", by: ada, at: Self.wrong)
        let hexes = try ada.hexes
        try await exchange((ada, desktop), (ada, bob), at: 11)
        #expect(try ada.hexes == hexes && desktop.hexes == hexes && bob.hexes == hexes)
        #expect(try digest(ada) == digest(desktop) && digest(ada) == digest(bob))
        #expect(try ada.isConsistent())
    }

    @Test("a deletion with a wrong clock stays a deletion, and can be restored") func deletion() async throws {
        let (ada, bob, _) = try await shared()
        try await add("c", by: bob, at: Self.wrong)
        try await bob.store.editMine(bob.hex("Reading"), MineEdit(links: [.init(from: 0)]), at: start + Self.wrong + 1)
        try await exchange((ada, bob), at: 10)
        #expect(try ada.hexes == ["Reading https://a.example/"])
        let items = try bob.test.read { try $0.trashPage(limit: 9, before: nil) }.items
        #expect(items.map(\.url).sorted { $0 ?? "" < $1 ?? "" } == ["https://b.example/", "https://c.example/"])
        _ = try await bob.store.restoreMine(numbers: items.map(\.number), at: start + 11)
        try await exchange((ada, bob), at: 12)
        #expect(try ada.hexes == bob.hexes && ada.hexes == ["Reading https://a.example/ https://b.example/ https://c.example/"])
    }

    @Test("nothing is corrected by a clock that is wrong itself, also after exchanges at that time") func early() async throws {
        let (ada, bob, _) = try await shared()
        try await add("c", by: bob, at: 4)
        try await exchange((ada, bob), at: 5)
        let before = try clock(bob)
        let hexes = try bob.hexes
        let boot: Int64 = 100_000_000 - start  // January 1970
        try await exchange((ada, bob), at: boot)
        try await exchange((ada, bob), at: boot + 60_000)
        #expect(try clock(bob) == before && clock(ada) == before)
        #expect(try ada.hexes == hexes && bob.hexes == hexes)
    }

    @Test("an owner whose readers are away corrects nothing in January 1970, whoever asks") func earlyOwner() async throws {
        let (ada, bob, hex) = try await shared(.read)
        let carol = try Person(3)
        try ada.trust(carol)
        try carol.trust(ada)
        try await add("c", by: ada, at: 4)
        try await exchange((ada, bob), at: 5)
        try await ada.store.editMine(hex, MineEdit(links: [.init(from: 0)]), at: start + 6)
        let before = try clock(ada)
        try await exchange((ada, carol), at: 100_000_000 - start)
        #expect(try clock(ada) == before)
        try await exchange((ada, bob), at: 7)
        #expect(try bob.hexes == ["Reading https://a.example/"] && digest(ada) == digest(bob))
    }

    @Test("values that a member with the same wrong time has received are not corrected") func bothAhead() async throws {
        let (ada, bob, hex) = try await shared(.read)
        try await ada.store.editMine(hex, MineEdit(description: "Ahead"), at: start + Self.wrong)
        try await exchange((ada, bob), at: Self.wrong + 1)
        #expect(try bob.hexes == ada.hexes && bob.hexes.first?.hasPrefix("Ahead") == true)
        try await ada.store.editMine(hex, MineEdit(description: "Later"), at: start + 10)
        try await exchange((ada, bob), at: 11)
        #expect(try await ada.store.correctVersions(inListsOf: bob.peer.id, at: start + 12) == 0)
        #expect(try clock(ada) >= start + Self.wrong)
        // The change arrives when the wrong time has come.
        try await bob.store.repairList(list(bob), with: ada.peer.id)
        try await exchange((ada, bob), at: Self.wrong + 20)
        #expect(try bob.hexes == ada.hexes && bob.hexes.first?.hasPrefix("Later") == true)
    }

    @Test("a list is corrected before a page of it is sent") func beforeSending() async throws {
        let (ada, bob, hex) = try await shared(.read)
        try await ada.store.editMine(hex, MineEdit(description: "Ahead"), at: start + Self.wrong)
        // Bob's clock is 11 hours ahead. Ada has not requested his lists yet.
        let list = try list(bob)
        let cursor = try bob.test.read { try $0.listPageRequest(of: list, from: ada.peer.id) }
        _ = try ada.store.listPageSync(list, cursor, for: bob.peer.id, at: start + 10)
        #expect(try clock(ada) < start + 100)
        try await exchange((ada, bob), at: 11)
        #expect(try bob.hexes == ada.hexes && digest(ada) == digest(bob))
    }

    @Test("only lists of the peer are corrected, and My Hexlist stays as it is") func others() async throws {
        let (ada, bob, hex) = try await shared()
        let carol = try Person(3)
        try ada.trust(carol)
        try await ada.store.editMine(hex, MineEdit(description: "Ahead"), at: start + Self.wrong)
        _ = try await ada.store.addMine(content("Future", links: 0), at: start + Self.wrong)
        #expect(try await ada.store.correctVersions(inListsOf: carol.peer.id, at: start + 5) == 0)
        #expect(try await ada.store.correctVersions(inListsOf: bob.peer.id, at: start + 5) > 0)
        #expect(try ada.test.read { try ListRecord(on: $0).clock } >= HybridClock.time(milliseconds: start + Self.wrong))
    }
}
