import GRDB
import HexlistModel
import TestSupport
import Testing

@testable import HexlistStore

/// Imports into My Hexlist: no duplicates, and a changed folder gets its new entries only.
@Suite("Import into My Hexlist", .timeLimit(.minutes(5))) struct ImportTests {
    struct Folder {
        var name: String
        var links: [String] = []
        var inside: [Folder] = []
        var sender = ""

        var hex: HexContent {
            var content = HexContent()
            content.hexDescription = content.add(name)
            content.senderName = content.add(sender)
            content.links = links.map { Self.link($0, in: &content) }
            var waiting = inside.map { (folder: $0, parent: Int?.none) }
            var next = 0
            while next < waiting.count {
                let (folder, parent) = waiting[next]
                next += 1
                var child = ChildContent(parent: parent)
                child.hexDescription = content.add(folder.name)
                let first = content.childLinks.count
                for link in folder.links { content.childLinks.append(Self.link(link, in: &content)) }
                child.links = first..<content.childLinks.count
                let index = content.add(child: child)
                waiting += folder.inside.map { ($0, index) }
            }
            return content
        }

        private static func link(_ url: String, in content: inout HexContent) -> LinkContent {
            LinkContent(url: content.add(url), linkDescription: content.add("about \(url)"), service: content.add("Unknown"))
        }

        /// Each link with its folders' names.
        func paths(_ above: String = "") -> [String] {
            links.map { "\(above)\(name)/\($0)" } + inside.flatMap { $0.paths("\(above)\(name)/") }
        }
    }

    /// All texts of a hex in order.
    private static let digest: @Sendable (HexContent) -> [UInt8] = { hex in
        func texts(_ links: ArraySlice<LinkContent>) -> [String] {
            links.flatMap { [$0.url, $0.linkDescription, $0.service, $0.extra].map(hex.string) }
        }
        let inside = hex.children.indices.flatMap { index in
            ["\(hex.children[index].parent ?? -1)", hex.string(hex.children[index].hexDescription)] + texts(hex.links(of: index))
        }
        return Array(
            ([hex.string(hex.hexDescription), hex.string(hex.senderName)] + texts(hex.links[...]) + inside).joined(separator: "\n").utf8)
    }

    @discardableResult
    private func imported(_ test: TestStore, _ folders: [Folder], into parent: Int64? = nil, merging: Bool = true) async throws -> HexImport
    {
        try await test.store.importMine(
            HexArray(folders.map(\.hex)), into: parent, merging: merging, at: start, diskReserve: 0, digest: Self.digest)
    }

    /// The links of My Hexlist with their hexes' descriptions.
    private func paths(_ test: TestStore) throws -> [String] {
        try test.read { reader in
            let ids = try reader.hexPage(HexFilter(location: .mine), limit: 10_000).items.map(\.id)
            return try reader.hexes(ids).flatMap { detail -> [String] in
                let hex = detail.content
                var names: [String] = []
                for child in hex.children {
                    names.append(
                        "\(child.parent.map { names[$0] } ?? "\(hex.string(hex.hexDescription))/")\(hex.string(child.hexDescription))/")
                }
                return hex.links.map { "\(hex.string(hex.hexDescription))/\(hex.string($0.url))" }
                    + hex.children.indices.flatMap { index in hex.links(of: index).map { "\(names[index])\(hex.string($0.url))" } }
            }
        }.sorted()
    }

    private static let bar = Folder(
        name: "bar", links: ["a", "b", "b"],
        inside: [Folder(name: "news", links: ["c"], inside: [Folder(name: "daily", links: ["d"])]), Folder(name: "empty")])

    @Test("a changed folder gets its new entries at each level, and none the second time")
    func folders() async throws {
        let test = try TestStore()
        #expect(try await imported(test, [Self.bar]) == HexImport(added: 1, addedInside: 3, addedLinks: 5))
        #expect(try await imported(test, [Self.bar]) == HexImport(unchanged: 1))
        var more = Self.bar
        more.links = ["b", "x", "b", "b"]  // without a, with the new x, and with one more b
        more.inside[0].inside[0].links.append("y")
        more.inside[0].inside.append(Folder(name: "weekly", links: ["z"]))
        more.inside.append(Folder(name: "later", inside: [Folder(name: "deep", links: ["w"])]))
        #expect(try await imported(test, [more]) == HexImport(extended: 1, newHexes: 3, newLinks: 5))
        let expected = Self.bar.paths() + ["bar/x", "bar/b", "bar/news/daily/y", "bar/news/weekly/z", "bar/later/deep/w"]
        #expect(try paths(test) == expected.sorted())
        #expect(try await imported(test, [more]) == HexImport(unchanged: 1))
        #expect(try await imported(test, [Self.bar]) == HexImport(unchanged: 1))
        #expect(try paths(test) == expected.sorted())
        let top = try test.read { try #require(try $0.hexPage(HexFilter(location: .mine)).items.first) }
        #expect(top.linkCount == 5 && top.hexesInside == 6 && top.linksInside == 5)
    }

    @Test("a link whose address the folder has in another spelling is left out and named")
    func respelled() async throws {
        let test = try TestStore()
        let one = "https://example.com/a?x=1&y=2"
        try await imported(test, [Folder(name: "f", links: [one, "https://example.com/b"])])
        let others = ["https://Example.com/a?y=2&x=1#top", "https://example.com/b", "https://example.com/a?x=1&y=2&utm_source=s"]
        let result = try await imported(test, [Folder(name: "f", links: others)])
        #expect(result.extended == 1 && result.newLinks == 1 && result.respelled == 1)
        #expect(result.respellings == [EquivalentLink(url: others[0], stored: one)])
        #expect(try paths(test) == ["f/\(one)", "f/\(others[1])", "f/\(others[2])"].sorted())
        // Equal spellings are matched first, so that a second import of either file changes nothing.
        #expect(try await imported(test, [Folder(name: "f", links: [one, "https://example.com/b"])]) == HexImport(unchanged: 1))
        let again = try await imported(test, [Folder(name: "f", links: others)])
        #expect(again.unchanged == 1 && again.respelled == 1 && again.newLinks == 0)
    }

    @Test("imported entries are searchable, and counted in their location")
    func index() async throws {
        let test = try TestStore()
        try await imported(test, [Self.bar])
        await test.store.indexNextBatch()
        var more = Self.bar
        more.links.append("https://river.example/")
        more.inside[0].links.append("https://lake.example/")
        more.inside.append(Folder(name: "pond"))
        try await imported(test, [more])
        for word in ["river", "lake", "pond"] {
            let found = try await test.store.readWithIndex { try $0.search(SearchFilter([.words(word, isPrefix: false)])) }
            #expect(found.hits.count == 1 && found.behind == 0, "\(word)")
        }
    }

    @Test("a folder is added separately if the target is ambiguous, or merging is off")
    func ambiguous() async throws {
        let test = try TestStore()
        let (one, two) = (Folder(name: "x", links: ["1"]), Folder(name: "x", links: ["2"]))
        #expect(try await imported(test, [one, two]) == HexImport(added: 2, addedLinks: 2))
        #expect(try await imported(test, [Folder(name: "x", links: ["3"]), one]) == HexImport(added: 1, addedLinks: 1, unchanged: 1))
        #expect(try await imported(test, [one, two, Folder(name: "x", links: ["3"])]) == HexImport(unchanged: 3))
        #expect(try await imported(test, [Folder(name: "", links: ["1"])]) == HexImport(added: 1, addedLinks: 1))
        #expect(try await imported(test, [Folder(name: "", links: ["1", "2"])]) == HexImport(added: 1, addedLinks: 2))
        #expect(try await imported(test, [Folder(name: "y", links: ["1"], sender: "Bob")]) == HexImport(added: 1, addedLinks: 1))
        #expect(try await imported(test, [Folder(name: "y", links: ["1", "2"])]) == HexImport(added: 1, addedLinks: 2))
        #expect(try await imported(test, [Folder(name: "z", links: ["1"])], merging: false) == HexImport(added: 1, addedLinks: 1))
        #expect(try await imported(test, [Folder(name: "z", links: ["1", "2"])], merging: false) == HexImport(added: 1, addedLinks: 2))
    }

    @Test("entries that would make a hex too large to send go to another hex")
    func bounds() async throws {
        let test = try TestStore()
        let full = Folder(name: "full", links: (0..<ProtocolLimits.links).map { "\($0)" })
        #expect(try await imported(test, [full]) == HexImport(added: 1, addedLinks: ProtocolLimits.links))
        #expect(try await imported(test, [Folder(name: "full", links: ["1", "new"])]) == HexImport(added: 1, addedLinks: 2))
        let heavy = Folder(name: "heavy", links: (0..<9).map { "\($0)" + String(repeating: "x", count: 60_000) })
        #expect(try await imported(test, [heavy]) == HexImport(added: 1, addedLinks: 9))
        let other = Folder(name: "heavy", links: heavy.links.map { "y\($0)" })
        #expect(try await imported(test, [other]) == HexImport(added: 1, addedLinks: 9))
    }

    @Test("an import into a hex matches the folders inside it")
    func inside() async throws {
        let test = try TestStore()
        try await imported(test, [Self.bar])
        let folder = try test.write { try $0.addMine(Folder(name: "folder").hex, into: nil, at: start) }
        #expect(try await imported(test, [Self.bar], into: folder) == HexImport(added: 1, addedInside: 3, addedLinks: 5))
        var more = Self.bar
        more.links.append("x")
        #expect(
            try await imported(test, [more, Folder(name: "other", links: ["1"])], into: folder)
                == HexImport(added: 1, addedLinks: 1, extended: 1, newLinks: 1))
        #expect(try await imported(test, [more], into: folder) == HexImport(unchanged: 1))
        let whole = try #require(try test.read { try $0.hex(folder) })
        #expect(whole.summary.hexesInside == 5 && whole.summary.linksInside == 7 && whole.content.children.count == 5)
        let full = Folder(name: "bar", links: (0..<ProtocolLimits.links - 6).map { "n\($0)" })
        await #expect { try await imported(test, [full], into: folder) } throws: { ($0 as? HexlistError)?.code == .badRequest }
        #expect(try test.read { try $0.hex(folder) }?.content.childLinks.count == 7)
    }

    @Test("random folders: all imported entries are there, once each", arguments: UInt64(1)...20)
    func random(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        func make(_ level: Int) -> Folder {
            var folder = Folder(name: ["a", "b", "c", ""].randomElement(using: &random) ?? "")
            folder.links = (0..<Int.random(in: 0...3, using: &random)).map { _ in "\(Int.random(in: 0...5, using: &random))" }
            if level < 4 { folder.inside = (0..<Int.random(in: 0...3, using: &random)).map { _ in make(level + 1) } }
            return folder
        }
        let test = try TestStore()
        for _ in 0..<6 {
            let folders = (0..<Int.random(in: 1...4, using: &random)).map { _ in make(1) }
            let before = try paths(test)
            let done = try await imported(test, folders)
            #expect(done.added + done.unchanged + done.extended == folders.count)
            let after = try paths(test)
            #expect(Set(after).isSuperset(of: before + folders.flatMap { $0.paths() }))
            let again = try await imported(test, folders)
            #expect(again == HexImport(unchanged: folders.count))
            #expect(try paths(test) == after)
        }
        try test.read { reader in
            let wrong = try Int.fetchOne(
                reader.db,
                sql: """
                    SELECT count(*) FROM hex WHERE linkCount <> (SELECT count(*) FROM link WHERE link.id >> 13 = hex.id)
                        OR (location = 'mine' AND hexesInside > 0 AND NOT EXISTS (SELECT 1 FROM hex AS child WHERE child.parent = hex.id))
                    """)
            #expect(wrong == 0)
        }
    }

    @Test("reads only hexes with the imported descriptions, by an index")
    func plan() throws {
        let test = try TestStore()
        let plan = try test.read { reader in
            try Row.fetchAll(
                reader.db,
                sql: """
                    EXPLAIN QUERY PLAN SELECT id FROM hex INDEXED BY hexMine
                    WHERE location = 'mine' AND substr(description, 1, 64) = substr('x', 1, 64) AND +description = 'x'
                    """
            ).map { $0["detail"] as String }
        }
        #expect(plan.contains { $0.contains("SEARCH hex USING INDEX hexMine") }, "\(plan)")
    }
}
