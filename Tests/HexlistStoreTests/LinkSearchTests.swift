import HexlistJSON
import HexlistModel
import Testing

@testable import HexlistStore

@Suite("Search of links, tags and scripts", .timeLimit(.minutes(5))) struct LinkSearchTests {
    private struct Link {
        var url: String
        var title = ""
        var tags: [String] = []
        var note = ""

        func content(in hex: inout HexContent) -> LinkContent {
            let noted = note.isEmpty ? [] : JSONValue { json in json.object { $0.member("note", note) } }.bytes
            let members = Annotations.extra(Array(noted), settingTags: tags)
            return LinkContent(
                url: hex.add(url), linkDescription: hex.add(title), service: hex.add("Unknown"), extra: hex.add(bytes: members))
        }
    }

    private let test: TestStore
    private let ada: TestPeer

    init() throws {
        test = try TestStore()
        ada = try TestPeer(1, name: "Ada")
        _ = try test.trust(ada)
    }

    private func content(_ description: String, _ links: [Link], tags: [String] = []) -> HexContent {
        var hex = HexContent()
        hex.hexDescription = hex.add(description)
        hex.extra = hex.add(bytes: Annotations.extra([], settingTags: tags))
        hex.links = links.map { $0.content(in: &hex) }
        return hex
    }

    @discardableResult
    private func keep(_ description: String, _ links: [Link], tags: [String] = []) throws -> Int64 {
        let hex = content(description, links, tags: tags)
        return try test.write { try $0.insertMine(hex, at: start) }
    }

    private func index() throws {
        while try test.read({ try $0.counts().unindexed }) > 0 { try test.write { try $0.index() } }
    }

    private func filter(_ text: String) throws -> SearchFilter {
        var filter = SearchFilter(try SearchExpression(parsing: text))
        filter.senders = ["ada": ada.id]
        return filter
    }

    /// The ends of the URLs of the links that a search finds, best or newest first.
    private func found(_ text: String, best: Bool = false) throws -> [String] {
        try index()
        let filter = try filter(text)
        let page = try test.read { best ? try $0.bestLinks(filter) : try $0.searchLinks(filter) }
        return page.hits.map { String(String(decoding: $0.link.url, as: UTF8.self).split(separator: "/").last ?? "") }
    }

    private func hexes(_ text: String) throws -> [Int64] {
        try index()
        let filter = try filter(text)
        return try test.read { try $0.search(filter, limit: 1_000) }.hits.map(\.summary.id)
    }

    @Test("each condition is true for the link or its hex, and one for the link itself")
    func links() throws {
        try keep(
            "Recipes",
            [
                Link(url: "https://a.example/cake", title: "Chocolate cake", tags: ["sweet", "To Read"], note: "from grandma"),
                Link(url: "https://b.example/soup", title: "Soup", tags: ["db"]), Link(url: "https://c.example/bread", title: "Bread"),
            ])
        try keep(
            "Other", [Link(url: "https://a.example/car", title: "Car cake"), Link(url: "https://www.b.example/x", title: "x")],
            tags: ["toys"])
        for (text, expected) in [
            ("cake", ["car", "cake"]), ("recipes cake", ["cake"]), ("recipes", []), ("soup OR bread", ["soup", "bread"]),
            ("cake -chocolate", ["car"]), ("recipes b.example", ["soup"]), ("host:b.example", ["x", "soup"]),
            ("host:example -cake -soup", ["x", "bread"]),
            ("tag:sweet", ["cake"]), ("tag:\"to read\"", ["cake"]), ("tag:read", []), ("sweet", ["cake"]), ("grandma", ["cake"]),
            ("cake -tag:sweet", ["car"]), ("tag:toys cake", ["car"]), ("tag:toys", []), ("-tag:toys host:a.example", ["cake"]),
            ("cak*", ["car", "cake"]),
            ("\"chocolate cake\"", ["cake"]), ("\"cake chocolate\"", []), ("soup cake", []), ("color:teal", []), ("-recipes cake", ["car"]),
            ("https://B.example:443/soup#top", ["soup"]), ("is:unread cake", []), ("is:read cake", ["car", "cake"]),
            ("CHOCOL\u{c4}TE", ["cake"]),
        ] as [(String, [String])] {
            #expect(try found(text) == expected, "\(text)")
        }
        let hit = try #require(try test.read { try $0.searchLinks(filter("grandma")) }.hits.first)
        #expect(
            hit.folders == ["Recipes"] && hit.match?.field == .note && hit.match?.found == "grandma"
                && hit.link.annotations.tags == ["sweet", "To Read"])
        #expect(hit.link.position == 0 && hit.link.hex.description == "Recipes")
    }

    @Test("a title counts more than a tag, a tag more than an address")
    func ranked() throws {
        try keep(
            "x",
            [
                Link(url: "https://a.example/river"), Link(url: "https://a.example/2", title: "River"),
                Link(url: "https://a.example/3", tags: ["river"]),
            ])
        try keep("x", [Link(url: "https://a.example/4", note: "the river")])
        #expect(try found("river", best: true) == ["2", "3", "4", "river"])
        #expect(try found("river") == ["4", "river", "2", "3"])
    }

    @Test("pages continue within a hex, without gaps or repeats")
    func pages() throws {
        for number in 0..<5 {
            try keep("hex \(number)", (0..<7).map { Link(url: "https://a.example/\(number)-\($0)", title: $0 % 2 == 0 ? "river" : "lake") })
        }
        try index()
        let filter = try filter("river")
        var (urls, after) = ([String](), Int64?.none)
        repeat {
            let cursor = after
            let page = try test.read { try $0.searchLinks(filter, limit: 3, after: cursor) }
            #expect(page.hits.count <= 3)
            urls += page.hits.map { String(decoding: $0.link.url.suffix(3), as: UTF8.self) }
            after = page.next
        } while after != nil
        #expect(urls == (0..<5).reversed().flatMap { hex in [0, 2, 4, 6].map { "\(hex)-\($0)" } })
    }

    @Test("texts of hexes count for a page, which ends early and continues")
    func longDescriptions() throws {
        let long = "wide " + String(repeating: String(repeating: "w", count: 999) + " ", count: 64)
        for number in 0..<150 { try keep(long + "\(number)", [Link(url: "https://a.example/\(number)", title: "lake")]) }
        try index()
        for (text, count) in [("lake wide", 150), ("wide -lake", 0)] {
            let filter = try filter(text)
            var (hits, pages, after) = (0, 0, Int64?.none)
            repeat {
                let cursor = after
                let page = try test.read { try $0.searchLinks(filter, limit: 10_000, after: cursor) }
                #expect(page.hits.count <= 4 << 20 / long.utf8.count)
                (hits, pages, after) = (hits + page.hits.count, pages + 1, page.next)
            } while after != nil
            #expect(hits == count && pages > 1, "\(text)")
            let best = try test.read { try $0.bestLinks(filter, limit: 10_000) }
            #expect(best.hits.count <= 4 << 20 / long.utf8.count && best.hits.isEmpty == (count == 0))
        }
    }

    @Test("folders of inner hexes, senders, and links that were received")
    func places() throws {
        var hex = content("Top", [Link(url: "https://a.example/top", title: "river")])
        var child = ChildContent(parent: nil)
        child.hexDescription = hex.add("Inner")
        child.links = 0..<1
        hex.add(child: child)
        hex.childLinks = [Link(url: "https://a.example/inner", title: "river").content(in: &hex)]
        #expect(try test.receive([IncomingHex(content: hex, messageID: message(1), weight: 500)], from: ada) == [.stored])
        #expect(try found("river") == ["inner", "top"] && found("river from:ada") == ["inner", "top"] && found("river -from:ada") == [])
        #expect(try found("river is:unread") == ["inner", "top"] && found("inner river") == ["inner"] && found("from:nobody river") == [])
        #expect(try found("from:ada") == ["inner", "top"] && found("ada river") == ["inner", "top"] && found("ada") == [])
        let hit = try #require(try test.read { try $0.searchLinks(filter("inner river")) }.hits.first)
        #expect(hit.folders == ["Top", "Inner"] && hit.link.hex.description == "Top" && hit.link.hex.location == .inbox)
        #expect(try hexes("is:unread") == [hit.link.id, hit.link.hex.id] && hexes("-river") == [] && hexes("-lake").count == 2)
    }

    @Test("parts of sentences without spaces, and letters that people type in another way")
    func scripts() throws {
        let tokyo = try keep("\u{6771}\u{4eac}\u{30bf}\u{30ef}\u{30fc}\u{306e}\u{5199}\u{771f}", [])
        let seoul = try keep(
            "\u{c11c}\u{c6b8}\u{c5d0}\u{c11c} \u{bcf8}", [Link(url: "https://a.example/s", title: "\u{c11c}\u{c6b8}\u{c5ed}")])
        let thai = try keep("\u{e1b}\u{e23}\u{e30}\u{e40}\u{e17}\u{e28}\u{e44}\u{e17}\u{e22}", [])
        let latin = try keep(
            "Stra\u{df}e, S\u{f8}ren, \u{141}\u{f3}d\u{17a}, \u{ff32}\u{ff55}\u{ff42}\u{ff59}, c\u{153}ur, Cafe\u{301}", [])
        for (text, id) in [
            ("\u{4eac}\u{30bf}\u{30ef}\u{30fc}", tokyo), ("\u{5199}\u{771f}", tokyo), ("\u{6771}*", tokyo), ("\u{c11c}\u{c6b8}", seoul),
            ("\u{e44}\u{e17}\u{e22}", thai), ("strasse", latin), ("STRASSE", latin), ("stra\u{1e9e}e", latin), ("soren", latin),
            ("lodz", latin), ("ruby", latin),
            ("coeur", latin), ("caf\u{e9}", latin), ("CAFE", latin),
        ] as [(String, Int64)] {
            #expect(try hexes(text) == [id], "\(text)")
        }
        #expect(try hexes("\u{4eac}\u{6771}") == [] && hexes("\u{30bf}\u{4eac}") == [])
        let page = try test.read { try $0.search(filter("\u{4eac}\u{30bf}")) }
        #expect(page.hits.first?.match?.found == "\u{4eac}\u{30bf}" && page.hits.first?.match?.before == "\u{6771}")
        let link = try test.read { try $0.searchLinks(filter("\u{c6b8}\u{c5ed}")) }
        #expect(link.hits.first?.match?.found == "\u{c6b8}\u{c5ed}")
        let strasse = try test.read { try $0.search(filter("strasse")) }
        #expect(strasse.hits.first?.match?.found == "Stra\u{df}e" && strasse.hits.first?.match?.before == "")
    }

    @Test("tags are edited, searched and kept with other unknown members")
    func tags() async throws {
        let id = try keep(
            "tagged", [Link(url: "https://a.example/1", tags: ["a"], note: "n"), Link(url: "https://a.example/2")], tags: ["old"])
        #expect(try hexes("tag:old") == [id] && hexes("tag:A") == [id])
        try await test.store.editMine(
            id, MineEdit(tags: ["new", "b c"], links: [.init(from: 0, tags: []), .init(from: 1, tags: ["db"])]), at: start)
        #expect(try hexes("tag:old") == [] && hexes("tag:a") == [] && hexes("tag:\"B C\" tag:db") == [id] && found("tag:db") == ["2"])
        let hex = try test.read { try #require(try $0.hex(id)).content }
        #expect(hex.annotations(hex.extra).tags == ["new", "b c"] && hex.string(hex.links[0].extra) == #"{"note":"n"}"#)
        for tags in [[""], [" "], [String(repeating: "a", count: 65_537)], Array(repeating: "a", count: 101)] {
            await #expect(throws: HexlistError.self) { try await test.store.editMine(id, MineEdit(tags: tags), at: start) }
        }
        try await test.store.editMine(id, MineEdit(tags: []), at: start)
        #expect(try hexes("tag:new") == [] && test.read { try $0.hex(id)?.content.extra.isEmpty } == true)
    }

    @Test("a link counts as received before if its address was, in any spelling")
    func identity() throws {
        func receive(_ urls: [String], _ number: UInt64) throws -> Int64 {
            let id = try test.nextHex()
            let hex = content("", urls.map { Link(url: $0) })
            #expect(try test.receive([IncomingHex(content: hex, messageID: message(number), weight: 500)], from: ada) == [.stored])
            return id
        }
        let first = try receive(["https://Example.com", "https://example.com/a"], 1)
        let second = try receive(["HTTPS://EXAMPLE.COM:443/?utm_source=x#top", "https://example.com/b", "https://example.com"], 2)
        try index()
        let earlier = try test.read { try $0.earlierLinks(of: try #require(try $0.hex(second))) }
        #expect(earlier.count == 2 && earlier.values.allSatisfy { $0.hex == first })
        let links = try test.read { try $0.linkPage(HexFilter(), unique: true) }.items.map { String(decoding: $0.url, as: UTF8.self) }
        #expect(links == ["HTTPS://EXAMPLE.COM:443/?utm_source=x#top", "https://example.com/b", "https://example.com/a"])
    }

    @Test("an index of an older format is rebuilt in batches, also after an interruption")
    func migration() async throws {
        for number in 0..<30 { try keep("hex \(number)", [Link(url: "https://Example.com:443/\(number)", title: "stra\u{df}e")]) }
        try index()
        try test.store.onWritingConnection { db in
            try db.execute(sql: "UPDATE meta SET value = '2' WHERE key = '\(SearchIndex.formatKey)'")
            try db.execute(sql: "INSERT INTO search (search) VALUES ('delete-all')")
        }
        try test.store.close()
        // The first start marks all hexes as unindexed and indexes a part; it ends before the rest is indexed. A store also indexes in the
        // background as soon as it is open, so the number of unindexed hexes is not known.
        let interrupted = try HexStore(path: test.path)
        try await interrupted.write { try $0.index(entries: 10) }
        try interrupted.close()
        let again = try HexStore(path: test.path)
        defer { try? again.close() }
        #expect(try again.readSync { try $0.counts().unindexed } <= 20)
        await again.indexNextBatch()
        let page = try again.readSync {
            try $0.searchLinks(SearchFilter(try SearchExpression(parsing: "strasse https://example.com/7")), limit: 100)
        }
        #expect(page.behind == 0 && page.hits.map { String(decoding: $0.link.url, as: UTF8.self) } == ["https://Example.com:443/7"])
    }
}
