import HexlistLists
import HexlistModel
import TestSupport
import Testing

@testable import HexlistStore

private typealias Person = SharingPerson

/// Changes that were made while the clock of a machine was more than 12 hours wrong.
@Suite(.timeLimit(.minutes(5))) struct SharingClockTests: SharingScenario {
    private static let wrong: Int64 = 3 * 86_400_000

    private func add(_ name: String, by person: Person, at offset: Int64) async throws {
        let hex = try person.hex("Reading")
        let count = try #require(try person.test.read { try $0.hex(hex) }).content.links.count
        let links = (0..<count).map { MineEdit.Link(from: $0) } + [link(name)]
        try await person.store.editMine(hex, MineEdit(links: links), at: start + offset)
    }

    private func exchange(_ pairs: (Person, Person)..., at offset: Int64) async throws {
        for _ in 0..<3 {
            for (first, second) in pairs {
                try await first.request(from: second, at: start + offset)
                try await second.request(from: first, at: start + offset)
            }
        }
    }

    private func clock(_ person: Person) throws -> Int64 {
        HybridClock.milliseconds(of: try person.test.read { try $0.first("SELECT clock FROM list WHERE id <> 1") { $0.int64(0) } } ?? 0)
    }

    private func digest(_ person: Person) throws -> Int64? {
        try person.test.read { try $0.first("SELECT digest FROM list WHERE id <> 1") { $0.int64(0) } }
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
        // The other machine leaves the rows out, if it requests them before the correction.
        try await desktop.request(from: ada, at: start + 10)
        #expect(try desktop.hexes != hexes && clock(desktop) < start + 100)
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

    @Test("nothing is corrected by a clock that is wrong itself") func early() async throws {
        let (ada, bob, _) = try await shared()
        try await add("c", by: bob, at: 4)
        let before = try clock(bob)
        for machine in [ada, bob] { #expect(try await machine.store.correctVersions(at: 1_000_000) == 0) }
        #expect(try clock(bob) == before)
        // That of My Hexlist stays as it is. Own machines accept it.
        _ = try await bob.store.addMine(content("Future", links: 0), at: start + Self.wrong)
        #expect(try await bob.store.correctVersions(at: start + 5) == 0)
        #expect(try bob.test.read { try ListRecord(on: $0).clock } >= HybridClock.time(milliseconds: start + Self.wrong))
    }
}
