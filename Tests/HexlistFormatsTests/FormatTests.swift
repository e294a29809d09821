import Foundation
import HexlistJSON
import HexlistModel
import TestSupport
import Testing

@testable import HexlistFormats

@Suite("File formats for export and import") struct FormatTests {
    private static func fixture(_ name: String) throws -> [UInt8] {
        Array(try Data(contentsOf: #require(Bundle.module.resourceURL).appending(path: "Fixtures/\(name)")))
    }

    private static func read(_ name: String) throws -> FileReading {
        let bytes = try fixture(name)
        return try #require(FileFormat.of(bytes, name: name)?.read(bytes, name: "file"))
    }

    /// `parent/hex: title <url>` for all links.
    private static func outline(_ forest: HexTree) -> [String] {
        forest.hexes.flatMap { hex in
            let parent = hex.parent.map { "\(forest.hexes[$0].description)/" } ?? ""
            return ["\(parent)\(hex.description)"] + hex.links.map { "  \($0.title) <\($0.url)>" }
        }
    }

    // MARK: Files of other programs

    @Test func whatFirefoxWrote() throws {
        let reading = try Self.read("firefox.html")
        #expect(
            Self.outline(reading.forest) == [
                "Bookmarks Menu", "  In the menu <https://example.com/menu>", "Bookmarks Toolbar", "  Example <https://example.org/>",
                "  Ampersand & \"quotes\" <tags> <https://example.org/?a=1&b=2#top>", "  A bookmarklet <javascript:alert(1)>",
                "Bookmarks Toolbar/Nested & deep", "  Größe 中文 👩‍👩‍👧 <https://example.org/gr%C3%B6%C3%9Fe>", "Nested & deep/Level 2",
                "  Two <https://example.net/2>", "Level 2/Level 3", "  Three <https://example.net/3>", "Nested & deep/Empty",
                "Other Bookmarks", "   <https://example.com/other>",
            ])
        #expect(reading.skipped == [FileReading.Skip(reason: .query, count: 1, items: [.init(line: 33, text: "Most visited")])])
        let link = reading.forest.hexes[1].links[0]
        #expect(link.extra.value("tags")?.text == #"["news","to read"]"#)
        #expect(link.extra.value("keyword")?.string == "ex" && link.extra.value("addDate")?.string == "1714979289")
        #expect(reading.forest.hexes[1].extra.value("toolbar")?.bool == true)
        #expect(reading.forest.hexes[6].extra.value("unfiled")?.bool == true)
        // Export and import again lose nothing.
        #expect(BookmarkHTML.read(BookmarkHTML.write(reading.forest), name: "x").forest == reading.forest)
        #expect(OPML.read(OPML.write(reading.forest), name: "x").forest == reading.forest)
    }

    @Test func whatChromiumWrites() throws {
        let reading = try Self.read("chromium.html")
        #expect(
            Self.outline(reading.forest) == [
                "Bookmarks bar", "  Example <https://example.org/>", "  Ampersand & \"quotes\" <tags> <https://example.org/?a=1&b=2#top>",
                "Bookmarks bar/Nested & deep", "  Größe 中文 👩‍👩‍👧 <https://example.org/gr%C3%B6%C3%9Fe>", "Nested & deep/Empty", "Bookmarks",
                "   <https://example.com/other>", "  A script <javascript:alert('1')>",
            ])
        #expect(reading.skipped.isEmpty)
        #expect(reading.forest.hexes[0].extra.value("toolbar")?.bool == true)
        #expect(BookmarkHTML.read(BookmarkHTML.write(reading.forest), name: "x").forest == reading.forest)
    }

    @Test func whatPocketAndRaindropWrite() throws {
        let pocket = try Self.read("pocket.csv").forest
        #expect(Self.outline(pocket) == ["file", "  Read, later <https://example.org/read>", "   <https://example.org/bare>"])
        #expect(pocket.hexes[0].links[0].extra.value("tags")?.text == #"["news","to read"]"#)
        #expect(pocket.hexes[0].links[1].extra.value("status")?.string == "archive")
        let raindrop = try Self.read("raindrop.csv").forest
        #expect(
            Self.outline(raindrop) == [
                "Work", "Work/Papers", "  A \"quoted\" page <https://example.org/a>", "Unsorted", "  Other <https://example.org/b>",
            ])
        #expect(raindrop.hexes[1].links[0].extra.value("note")?.string == "two\nlines")
        #expect(raindrop.hexes[1].links[0].extra.value("tags")?.text == #"["one","two"]"#)
    }

    @Test func listsAndFeeds() throws {
        let list = LinkList.read(Array("# mine\n\nhttps://example.org  a page\r\nnot one\nhttps://example.net\n".utf8), name: "links")
        #expect(Self.outline(list.forest) == ["links", "  a page <https://example.org>", "   <https://example.net>"])
        #expect(list.skipped == [FileReading.Skip(reason: .noLink, count: 1, items: [.init(line: 4, text: "not one")])])
        let opml = """
            <opml version="1.0"><head><title>Subscriptions</title></head><body>
            <outline text="News"><outline type="rss" text="A &amp; B" xmlUrl="https://a.example/feed" htmlUrl="https://a.example/"/></outline>
            <outline text="Loose" xmlUrl="https://b.example/feed"/></body></opml>
            """
        let feeds = OPML.read(Array(opml.utf8), name: "x").forest
        #expect(Self.outline(feeds) == ["News", "  A & B <https://a.example/>", "Subscriptions", "  Loose <https://b.example/feed>"])
        #expect(feeds.hexes[0].links[0].extra.value("feed")?.string == "https://a.example/feed")
    }

    @Test(
        "the format of a file is detected",
        arguments: [
            ("[{}]", "x", FileFormat.json), (" {\"links\":[]}", "x", .ndjson), ("<!DOCTYPE NETSCAPE-Bookmark-file-1>", "x", .html),
            ("\u{FEFF}<?xml version=\"1.0\"?><opml>", "x", .opml), ("title,url,tags\n", "x.txt", .csv),
            ("# A\n- [a](b:c)", "x.MD", .markdown),
            ("https://example.org", "x", .list), ("", "x.html", .html), ("<dl><dt>", "-", .html), ("a,b,c", "x", .list),
            ("[a](https://example.org)\n", "x.md", .markdown), ("[", "x", .json), ("[\n ]", "x", .json), ("\u{FEFF}{}", "x", .ndjson),
            ("\n\nURL;Title\n", "x", .csv), ("name\turl\r", "x", .csv), ("<?xml version=\"1.0\"?><rss></rss>", "x.xml", nil),
            ("<https://example.org>", "x", .list), ("<svg>", "x", nil), ("# Notes", "x", .list),
        ])
    func formats(text: String, name: String, format: FileFormat?) {
        #expect(FileFormat.of(Array(text.utf8), name: name) == format)
    }

    // MARK: Properties

    /// A random forest of up to 12 hexes in 8 levels.
    private static func forest(_ random: inout SeededGenerator) -> HexTree {
        let texts = [
            "", "a", "Größe 中文 👩‍👩‍👧", "<b>&amp;\"'", " led and trailed ", "a / b \\/ c", "tab\there\nline", "=1+1", "'-x",
            "\u{202E}rtl\u{1B}[2J",
            "&#65;&bogus;", "](<x>)[", "# no heading", "--> <!-- ]]>", "https://example.org/?a=b&c=d", "\u{0}", "x,y;z", "</A></DL>",
            "x;=1+cmd|'/c calc'!A1", "\u{A0}=1", ";; '\"@x", "\u{FF1D}1", "a;'=b;'c",
        ]
        func text() -> String { texts.randomElement(using: &random) ?? "" }
        func extra() -> [HexTree.Member] {
            [
                ("addDate", JSONValue("17")), ("tags", JSONValue(["a", "b c"])), ("tags", JSONValue(["x,y"])), ("note", JSONValue(text())),
                ("odd", JSONValue { $0.object { $0.member("deep", ["\u{9B}", "<"]) } }), ("toolbar", JSONValue(true)),
                ("keyword", JSONValue(text())), ("n", JSONValue { $0.raw("1.50") }),
            ].filter { _ in Int.random(in: 0..<4, using: &random) == 0 }.map { HexTree.Member($0.0, $0.1) }
        }
        var forest = HexTree()
        var levels: [Int] = []
        for index in 0..<Int.random(in: 1...12, using: &random) {
            let parent = index > 0 && Bool.random(using: &random) ? Int.random(in: 0..<index, using: &random) : nil
            let level = parent.map { levels[$0] + 1 } ?? 1
            let links = (0..<Int.random(in: 0...4, using: &random)).map { _ in
                HexTree.Link(
                    url: ["https://example.org/", "javascript:", ""].randomElement(using: &random).map { $0 + "x" + text() } ?? "",
                    title: text(),
                    service: ["", "Dropbox", text()].randomElement(using: &random) ?? "", extra: extra())
            }
            levels.append(level)
            forest.hexes.append(
                HexTree.Hex(
                    parent: level > 8 ? nil : parent, description: text(),
                    color: ["", "#336699", text()].randomElement(using: &random) ?? "",
                    senderUUID: text(), senderName: text(), extra: extra(), links: links))
        }
        return forest
    }

    /// A forest in file order, with members in a fixed order. The formats differ in the members that have a field of their own.
    private static func normal(_ forest: HexTree) -> [JSONValue] {
        var sorted = forest
        for index in sorted.hexes.indices {
            sorted.hexes[index].extra.sort { ($0.name, $0.value.text) < ($1.name, $1.value.text) }
            for link in sorted.hexes[index].links.indices {
                sorted.hexes[index].links[link].extra.sort { ($0.name, $0.value.text) < ($1.name, $1.value.text) }
                // A link without a title shows its URL as title.
                if sorted.hexes[index].links[link].title == sorted.hexes[index].links[link].url {
                    sorted.hexes[index].links[link].title = ""
                }
            }
        }
        let lists = sorted.childLists()
        return lists[sorted.hexes.count].map { sorted.json(of: $0, lists) }
    }

    @Test("HTML, OPML and JSON lose nothing", arguments: 0..<200) func roundTrips(seed: Int) throws {
        var random = SeededGenerator(seed: UInt64(seed))
        let forest = Self.forest(&random)
        let wanted = Self.normal(forest)
        #expect(Self.normal(BookmarkHTML.read(BookmarkHTML.write(forest), name: "x").forest) == wanted)
        #expect(Self.normal(OPML.read(OPML.write(forest), name: "x").forest) == wanted)
        let lines = wanted
        var again = HexTree()
        for element in try #require(try JSONValue(parsing: FileFormat.json.write(lines)).elements) { again.append(element) }
        #expect(Self.normal(again) == wanted)
    }

    @Test("exports are printable and contain no markup, formula or heading of a peer", arguments: 0..<100)
    func isClean(seed: Int) {
        var random = SeededGenerator(seed: UInt64(seed))
        let forest = Self.forest(&random)
        let lines = Self.normal(forest)
        for format in FileFormat.written {
            let text = String(decoding: format.write(lines), as: UTF8.self)
            for scalar in text.unicodeScalars where scalar != "\n" && scalar != "\r" {
                #expect(TerminalText.isShown(scalar), "\(format): \(scalar.value)")
            }
        }
        let html = String(decoding: FileFormat.html.write(lines), as: UTF8.self)
        #expect(!html.contains("<b>") && html.components(separatedBy: "</DL>").count == forest.hexes.count + 2)
        var rows = CSVRows(FileFormat.csv.write(lines))
        while let row = rows.next() {
            #expect(row.count == 8)
            for cell in row {
                // Some programs separate cells at `;`, even inside quotation marks.
                for part in cell.split(separator: ";") {
                    #expect(!(part.first { !$0.isWhitespace && $0 != "\"" }.map("=+-@\u{FF1D}".contains) ?? false), "\(cell)")
                }
            }
        }
        for part in String(decoding: FileFormat.csv.write(lines), as: UTF8.self).split(whereSeparator: { $0 == ";" || $0.isNewline }) {
            #expect(!(part.first { !$0.isWhitespace && $0 != "\"" }.map("=+-@\u{FF1D}".contains) ?? false), "\(part)")
        }
        #expect(
            !html.contains("HREF=\"javascript")
                && !String(decoding: FileFormat.markdown.write(lines), as: UTF8.self).contains("(<javascript"))
    }

    @Test(
        "a cell is unchanged by writing and reading",
        arguments: [
            "", "=1", "'=1", "''=1", "x;=1", "x;'=1", ";;", "; =1;'", "\u{A0}=1", "a'=", "'", "'a", "x;\"=1", "\u{FF1D}", "=\u{301}", "-5",
            "a - b",
        ])
    func cells(text: String) {
        let written = SpreadsheetText.written(text)
        #expect(SpreadsheetText.read(written).unicodeScalars.elementsEqual(text.unicodeScalars))
        var rows = CSVRows(Array("\(CSVRows.cell(written)),b".utf8))
        #expect(rows.next() == [written, "b"])
    }

    @Test func cellsAreQuoted() {
        #expect(CSVRows.cell("abc1") == "abc1" && CSVRows.cell("a b") == "\"a b\"" && CSVRows.cell("é") == "\"é\"")
        #expect(SpreadsheetText.written("x;=1+cmd|'/c calc'!A1") == "x;'=1+cmd|'/c calc'!A1")
        #expect(SpreadsheetText.written("x;\"=1") == "x;'\"=1" && SpreadsheetText.written("\u{A0}\u{FF1D}1") == "'\u{A0}\u{FF1D}1")
        #expect(SpreadsheetText.written("a;b=c") == "a;b=c")
    }

    @Test("javascript: links in a file are not clickable except in the user's own bookmarklets; none is lost")
    func clickable() throws {
        let urls = [
            "javascript:alert(1)", "JavaScript:alert(1)", " javascript:x", "java\tscript:x", "data:text/html,<b>", "vbscript:x",
            "file:///etc/passwd",
            "javascript&colon;x", "//example.org/", "hexlist:x>)", "x:`*_\\]",
        ]
        let good = ["https://example.org/", " HTTP://example.org/", "mailto:a@example.org", "ftp://example.org/"]
        let links = (urls + good).map { HexTree.Link(url: $0, title: "t[1]") } + [HexTree.Link(url: "javascript:untitled")]
        let forest = HexTree(hexes: [HexTree.Hex(description: "top", senderName: "Eve", links: links)])
        var mine = forest
        mine.hexes[0].senderName = ""
        for isMine in [false, true] {
            let html = BookmarkHTML.write(forest, isMine: isMine)
            #expect(String(decoding: html, as: UTF8.self).components(separatedBy: "HREF=").count == 1 + good.count)
            #expect(BookmarkHTML.read(html, name: "x").forest == forest)
            let markdown = LinkMarkdown.write(forest, isMine: isMine)
            #expect(String(decoding: markdown, as: UTF8.self).components(separatedBy: "](<").count == 1 + good.count)
            // Markdown does not keep white space.
            let read = LinkMarkdown.read(markdown, name: "x").forest.hexes[0].links
            func plain(_ url: String) -> String { url.trimmingCharacters(in: .whitespaces).replacing("\t", with: " ") }
            #expect(read.map { plain($0.url) } == links.map { plain($0.url) })
            #expect(read.map(\.title) == links.map(\.title))
        }
        // Without a sender only My Hexlist is the user's own, and nothing inside a received hex is.
        #expect(!String(decoding: BookmarkHTML.write(mine), as: UTF8.self).contains("HREF=\"java"))
        #expect(String(decoding: BookmarkHTML.write(mine, isMine: true), as: UTF8.self).contains("HREF=\"javascript:alert(1)\""))
        mine.hexes.insert(HexTree.Hex(description: "sent", senderUUID: "x"), at: 0)
        mine.hexes[1].parent = 0
        #expect(!String(decoding: BookmarkHTML.write(mine, isMine: true), as: UTF8.self).contains("HREF=\"java"))
        #expect(!String(decoding: LinkMarkdown.write(mine, isMine: true), as: UTF8.self).contains("(<java"))
    }

    @Test("CSV and Markdown keep links with titles and folders", arguments: 0..<100) func lossy(seed: Int) throws {
        var random = SeededGenerator(seed: UInt64(seed))
        var forest = Self.forest(&random)
        for index in forest.hexes.indices {
            forest.hexes[index].description = "Folder \(index), \\ / =1"
            forest.hexes[index].links = forest.hexes[index].links.enumerated().map {
                HexTree.Link(url: "https://example.org/\(index)/\($0.offset)?a=b", title: "=T_\($0.offset)*[x](y)")
            }
        }
        let wanted = Self.outline(forest).filter { $0.hasPrefix("  ") }.sorted()
        let csv = try #require(BookmarkCSV.read(BookmarkCSV.write(forest), name: "x"))
        #expect(Self.outline(csv.forest).filter { $0.hasPrefix("  ") }.sorted() == wanted)
        #expect(Set(csv.forest.hexes.map(\.description)) == Set(forest.hexes.map(\.description)))
        let markdown = LinkMarkdown.read(LinkMarkdown.write(forest), name: "x").forest
        #expect(Self.outline(markdown).filter { $0.hasPrefix("  ") }.sorted() == wanted)
    }

    // MARK: Bounds

    @Test("imported hexes can be sent: bounded links, levels and bytes, and none is lost")
    func divided() throws {
        var forest = HexTree(hexes: [HexTree.Hex(description: "top")])
        // A chain of 20 levels, a folder with 12 000 links, and 9 000 links across many folders.
        for level in 1..<20 {
            forest.hexes.append(HexTree.Hex(parent: level - 1, description: "level \(level)", links: [HexTree.Link(url: "a:\(level)")]))
        }
        forest.hexes.append(
            HexTree.Hex(parent: 0, description: "many", links: (0..<12_000).map { HexTree.Link(url: "https://example.org/\($0)") }))
        for folder in 0..<90 {
            forest.hexes.append(
                HexTree.Hex(parent: 0, description: "f\(folder)", links: (0..<100).map { HexTree.Link(url: "b:\(folder)/\($0)") }))
        }
        let lines = forest.divided()
        var urls: Set<String> = []
        for line in lines {
            var tree = HexTree()
            tree.append(line)
            #expect(tree.linkCount <= ProtocolLimits.links && line.bytes.count <= 1 << 20)
            var levels: [Int] = []
            for hex in tree.hexes { levels.append(1 + (hex.parent.map { levels[$0] } ?? 0)) }
            #expect(levels.max() ?? 0 <= 8)
            urls.formUnion(tree.hexes.flatMap { $0.links.map(\.url) })
        }
        #expect(urls.count == forest.linkCount)
        let names = lines.compactMap { line in line.members?.first { $0.name == "hexDescription" }?.value.string }
        #expect(names.contains("top / many (2)") && names.first == "top")
    }

    @Test("arbitrary bytes are read in bounded time", arguments: 0..<(LongTests.areWanted ? 300 : 60)) func hostile(seed: Int) throws {
        var random = SeededGenerator(seed: UInt64(seed))
        let pieces = [
            "<DL>", "</DL>", "<DT>", "<H3 ", "</H3>", "<A HREF=", "\"", "'", ">", "</A>", "<!--", "-->", "<![CDATA[", "]]>", "&#", "&amp",
            ";",
            "<outline ", "text=", "/>", "</outline>", ",", "\n", "#", "- [", "](", ")", "\\", "<", "\u{0}", "é", "url,title\n",
            "data-hexlist=",
            "{\"a\":", "<DD>", "<title>",
        ]
        var bytes: [UInt8] = []
        for _ in 0..<400 {
            if Int.random(in: 0..<10, using: &random) == 0 { bytes.append(UInt8.random(in: 0...255, using: &random)) }
            bytes += (pieces.randomElement(using: &random) ?? "").utf8
        }
        for format in FileFormat.allCases {
            guard let reading = format.read(bytes, name: "x") else { continue }
            for (index, hex) in reading.forest.hexes.enumerated() { #expect((hex.parent ?? -1) < index) }
            _ = reading.forest.divided()
        }
    }

    @Test(
        "a repetitive file is read in linear time", .offPool, .timeLimit(.minutes(20)),
        arguments: [
            "<DL>", "<H3>", "<A HREF=x:y>", "<!--", "&", "<a b", "<", "<outline>", "<outline text=a>", "\"", "a,b\n", "# a\n",
            "- [a](b:c)\n", "](", "<![CDATA[", "<DT><H3>a</H3><DL>",
        ]) func repeated(piece: String)
    {
        let bytes = Array(String(repeating: piece, count: LongTests.areWanted ? 20_000 : 10_000).utf8)
        for format in FileFormat.allCases { _ = format.read(Array("url\n".utf8) + bytes, name: "x")?.forest.divided() }
    }
}
