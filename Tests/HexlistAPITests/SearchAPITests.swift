import DaemonTestSupport
import HexlistAPI
import HexlistClient
import HexlistModel
import Testing

@testable import HexlistDaemon

@Suite("Search in the local API", .timeLimit(.minutes(5)))
struct SearchAPITests {
    @Test("a new hex is found immediately, with its location; a repeated link shows its earlier hex; links are listed once")
    func search() async throws {
        try await TestDaemon.with("ada", "bob") { daemons in
            let (ada, bob) = (daemons[0], daemons[1])
            try await ada.awaitPeers(1)
            try await bob.awaitPeers(1)
            _ = try await ada.send(["https://example.org/held"], description: "a held river", to: ["bob"])
            func find(_ filter: HexlistClient.SearchFilter, limit: Int = 20) async throws -> (hexes: [HexJSON], next: String?, behind: Int)
            {
                var hexes: [HexJSON] = []
                let (next, behind) = try await bob.client.search(filter, limit: limit) { hexes.append($0) }
                return (hexes, next, behind)
            }
            #expect(try await find(.init(text: "river")).hexes.isEmpty)
            #expect(try await find(.init(text: "river", location: "held")).hexes.count == 1)
            _ = try await bob.client.trust(ada.uuid, fingerprint: nil)
            _ = try await ada.send(["https://example.org/river", "https://example.org/once"], description: "one", to: ["bob"])
            _ = try await ada.send(["https://example.org/river"], description: "two", to: ["bob"])

            let found = try await find(.init(text: "RIVER example"))
            #expect(found.hexes.map(\.description) == ["two", "one", "a held river"] && found.behind == 0 && found.next == nil)
            #expect(
                found.hexes[0].match == SearchMatchJSON(field: "url", link: 1, before: "https://", found: "example", after: ".org/river"))
            let first = try await find(.init(text: "riv*"), limit: 2)
            #expect(first.hexes.map(\.description) == ["two", "one"] && first.next != nil)
            #expect(try await find(.init(text: "river", from: "ada", best: true)).hexes.first?.description == "a held river")
            #expect(try await find(.init(text: "river", since: Timestamp(milliseconds: .max / 2))).hexes.isEmpty)
            #expect(try await bob.client.status().search == SearchIndexState(behind: 0))

            let two = try await bob.client.hex(found.hexes[0].id)
            #expect(two.links?.first?.before?.hex == found.hexes[1].id && two.links?.first?.before?.peer == PeerID(ada.uuid))
            #expect(try await bob.client.hex(found.hexes[1].id).links?.map(\.before) == [nil, nil])

            var links: [String] = []
            let end = try await bob.client.links(.init(), unique: true, limit: 20) { links.append("\($0.hex) \($0.number) \($0.url)") }
            #expect(end.next == nil && end.behind == 0)
            #expect(
                links.map { String($0.split(separator: " ")[2]) } == [
                    "https://example.org/river", "https://example.org/once", "https://example.org/held",
                ])
        }
    }

    @Test("an invalid search is refused")
    func refused() async throws {
        try await TestDaemon.with("ada") { daemons in
            for text in ["", "---", "host:", "color:tael", String(repeating: "a", count: 1_001)] {
                let error = try await #require(throws: HexlistError.self) {
                    try await daemons[0].client.search(.init(text: text), limit: 1) { _ in }
                }
                #expect(error.code == .badRequest, "\(text)")
            }
            let both = try await #require(throws: HexlistError.self) {
                try await daemons[0].client.search(.init(text: "a", best: true), limit: 1, after: "3") { _ in }
            }
            #expect(both.code == .badRequest)
        }
    }
}
