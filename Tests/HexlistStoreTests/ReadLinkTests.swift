import GRDB
import HexlistModel
import Testing

@testable import HexlistStore

@Suite("Read state of single links", .timeLimit(.minutes(5))) struct ReadLinkTests {
    private let test: TestStore
    private let ada: TestPeer

    init() throws {
        test = try TestStore()
        ada = try TestPeer(1, name: "Ada")
        _ = try test.trust(ada)
    }

    /// A hex with the links `https://a.example/NAME`, and an inner hex with the links `inside`.
    private func content(_ names: [String], inside: [String] = []) -> HexContent {
        var hex = HexContent()
        func link(_ name: String) -> LinkContent {
            LinkContent(url: hex.add("https://a.example/\(name)"), linkDescription: hex.add("river"), service: hex.add("Unknown"))
        }
        hex.links = names.map(link)
        guard !inside.isEmpty else { return hex }
        var child = ChildContent(parent: nil)
        child.links = inside.indices
        hex.add(child: child)
        hex.childLinks = inside.map(link)
        return hex
    }

    private func receive(_ content: HexContent, _ number: UInt64) throws -> Int64 {
        let id = try test.nextHex()
        #expect(try test.receive([IncomingHex(content: content, messageID: message(number), weight: 500)], from: ada) == [.stored])
        return id
    }

    private func mark(_ links: [(Int64, Int)], unread: Bool = false) async throws -> Int {
        try await test.store.markLinks(links.map { LinkPosition(hex: $0.0, position: $0.1) }, unread: unread)
    }

    private func name(_ url: [UInt8]) -> String { String(String(decoding: url, as: UTF8.self).split(separator: "/").last ?? "") }

    private func listed(unread: Bool = true, unique: Bool = false) throws -> [String] {
        try test.read { try $0.linkPage(HexFilter(unread: unread), unique: unique) }.items.map { name($0.url) }
    }

    private func found(_ text: String) throws -> [String] {
        while try test.read({ try $0.counts().unindexed }) > 0 { try test.write { try $0.index() } }
        let filter = SearchFilter(try SearchExpression(parsing: text))
        return try test.read { try $0.searchLinks(filter) }.hits.map { name($0.link.url) }
    }

    private func rows() throws -> Int { try test.read { try Int.fetchOne($0.db, sql: "SELECT count(*) FROM readLink") ?? -1 } }

    private func unread() throws -> Int64 { try test.read { try $0.counts().unread } }

    @Test("a link is read alone; the hex is read with the last of its links, also of inner hexes")
    func lastLink() async throws {
        let hex = try receive(content(["a", "b"], inside: ["c"]), 1)
        #expect(try await mark([(hex, 1), (hex, 1)]) == 1)
        #expect(try await mark([(hex, 1)]) == 0)
        #expect(try listed() == ["a", "c"] && listed(unread: false) == ["a", "b", "c"] && unread() == 1)
        #expect(try found("river is:unread") == ["c", "a"] && found("river is:read") == ["b"] && found("river") == ["c", "a", "b"])
        let summary = try #require(try test.read { try $0.hex(hex) }).summary
        let inner = try #require(try test.read { try $0.hex(hex + 1) }).summary
        #expect(summary.unread)
        for summary in [summary, inner] {
            #expect(try test.read { try $0.readLinks(of: summary) } == [LinkPosition(hex: hex, position: 1)])
        }
        #expect(try await mark([(hex + 1, 0), (hex, 0)]) == 2)
        #expect(try listed() == [] && found("is:unread river") == [] && found("is:read river") == ["c", "a", "b"])
        #expect(try test.read { try $0.hex(hex)?.summary.unread } == false && rows() == 0 && unread() == 0)
        #expect(try test.countersAreRight())
    }

    @Test("marking the hex resets its links, and a link of a read hex can become unread alone")
    func whole() async throws {
        let hexes = [try receive(content(["a", "b"], inside: ["c"]), 1), try receive(content(["d", "e"]), 2)]
        #expect(try await mark([(hexes[0], 0), (hexes[1], 0)]) == 2)
        #expect(try await test.store.change([hexes[0]], .read(false), at: start) == 0)
        #expect(try listed() == ["e", "a", "b", "c"])
        #expect(try await test.store.change([hexes[0]], .read(true), at: start) == 1)
        #expect(try listed() == ["e"] && rows() == 1)
        #expect(try await mark([(hexes[0] + 1, 0)], unread: true) == 1)
        #expect(try listed() == ["e", "c"] && unread() == 2 && test.countersAreRight())
        #expect(try await mark([(hexes[0] + 1, 0), (hexes[0], 1)], unread: true) == 1)
        #expect(try listed() == ["e", "b", "c"])
        #expect(try await test.store.change(hexes, .delete, at: start) == 2)
        #expect(try rows() == 0 && test.countersAreRight())
    }

    @Test("a duplicate that was read does not hide an unread link from the list without repeats")
    func unique() async throws {
        _ = try receive(content(["a", "b"]), 1)
        let newer = try receive(content(["a", "c"]), 2)
        #expect(try found("river").count == 4 && listed(unique: true) == ["a", "c", "b"])
        #expect(try await mark([(newer, 0)]) == 1)
        #expect(try listed(unique: true) == ["c", "a", "b"] && listed(unread: false, unique: true) == ["a", "c", "b"])
    }

    @Test("missing links are refused, and single links of My Hexlist; then nothing changes")
    func refused() async throws {
        let hex = try receive(content(["a", "b"]), 1)
        let own = content(["m", "n"])
        let mine = try test.write { try $0.insertMine(own, at: start) }
        for (links, code) in [
            ([(hex, 0), (hex, 2)], HexlistError.Code.notFound), ([(hex, 0), (99, 0)], .notFound), ([(hex, -1)], .notFound),
        ] {
            let error = await #expect(throws: HexlistError.self) { _ = try await mark(links) }
            #expect(error?.code == code)
        }
        #expect(try await mark([(mine, 0)]) == 0)
        await #expect(throws: HexlistError.self) { _ = try await mark([(hex, 0), (mine, 0)], unread: true) }
        #expect(try rows() == 0 && listed() == ["a", "b"])
        // The ids inside an own hex do not follow its id, so marking it must not touch the entries of received hexes.
        let next = try receive(content(["x", "y"]), 2)
        _ = try await test.store.addMine(content(["o"]), into: mine, at: start)
        #expect(try await mark([(next, 0)]) == 1)
        #expect(try await test.store.change([mine], .read(false), at: start) == 1)
        #expect(try rows() == 1 && listed() == ["y", "a", "b"])
    }
}
