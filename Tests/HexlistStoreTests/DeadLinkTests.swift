import GRDB
import HexlistModel
import Testing

@testable import HexlistStore

@Suite("Marks of dead links", .timeLimit(.minutes(5))) struct DeadLinkTests {
    private let test: TestStore

    init() throws { test = try TestStore() }

    private func add(_ names: [String], into parent: Int64? = nil) async throws -> Int64 {
        var hex = HexContent()
        hex.links = names.map { name in
            LinkContent(url: hex.add(Self.url(name)), linkDescription: hex.add("river"), service: hex.add("Unknown"))
        }
        let content = hex
        return try await test.store.addMine(content, into: parent, at: start)
    }

    private static func url(_ name: String) -> String { "https://a.example/\(name)" }

    private func mark(_ links: [(hex: Int64, position: Int, name: String)], _ status: Int?, at time: Int64 = start) async throws -> (
        Int, Int
    ) {
        let results = links.map {
            LinkCheckResult(
                position: LinkPosition(hex: $0.hex, position: $0.position), urlBytes: Array(Self.url($0.name).utf8), deadStatus: status)
        }
        let changed = try await test.store.markChecked(results, at: time)
        return (changed.marked.count, changed.unmarked.count)
    }

    private func found(_ text: String) throws -> [String] {
        while try test.read({ try $0.counts().unindexed }) > 0 { try test.write { try $0.index() } }
        let filter = SearchFilter(try SearchExpression(parsing: text))
        return try test.read { try $0.searchLinks(filter) }.hits.map { String(decoding: $0.link.url, as: UTF8.self).suffix(1) }.map(
            String.init)
    }

    private func hexes(_ text: String) throws -> [Int64] {
        _ = try found(text)
        return try test.read { try $0.search(SearchFilter(SearchExpression(parsing: text))) }.hits.map(\.summary.id)
    }

    private func marks() throws -> [String] {
        try test.read {
            try String.fetchAll($0.db, sql: "SELECT hex || ' ' || url || ' ' || status || ' ' || since FROM deadLink ORDER BY 1")
        }
    }

    /// Whether the index has exactly the entries of the rows: FTS5 reports an error for an entry that was removed with other texts.
    private func indexIsWhole() throws -> Bool {
        _ = try test.write { try $0.run("INSERT INTO search (search) VALUES ('integrity-check')") }
        return try test.countersAreRight()
    }

    @Test("a mark is found, keeps the time of the first check, and goes when the page is back")
    func marking() async throws {
        let hex = try await add(["a", "b"])
        let other = try await add(["c"])
        #expect(try found("is:dead") == [] && found("-is:dead river") == ["c", "a", "b"])
        #expect(try await mark([(hex, 1, "b")], 404) == (1, 0))
        #expect(try found("is:dead") == ["b"] && hexes("is:dead") == [hex] && found("-is:dead river") == ["c", "a"])
        #expect(try found("river is:dead") == ["b"] && found("is:dead OR host:a.example").count == 3 && found("lake is:dead") == [])
        #expect(try await mark([(hex, 1, "b")], 404, at: start + 9) == (0, 0))
        #expect(try await mark([(hex, 1, "b")], 410, at: start + 9) == (0, 0))
        #expect(try marks() == ["\(hex) https://a.example/b 410 \(start)"])
        let listed = try test.read { try $0.linkPage(HexFilter(location: .mine), unique: false) }.items
        #expect(listed.map { $0.dead?.status } == [nil, nil, 410])
        #expect(try await mark([(hex, 1, "b"), (hex, 0, "a"), (other, 0, "c")], nil) == (0, 1))
        #expect(try found("is:dead") == [] && marks() == [] && indexIsWhole())
    }

    @Test("marks follow their links through edits, moves and imports, and end with them")
    func edits() async throws {
        let folder = try await add(["f"])
        let hex = try await add(["a", "b"], into: folder)
        #expect(try await mark([(hex, 1, "b"), (folder, 0, "f")], 404) == (2, 0))
        #expect(Set(try hexes("is:dead")) == [hex, folder])
        try await test.store.editMine(hex, MineEdit(links: [.init(from: 1), .init(from: 0), .init(url: Self.url("d"))]), at: start)
        #expect(try found("is:dead") == ["b", "f"])
        try await test.store.moveMine(hex, into: nil, at: start)
        #expect(try found("is:dead") == ["b", "f"])
        try await test.store.editMine(hex, MineEdit(links: [.init(from: 0, url: Self.url("e"))]), at: start)
        #expect(try found("is:dead") == ["f"] && marks().count == 1)
        _ = try await test.store.change([folder], .delete, at: start)
        #expect(try found("is:dead") == [] && marks() == [] && indexIsWhole())
    }

    @Test("links that changed during the check, deleted ones and received ones are not marked")
    func changed() async throws {
        let hex = try await add(["a", "b"])
        let ada = try TestPeer(1, name: "Ada")
        _ = try test.trust(ada)
        var received = HexContent()
        received.links = [LinkContent(url: received.add(Self.url("a")), linkDescription: .empty, service: .empty)]
        let inbox = try test.nextHex()
        #expect(try test.receive([IncomingHex(content: received, messageID: message(1), weight: 500)], from: ada) == [.stored])
        #expect(try await mark([(hex, 0, "b"), (hex, 7, "a"), (hex + 99, 0, "a"), (inbox, 0, "a")], 404) == (0, 0))
        #expect(try marks() == [] && found("is:dead") == [])
        await #expect(throws: HexlistError.self) { try await test.store.read { try $0.mineLinks(of: inbox) } }
    }

    @Test("a check of all has the links of My Hexlist only, with those of inner hexes")
    func links() async throws {
        let folder = try await add(["f"])
        let hex = try await add(["a", "b"], into: folder)
        #expect(try test.read { try $0.mineLinkCount() } == 3)
        #expect(try test.read { try $0.mineLinks(of: folder) }.map(\.id) == [folder, hex, hex])
        #expect(try test.read { try $0.mineLinks(of: hex) }.map(\.position) == [0, 1])
    }
}
