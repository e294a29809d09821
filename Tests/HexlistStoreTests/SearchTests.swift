import GRDB
import HexlistModel
import Testing

@testable import HexlistStore

@Suite("Search", .timeLimit(.minutes(5))) struct SearchTests {
    private struct Text: Sendable {
        var description = ""
        var sender = "Sender"
        var color = ""
        var links: [(url: String, description: String, service: String)] = []

        func hex(_ number: UInt64) -> IncomingHex {
            var content = HexContent()
            content.senderName = content.add(sender)
            content.hexDescription = content.add(description)
            content.hexColor = content.add(color)
            content.links = links.map {
                LinkContent(url: content.add($0.url), linkDescription: content.add($0.description), service: content.add($0.service))
            }
            return IncomingHex(content: content, messageID: message(number), weight: 500)
        }
    }

    private let test: TestStore
    private let ada: TestPeer
    private let bob: TestPeer

    init() throws {
        test = try TestStore()
        (ada, bob) = (try TestPeer(1, name: "Ada Lóvelace"), try TestPeer(2, name: "bob"))
        _ = try test.trust(ada)
        _ = try test.trust(bob)
    }

    @discardableResult
    private func receive(_ text: Text, from peer: TestPeer, at now: Int64 = start) throws -> Int64 {
        let number = try test.read { UInt64(try $0.newestHex()) + 1 }
        let id = try test.nextHex()
        let results = try test.receive([text.hex(number)], from: peer, at: now)
        #expect(results == [.stored] || results == [.held])
        return id
    }

    private func index() throws {
        while try test.read({ try $0.counts().unindexed }) > 0 { try test.write { try $0.index() } }
    }

    private func found(_ text: String, _ change: (inout SearchFilter) -> Void = { _ in }) throws -> [Int64] {
        try index()
        var filter = SearchFilter(try SearchExpression(parsing: text))
        change(&filter)
        return try test.read { try $0.search(filter, limit: 1_000) }.hits.map(\.summary.id)
    }

    /// Whether the index has the same entries after it is rebuilt.
    private func isAsMadeAnew() throws -> Bool {
        try index()
        func entries() throws -> [String] {
            try test.store.onWritingConnection { db in
                try db.execute(sql: "CREATE VIRTUAL TABLE IF NOT EXISTS temp.entries USING fts5vocab(main, search, instance)")
                return try String.fetchAll(
                    db, sql: "SELECT term || '|' || doc || '|' || col || '|' || coalesce(\"offset\", '') FROM temp.entries ORDER BY 1")
            }
        }
        let kept = try entries()
        try test.store.onWritingConnection { db in
            try db.execute(sql: "UPDATE meta SET value = '0' WHERE key = '\(SearchIndex.formatKey)'")
            try SearchIndex.checkFormat(db)
        }
        #expect(try entries().isEmpty)
        try index()
        return try entries() == kept
    }

    @Test func wordsOfEveryFieldWithoutCaseAndAccents() throws {
        let one = try receive(
            Text(
                description: "Çafé au lait", sender: "Gràndma", color: "#00FF7f",
                links: [
                    ("https://www.example.org/Straße/a-b_c", "the RIVER map", "Dropbox"), ("http://bücher.example:8080/x", "", "Unknown"),
                ]),
            from: ada)
        let two = try receive(Text(description: "other", links: [("https://notexample.org/example.org", "", "Unknown")]), from: bob)
        for text in [
            "cafe", "CAFÉ lait", "strasse", "STRAẞE*", "\"au lait\"", "caf*", "grandma", "river", "straße", "\"a b c\"",
            "https://www.example.org",
            "example.org/stra*",
            "lovelac*", "ada", "host:example.org", "host:www.example.org", "host:org lait", "host:bücher.example", "color:springgreen",
            "service:dropbox", "map cafe",
        ] {
            #expect(try found(text) == [one], "\(text)")
        }
        #expect(try found("other") == [two] && found("bob") == [two] && found("host:notexample.org") == [two])
        for text in [
            "\"lait au\"", "\"lait the\"", "\"map http\"", "caf", "host:xample.org", "service:unknown", "color:teal", "missing", "zinbox",
        ] {
            #expect(try found(text) == [], "\(text)")
        }
        #expect(try found("example") == [two, one])
    }

    @Test(
        "search text is never interpreted as FTS5 syntax",
        arguments: [
            "river AND", "NOT river", "river OR nothing", "\"river", "river\"\"", "NEAR(river map)", "{about} : river", "about:river",
            "^river",
            "river + map", "river * map", "key : x", "-river", "riv\u{0}er", "'); DROP TABLE hex;--", "\u{E100}1", "\u{E200}",
            "river\u{E200}",
        ]) func syntax(text: String) throws
    {
        let id = try receive(Text(description: "the river map and near about"), from: ada)
        do {
            let ids = try found(text)
            #expect(ids == [] || ids == [id])
        } catch let error as HexlistError {
            #expect(error.code == .badRequest, "\(error)")
        }
    }

    @Test func wordsOfNothingAreRefused() throws {
        for text in ["---", "😀", "\"\"", "*", "a ---"] {
            let error = #expect(throws: HexlistError.self) { try found(text) }
            #expect(error?.code == .badRequest, "\(text)")
        }
    }

    @Test func placesSendersTimesAndUnread() throws {
        let stranger = try TestPeer(9, name: "nobody")
        let old = try receive(Text(description: "river old"), from: ada, at: start)
        let new = try receive(Text(description: "river new"), from: bob, at: start + day)
        let held = try receive(Text(description: "river held"), from: stranger, at: start)
        let mine = try test.write { try $0.insertMine(Text(description: "river mine").hex(1).content, at: start) }
        #expect(try found("river") == [mine, new, old])
        #expect(try found("river") { $0.location = .held } == [held])
        #expect(try found("river") { $0.location = .inbox } == [new, old])
        #expect(try found("river") { $0.location = .mine } == [mine])
        #expect(try found("river") { $0.peer = ada.id } == [old])
        #expect(try found("river") { $0.peer = stranger.id } == [] && found("nobody") == [])
        #expect(try found("river") { $0.since = start + 1 } == [new])
        #expect(try found("river") { $0.until = start + day } == [mine, old])
        _ = try test.write { try $0.setRead([new]) }
        #expect(try found("river") { $0.unread = true } == [old])
        // A search finds a new name or alias immediately, because the index does not contain names.
        let countess = ada.id
        try test.write { try $0.setAlias(countess, "Countess") }
        #expect(try found("countess river") == [old] && found("lovelace") == [old])
        _ = try test.write { try $0.accept([held], at: start + 2 * day) }
        #expect(try found("river") == [mine, held, new, old] && found("river") { $0.location = .held } == [])
        #expect(try isAsMadeAnew())
    }

    @Test func whatIsDeletedIsGoneAndTheIndexStaysTheOneOfTheRows() throws {
        for number in 0..<40 {
            try receive(
                Text(description: "number \(number) of many", links: [("https://\(number % 3).example.org/\(number)", "link", "Box")]),
                from: number % 2 == 0 ? ada : bob)
            if number % 7 == 0 { try index() }
            if number % 5 == 4 { _ = try test.write { try $0.delete([Int64(number), Int64(number), 999], at: start) } }
        }
        let stranger = try TestPeer(9, name: "nobody")
        for number in 1...5 { try receive(Text(description: "held \(number) of many"), from: stranger) }
        try index()
        _ = try test.trust(stranger)
        // Entries are deleted before they are rebuilt.
        _ = try test.write { try $0.delete([41, 42], at: start) }
        #expect(try found("many").count == 40 - 8 + 3)
        #expect(try isAsMadeAnew())
        let all = try test.read { try $0.hexPage(limit: 100).items.map(\.id) }
        _ = try test.write { try $0.delete(all, at: start) }
        #expect(try found("many") == [] && isAsMadeAnew() && test.countersAreRight())
    }

    @Test func pagesAreNewestFirstWithoutGapsOrRepeats() throws {
        let ids = try (0..<50).map { try receive(Text(description: "river \($0)"), from: $0 % 2 == 0 ? ada : bob) }
        try index()
        var (after, pages) = (Int64?.none, [Int64]())
        repeat {
            let cursor = after
            let page = try test.read { try $0.search(SearchFilter([.words("river", isPrefix: false)]), limit: 7, after: cursor) }
            #expect(page.hits.count <= 7 && page.behind == 0)
            pages += page.hits.map(\.summary.id)
            after = page.next
        } while after != nil
        #expect(pages == ids.reversed())
    }

    @Test func whatIsNotInTheIndexYetIsCountedAndCaughtUpAfterAStart() async throws {
        try test.receive((1...30).map { hex($0, "river") }, from: ada)
        let page = try test.read { try $0.search(SearchFilter([.words("river", isPrefix: false)]), limit: 100) }
        #expect(page.hits.count + Int(page.behind) == 30)
        try test.write { try $0.index(entries: 10) }
        try test.store.close()
        let again = try HexStore(path: test.path)
        defer { try? again.close() }
        await again.indexNextBatch()
        let whole = try again.readSync { try $0.search(SearchFilter([.words("river", isPrefix: false)]), limit: 100) }
        #expect(whole.hits.count == 30 && whole.behind == 0)
    }

    @Test func aDamagedIndexIsMadeAnewAndKeepsNothingFromBeingDeleted() async throws {
        try test.receive((1...30).map { hex($0, "river \($0)") }, from: ada)
        try index()
        try test.store.onWritingConnection { db in try db.execute(sql: "UPDATE search_data SET block = x'00' WHERE id > 10") }
        #expect(try test.write { try $0.delete([1, 2], at: start) } == 2)
        let page = try await test.store.readWithIndex { try $0.search(SearchFilter([.words("river", isPrefix: false)]), limit: 100) }
        #expect(page.hits.count == 28 && page.behind == 0)
        #expect(try isAsMadeAnew())
        // The record with the structure of the index is damaged. A deletion, which has to read it, succeeds all the same.
        try test.store.onWritingConnection { db in try db.execute(sql: "UPDATE search_data SET block = x'00' WHERE id = 10") }
        #expect(try test.write { try $0.delete([3], at: start) } == 1)
        #expect(try found("river").count == 27)
    }

    @Test func theBestComeFirst() throws {
        let inLink = try receive(Text(links: [("https://example.org", "river map", "Unknown")]), from: ada)
        let apart = try receive(Text(description: "map of the river"), from: ada)
        let together = try receive(Text(description: "the river map"), from: ada)
        let later = try receive(Text(links: [("https://example.org/river", "map", "Unknown")]), from: ada)
        try index()
        let filter = SearchFilter(try SearchExpression(parsing: "river map"))
        #expect(try test.read { try $0.best(filter) }.hits.map(\.summary.id) == [together, apart, inLink, later])
        #expect(try test.read { try $0.best(filter, limit: 1) }.hits.map(\.summary.id) == [together])
    }

    @Test func theMatchingPartIsShown() throws {
        let long = String(repeating: "wörd ", count: 100)
        try receive(Text(description: long + "Río Grande " + long, sender: "Sender"), from: ada)
        try receive(
            Text(
                description: "x", sender: "Granny", links: [("https://a.example/1", "", "Box"), ("https://b.example/river", "no", "Box")]),
            from: ada)
        try index()
        func match(_ text: String) throws -> [SearchExcerpt?] {
            try test.read { try $0.search(SearchFilter(try SearchExpression(parsing: text))) }.hits.map(\.match)
        }
        let one = try #require(try match("rio gran*")[0])
        #expect(
            one.field == .description && one.link == nil && one.found == "Río" && one.before.hasPrefix("…") && one.before.hasSuffix("wörd ")
        )
        #expect(one.after.hasPrefix(" Grande wörd") && one.after.hasSuffix("…") && one.after.utf8.count < 130)
        #expect(try match("river") == [SearchExcerpt(field: .url, link: 1, before: "https://b.example/", found: "river", after: "")])
        #expect(try match("granny")[0]?.field == .sender)
        #expect(try match("host:b.example")[0]?.link == 1)
        #expect(try match("service:box") == [nil])
    }

    @Test func linksThatWereHereBefore() throws {
        let url = "https://example.org/again"
        let first = try receive(Text(links: [(url, "", "Box"), ("https://example.org/once", "", "Box")]), from: ada)
        let second = try receive(Text(links: [("https://example.org/new", "", "Box"), (url, "", "Box")]), from: bob, at: start + 1)
        _ = try test.write { try $0.insertMine(Text(links: [(url, "", "Box")]).hex(1).content, at: start) }
        let third = try receive(Text(links: [(url, "", "Box"), (url + "/other", "", "Box")]), from: ada, at: start + 2)
        try index()
        func earlier(_ id: Int64) throws -> [String: EarlierLink] {
            let found = try test.read { try $0.earlierLinks(of: try #require(try $0.hex(id))) }
            return Dictionary(uniqueKeysWithValues: found.map { (String(decoding: $0, as: UTF8.self), $1) })
        }
        #expect(try earlier(first).isEmpty)
        #expect(try earlier(second).mapValues(\.hex) == [url: first] && earlier(second)[url]?.peer?.name == "Ada Lóvelace")
        #expect(try earlier(third) == [url: EarlierLink(hex: second, receivedAt: start + 1, peer: earlier(third)[url]?.peer)])
        _ = try test.write { try $0.delete([second], at: start) }
        #expect(try earlier(third).mapValues(\.hex) == [url: first])
    }

    @Test func hexesInsideOthersAreFoundWithTheTopmostOne() throws {
        func tree(_ number: UInt64) -> IncomingHex {
            var hex = Text(description: "outside \(number)", links: [("a:top", "", "")]).hex(number)
            var (middle, inner) = (ChildContent(parent: nil), ChildContent(parent: 0))
            middle.hexDescription = hex.content.add("middle")
            inner.hexDescription = hex.content.add("inner river")
            inner.links = 0..<1
            hex.content.add(child: middle)
            hex.content.add(child: inner)
            hex.content.childLinks = [LinkContent(url: hex.content.add("a:inner"), linkDescription: .empty, service: .empty)]
            return hex
        }
        let stranger = try TestPeer(9, name: "nobody")
        let top = try test.nextHex()
        #expect(try test.receive([tree(1)], from: ada) == [.stored])
        let held = try test.nextHex()
        #expect(try test.receive([tree(2)], from: stranger) == [.held])
        let hit = try #require(
            try {
                try index(); return try test.read { try $0.search(SearchFilter(try SearchExpression(parsing: "river ada"))) }.hits
            }().first)
        #expect(hit.summary.id == top + 2 && hit.summary.parent == top + 1 && hit.top?.id == top && hit.match?.found == "river")
        #expect(try found("river") == [top + 2] && found("outside") == [top] && found("river") { $0.location = .held } == [held + 2])
        #expect(try found("river") { $0.peer = ada.id } == [top + 2] && found("river") { $0.unread = true } == [top + 2])
        _ = try test.write { try $0.setRead([top]) }
        #expect(try found("river") { $0.unread = true } == [])
        _ = try test.write { try $0.accept([held], at: start) }
        #expect(try found("river") == [held + 2, top + 2] && found("river") { $0.location = .held } == [])
        #expect(try isAsMadeAnew())
        let again = try receive(Text(links: [("a:inner", "", "")]), from: bob)
        try index()
        let earlier = try test.read { try $0.earlierLinks(of: try #require(try $0.hex(again))) }
        #expect(earlier[Array("a:inner".utf8)]?.hex == held)
        let inTree = try test.read { try $0.earlierLinks(of: try #require(try $0.hex(held))) }
        #expect(inTree.mapValues(\.hex) == [Array("a:top".utf8): top, Array("a:inner".utf8): top])
        let links = try test.read { try $0.linkPage(HexFilter(), unique: false) }.items.map(\.id)
        #expect(links == [again, held, held + 2, top, top + 2])
        let unique = try test.read { try $0.linkPage(HexFilter(), unique: true) }.items.map(\.id)
        #expect(unique == [again, held])
        _ = try test.write { try $0.delete([top], at: start) }
        #expect(try found("river") == [held + 2] && isAsMadeAnew())
    }

    @Test func editedAndMovedHexesOfMyHexlistAreFoundAsTheyAre() async throws {
        func mine(_ text: String, into parent: Int64? = nil) async throws -> Int64 {
            try await test.store.addMine(Text(description: text, links: [("a:1", "first", "")]).hex(1).content, into: parent, at: start)
        }
        let folder = try await mine("folder")
        let one = try await mine("river")
        let inside = try await mine("lake", into: folder)
        try index()
        try await test.store.editMine(one, MineEdit(description: "brook", links: [.init(url: "a:2", linkDescription: "second")]), at: start)
        try await test.store.editMine(inside, MineEdit(color: "#008080"), at: start)
        #expect(try found("river") == [] && found("brook second") == [one] && found("first") == [inside, folder])
        #expect(try found("color:teal") { $0.location = .mine } == [inside])
        try await test.store.moveMine(one, into: folder, at: start)
        #expect(try found("brook") == [one] && isAsMadeAnew())
        #expect(try await test.store.change([folder], .delete, at: start) == 1)
        #expect(try found("brook") == [] && found("lake") == [] && isAsMadeAnew())
    }

    @Test func linksOfTheInboxEachOnce() throws {
        let one = try receive(Text(links: [("a:1", "", ""), ("a:2", "", ""), ("a:1", "", "")]), from: ada)
        let two = try receive(Text(links: [("a:2", "", ""), ("a:3", "", "")]), from: bob)
        try index()
        func links(_ filter: HexFilter = HexFilter(), unique: Bool, limit: Int = 100) throws -> [String] {
            var (after, all) = (HexCursor?.none, [String]())
            repeat {
                let cursor = after
                let page = try test.read { try $0.linkPage(filter, unique: unique, limit: limit, after: cursor) }
                #expect(page.items.count <= limit)
                all += page.items.map { "\($0.id).\($0.position) \(String(decoding: $0.url, as: UTF8.self))" }
                after = page.next
            } while after != nil
            return all
        }
        for limit in [1, 2, 100] {
            #expect(
                try links(unique: false, limit: limit) == ["\(two).0 a:2", "\(two).1 a:3", "\(one).0 a:1", "\(one).1 a:2", "\(one).2 a:1"])
            #expect(try links(unique: true, limit: limit) == ["\(two).0 a:2", "\(two).1 a:3", "\(one).0 a:1"])
        }
        // Each address is listed once, among the filtered hexes.
        #expect(try links(HexFilter(peer: ada.id), unique: true) == ["\(one).0 a:1", "\(one).1 a:2"])
        _ = try test.write { try $0.setRead([two]) }
        #expect(try links(HexFilter(unread: true), unique: true) == ["\(one).0 a:1", "\(one).1 a:2"])
    }

    @Test func aPageOfLinksLooksAtSoMuchAndGoesOn() throws {
        // Worst case of the comparison: each link of the oldest hex is also in a newer one, beside a long URL.
        let count = 60
        try receive(Text(links: (0..<count).map { ("a:\($0)", "", "") }), from: ada)
        for number in 0..<count {
            try receive(Text(links: [("a:\(number)", "", ""), ("b:\(number)" + String(repeating: "x", count: 65_000), "", "")]), from: bob)
        }
        try index()
        var (after, pages, links) = (HexCursor?.none, 0, 0)
        repeat {
            let cursor = after
            let page = try test.read { try $0.linkPage(HexFilter(), unique: true, limit: 1_000, after: cursor) }
            (pages, links, after) = (pages + 1, links + page.items.count, page.next)
        } while after != nil && pages < 100
        #expect(pages == 2 && links == 2 * count)
        let again = try receive(Text(links: (0..<count).map { ("a:\($0)", "", "") }), from: ada)
        try index()
        let earlier = try test.read { try $0.earlierLinks(of: try #require(try $0.hex(again))) }
        #expect((10..<count).contains(earlier.count))
    }

    @Test func hexesWithoutLinksCountForAPageOfLinks() throws {
        try receive(Text(links: [("a:1", "", "")]), from: ada)
        _ = try test.receive((1_000..<6_500).map { Text().hex($0) }, from: bob)
        let first = try test.read { try $0.linkPage(HexFilter(), unique: false) }
        #expect(first.items.isEmpty && first.next != nil)
        let second = try test.read { try $0.linkPage(HexFilter(), unique: false, after: first.next) }
        #expect(second.items.map(\.id) == [1] && second.next == nil)
    }

    @Test func anEntryIsAsLongAsItsTextsAllow() throws {
        func document(_ links: [(url: String, service: String)]) -> SearchDocument {
            var document = SearchDocument(location: "inbox", peer: 1, senderName: [], description: [], color: [], extra: [])
            for link in links { document.add(url: Array(link.url.utf8), description: [], service: Array(link.service.utf8), extra: []) }
            return document
        }
        /// A numeric host with the given number of labels before it.
        func host(_ number: Int, _ label: String, _ count: Int) -> String {
            "http://" + String(repeating: label + ".", count: count) + "x\(number)"
        }
        for links in [
            (0..<2_700).map { (host($0, "a", 122), "") }, (0..<2_700).map { (host($0, String(repeating: "-", count: 63), 3), "") },
            (0..<5_000).map { ("", String(repeating: "-", count: 250) + "\($0)") }, (0..<5_000).map { ("http://\($0)", "\($0)") },
        ] {
            let document = document(links)
            let texts = document.byteCount - document.keys.count
            #expect(document.keys.count <= max(64 << 10, 2 * texts) + 20 * links.count, "\(links[0])")
        }
        // Each host of an ordinary hex is indexed with its parent domains.
        let links = (0..<300).map { (host($0, "www", 4) + ".example.org/page", "Box\($0)") }
        let keys = Set(document(links).keys.split(separator: 0x20).map { Array($0) + [0x20] })
        for number in 0..<300 {
            #expect(keys.contains(SearchKey.key(.service, Array("Box\(number)".utf8))))
            for above in ["www.www.www.www.", "www.www.", "www.", ""] {
                #expect(keys.contains(SearchKey.key(.host, Array("\(above)x\(number).example.org".utf8))))
            }
        }
    }

    @Test func aHostIsFoundBySoManyOfItsLastLabelsAndAsAWhole() throws {
        let id = try receive(Text(links: [("https://a.b.c.d.e.f.example.org/", "", "")]), from: ada)
        for host in ["org", "example.org", "f.example.org", "d.e.f.example.org", "a.b.c.d.e.f.example.org"] {
            #expect(try found("host:\(host)") == [id], "\(host)")
        }
        #expect(try found("host:c.d.e.f.example.org") == [])
    }

    @Test(
        "the fast host parser finds the same hosts as the strict one",
        arguments: [
            "https://example.org", "https://EXAMPLE.org:80/x", "http://a-b.example.org/?q#f", "https://1.2.3.4/", "https://a_b.example/",
            "https://example.org./", "https://-a.example/", "https://user@example.org/", "https://a..b/", "https://", "mailto:a@b",
            "https://ex%61mple.org",
            "https://example.org\\@b.example", "https://[::1]/", "https://bücher.example/", "https://0x7f.1/", "https://a.0x7f/", "x", "",
        ]) func hosts(url: String)
    {
        let strict = (try? LinkTarget(url, schemes: ["http", "https", "ftp", "ws", "wss"]))?.host
        var document = SearchDocument(location: "inbox", peer: nil, senderName: [], description: [], color: [], extra: [])
        document.add(url: Array(url.utf8), description: [], service: [], extra: [])
        let key = strict.map { SearchKey.key(.host, Array($0.utf8)) }
        let keys = String(decoding: document.keys, as: UTF8.self)
        #expect(key.map { keys.contains(String(decoding: $0, as: UTF8.self)) } ?? !keys.contains("\u{E102}"), "\(strict ?? "none")")
    }

    @Test func unlikeTextsHaveUnlikeKeys() {
        let texts = ["a", "A b", "a.b", "a-b", "ab", "\u{E0}", "\u{E02E}", "é", "e", String(repeating: "x", count: 255), "-", ""]
        #expect(Set(texts.map { SearchKey.key(.host, Array($0.utf8)) }).count == texts.count)
        #expect(SearchKey.key(.host, Array("AB".utf8)) == SearchKey.key(.host, Array("ab".utf8)))
    }
}
