import HexlistModel
import Testing

@testable import HexlistStore

@Suite("Duplicates in My Hexlist", .timeLimit(.minutes(5))) struct MineDuplicatesTests {
    private let test: TestStore
    private var store: HexStore { test.store }

    init() throws { test = try TestStore() }

    private func hex(_ title: String, _ urls: String..., children: [HexContent] = []) -> HexContent {
        var content = content(title, links: 0)
        content.links = urls.map { LinkContent(url: content.add("https://\($0)"), linkDescription: .empty, service: .empty) }
        return content
    }

    /// The hexes at the top level with their links and inner hexes.
    private func texts() throws -> [String] {
        try test.read { reader in
            try reader.hexPage(HexFilter(location: .mine)).items.map { item in
                guard let content = try reader.hex(item.id)?.content else { return "?" }
                return content.string(content.hexDescription)
                    + content.links.map { " " + content.string($0.url).dropFirst("https://".count) }.joined()
            }
        }
    }

    @Test("duplicates are listed without a change, then merged in one change, which can be undone") func merge() async throws {
        let first = try await store.addMine(hex("a", "1", "1", "2"), at: start)
        let second = try await store.addMine(hex("a", "2", "3"), at: start + 1)
        let other = try await store.addMine(hex("b", "1"), at: start + 2)
        let before = try texts()
        let found = try test.read { try $0.mineDuplicates(in: nil, includingHexes: true) }
        #expect(found.hexes == 1 && found.links == 2 && found.different == 0 && found.changes.isEmpty)
        #expect(found.items == [.init(hex: first, subject: "a", others: [second], links: 2)])
        #expect(try texts() == before)

        let merged = try await store.mergeMineDuplicates(in: nil, includingHexes: true, at: start + 3)
        #expect(merged.hexes == 1 && merged.links == 2 && merged.changes.count == 1)
        #expect(try Set(texts()) == ["a 1 2 3", "b 1"])
        #expect(try test.read { try $0.hex(second) } == nil && test.read { try $0.hex(other) } != nil)
        #expect(try await store.mergeMineDuplicates(in: nil, includingHexes: true, at: start + 4) == MineDuplicates())

        _ = try await store.undoMine(merged.changes, at: start + 5)
        #expect(try texts() == before)
    }

    @Test("hexes that do not fit into one stay, and are counted") func tooLarge() async throws {
        for offset in 0..<2 as Range<Int64> {
            var large = content("large", links: 0)
            large.links = (0..<2_600).map { number in
                LinkContent(url: large.add("https://\(offset)/\(number)"), linkDescription: .empty, service: .empty)
            }
            _ = try await store.addMine(large, at: start + offset)
        }
        let merged = try await store.mergeMineDuplicates(in: nil, includingHexes: true, at: start + 2)
        #expect(merged.hexes == 0 && merged.different == 1 && merged.changes.isEmpty)
        #expect(try texts().count == 2)
    }

    @Test("one hex, and links only") func oneHex() async throws {
        let first = try await store.addMine(hex("a", "1", "1"), at: start)
        _ = try await store.addMine(hex("a", "1", "1"), at: start + 1)
        _ = try await store.mergeMineDuplicates(in: first, includingHexes: false, at: start + 2)
        #expect(try texts().sorted() == ["a 1", "a 1 1"])
        await #expect(throws: HexlistError.self) { try await self.store.mergeMineDuplicates(in: 99, includingHexes: true, at: start) }
    }

    @Test("a hex that the user can only read is left out, and refused if it is named") func shared() async throws {
        let (ada, bob) = (try SharingPerson(1), try SharingPerson(2))
        try ada.trust(bob)
        try bob.trust(ada)
        let id = try await ada.store.addMine(hex("Reading", "1", "1"), at: start)
        _ = try await ada.store.shareMine(id, with: [bob.peer.id: .read], at: start)
        try await bob.request(from: ada)
        let offer = try #require(try bob.test.read { try $0.listOffers() }.first)
        _ = try await bob.store.joinOffer(offer.number, at: start)
        try await bob.request(from: ada)
        let hex = try bob.hex("Reading")
        #expect(try bob.test.read { try $0.mineDuplicates(in: nil, includingHexes: true) } == MineDuplicates())
        await #expect(throws: HexlistError.self) { try await bob.store.mergeMineDuplicates(in: hex, includingHexes: true, at: start) }

        #expect(try await ada.store.mergeMineDuplicates(in: nil, includingHexes: true, at: start + 1).links == 1)
        try await bob.request(from: ada, at: start + 2)
        #expect(try bob.hexes == ["Reading https://1"])
    }
}
