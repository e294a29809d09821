import HexlistJSON
import HexlistModel
import TestSupport
import Testing

@testable import HexlistFormats

/// JSON files: exported hexes are read unchanged, and JSON of other programs is never taken for hexes.
@Suite("JSON files") struct JSONFileTests {
    private static func read(_ text: String) throws(JSONFile.Fault) -> JSONFile { try JSONFile(Array(text.utf8), name: "file") }

    private static let hexes = [
        #"{"hexDescription":"a \"{[ \\","hexColor":"","links":[{"url":"https://a.example/","tags":["x y","z"],"n":1.50}],"children":[{"links":[]}]}"#,
        #"{"hexDescription":"text\nalone","hexColor":"teal","links":[]}"#, #"{"links":["https://b.example/",{"url":"c:d"}]}"#,
    ]

    /// A value as `jq .` prints it.
    private static func printed(_ json: String, end: String) -> String {
        var (text, depth, isInString, isEscaped) = ("", 0, false, false)
        func line() -> String { end + String(repeating: "  ", count: depth) }
        for character in json {
            if isInString {
                isInString = isEscaped || character != "\""
                isEscaped = !isEscaped && character == "\\"
                text.append(character)
                continue
            }
            switch character {
            case "{", "[":
                depth += 1
                text += "\(character)" + line()
            case "}", "]":
                depth -= 1
                text += line() + "\(character)"
            case ",": text += "," + line()
            case ":": text += ": "
            default:
                isInString = character == "\""
                text.append(character)
            }
        }
        return text
    }

    @Test("exported hexes are read, one per line or pretty-printed", arguments: ["\n", "\r\n", "\r"])
    func own(end: String) throws {
        let printed = Self.hexes.map { Self.printed($0, end: end) }
        let array = "[" + Self.hexes.joined(separator: ",") + "]"
        let texts: [String] = [
            Self.hexes.joined(separator: end), Self.hexes.joined(separator: end + end) + end, array, Self.printed(array, end: end),
            printed.joined(separator: end), printed.joined(), "  " + printed.joined(separator: " ") + " \t",
        ]
        for text in texts {
            let file = try Self.read(text)
            #expect(file.hexes.map(\.text) == Self.hexes && file.skipped.isEmpty && file.bookmarks == nil)
        }
    }

    @Test(
        "exports of services are read, printed or not",
        arguments: [
            (
                #"{"list":{"1":{"item_id":"1","given_url":"https://a.example/","given_title":"","resolved_title":"A","status":"0","time_added":"1672913472","tags":{"db":{"tag":"db"},"c":{}}},"2":{"item_id":"2","resolved_url":"https://b.example/","status":"1","excerpt":"e"}},"status":1}"#,
                ["file", "  A <https://a.example/> addDate=1672913472 tags=[\"db\",\"c\"]", "Archive", "   <https://b.example/> excerpt=e"]
            ),
            (
                #"{"items":[{"link":"https://a.example/","title":"t","excerpt":"","note":"n","tags":["x y"],"created":"2023-01-05T10:11:12.345Z"}],"result":true}"#,
                ["file", "  t <https://a.example/> addDate=1672913472 tags=[\"x y\"] note=n"]
            ),
            (
                #"[{"type":"user","user_id":1},{"type":"bookmark","bookmark_id":1,"url":"https://a.example/","title":"t","time":1672913472.5}]"#,
                ["file", "  t <https://a.example/> addDate=1672913472"]
            ),
            (
                #"[{"is_archived":0,"url":"https://a.example/","title":"t","tags":["a"],"created_at":"2023-01-05T11:11:12+0100"},{"is_archived":1,"url":"https://b.example/"}]"#,
                ["file", "  t <https://a.example/> addDate=1672913472 tags=[\"a\"]", "Archive", "   <https://b.example/>"]
            ),
            (
                #"{"page":1,"_embedded":{"items":[{"is_archived":0,"url":"https://a.example/","tags":[{"label":"l","slug":"s"}]}]}}"#,
                ["file", "   <https://a.example/> tags=[\"l\"]"]
            ),
            (
                #"{"id":1,"username":"a","collections":[{"name":"c","links":[{"url":"https://a.example/","name":"n","tags":[{"name":"x"}],"description":"d"}]},{"name":"e","links":[]}]}"#,
                ["c", "  n <https://a.example/> tags=[\"x\"] note=d", "e"]
            ),
            (
                #"[{"id":1,"name":"c","links":[{"url":"https://a.example/","name":"n"}]}]"#, ["c", "  n <https://a.example/>"]
            ),
            (
                #"{"bookmarks":[{"createdAt":1672913472,"title":"t","tags":["a"],"note":"n","content":{"type":"link","url":"https://a.example/"}}]}"#,
                ["file", "  t <https://a.example/> addDate=1672913472 tags=[\"a\"] note=n"]
            ),
            (
                #"{"count":1,"next":null,"results":[{"url":"https://a.example/","title":"","website_title":"w","tag_names":["a","b"],"notes":"","description":"d","date_added":"2023-01-05T10:11:12Z"}]}"#,
                ["file", "  w <https://a.example/> addDate=1672913472 tags=[\"a\",\"b\"] note=d"]
            ),
            (
                #"{"bookmarks":[{"article__url":"https://a.example/","article__title":"t","archive":true}],"recommendations":[]}"#,
                ["Archive", "  t <https://a.example/>"]
            ),
            (
                #"{"posts":[{"href":"https://a.example/","tag":"x y","time":"2023-01-05T10:11:12Z","description":"t"}]}"#,
                ["file", "  t <https://a.example/> addDate=1672913472 tags=[\"x\",\"y\"]"]
            ),
            (
                #"{"posts":[{"post":{"href":"https://a.example/","description":"t","tag":"x"}}]}"#,
                ["file", "  t <https://a.example/> tags=[\"x\"]"]
            ),
            (#"{"links":[{"href":"https://a.example/"}]}"#, ["file", "   <https://a.example/>"]),
            (
                #"[{"id":1,"url":"https://a.example/","shorturl":"x","title":"t","tags":["a"],"description":"d"}]"#,
                ["file", "  t <https://a.example/> tags=[\"a\"] note=d"]
            ),
            (
                #"{"windows":[{"tabs":[{"index":1,"entries":[{"url":"https://a.example/","title":"A"},{"url":"https://b.example/"}]},{"entries":[]}]}],"selectedWindow":1}"#,
                ["file", "  A <https://a.example/>"]
            ),
            (
                #"{"sessions":[{"name":"s","windows":[{"tabs":[{"url":"https://a.example/","title":"A"}]}]}]}"#,
                ["s", "s/", "  A <https://a.example/>"]
            ),
            (
                #"{"format":"nxs.json.v2","collections":[{"title":"c","folders":[{"title":"f","links":[{"url":"https://a.example/","title":"A"}]}]}]}"#,
                ["c", "c/f", "  A <https://a.example/>"]
            ),
        ])
    func services(text: String, outline: [String]) throws {
        for text in [text, Self.printed(text, end: "\n"), Self.printed(text, end: "\r\n")] {
            #expect(Self.outline(try Self.read(text).bookmarks) == outline)
        }
    }

    @Test("entries of a service without an address are left out, by their lines")
    func withoutAddress() throws {
        let text = #"""
            {"bookmarks":[
            {"createdAt":1,"title":"a","content":{"type":"link","url":"https://a.example/"}},
            {"createdAt":1,"title":"text","content":{"type":"text","text":"x"}},
            {"createdAt":1,"title":null,"content":null},
            7]}
            """#
        let bookmarks = try #require(try Self.read(text).bookmarks)
        #expect(bookmarks.forest.linkCount == 1)
        #expect(bookmarks.skipped.map(\.reason) == [.noLink] && bookmarks.skipped[0].items.map(\.line) == [3, 4, 5])
    }

    @Test(
        "unknown JSON is refused, and never becomes hexes",
        arguments: [
            "{}", "[{}]", "[1,2]", "\"text\"", "17", #"{"a":{"b":[]}}"#, #"["https://a.example/"]"#, #"{"links":{"a":1}}"#,
            #"{"title":"x","links":[{"url":"a:b"}]}"#, #"{"hexDescription":1}"#, "{}\n{}\n", #"{"children":[{"title":"x"}]}"#, "null",
        ])
    func unknown(text: String) { #expect(throws: JSONFile.Fault.unknown) { try Self.read(text) } }

    @Test("an invalid line among hexes is omitted and named")
    func mixed() throws {
        let file = try Self.read("\(Self.hexes[0])\n\n{\"a\":1}\n[2,\n{\"links\":[]}]")
        #expect(file.hexes.map(\.text) == [Self.hexes[0], #"{"links":[]}"#])
        #expect(
            file.skipped == [
                FileReading.Skip(reason: .noHex, count: 2, items: [.init(line: 3, text: #"{"a":1}"#), .init(line: 4, text: "2")])
            ])
    }

    @Test(
        "a syntax error is reported with its line",
        arguments: [
            ("{\"links\":[]}\n{\n", 2), ("[\n  {\"links\": [\n  \"a:b\",]}\n]", 3), ("{\"links\":[\"a\n\"]}", 1), ("{\"links\":[]}}", 1),
            ("nope", 1),
            ("{\"links\":[]}\n\n{\"links\":[\"\\x\"]}", 3), ("[", 1),
        ])
    func grammar(text: String, line: Int) {
        let fault = #expect(throws: JSONFile.Fault.self) { try Self.read(text) }
        guard case .grammar(_, line: line) = fault else {
            Issue.record("\(String(describing: fault))")
            return
        }
    }

    // MARK: Bookmarks

    private static func outline(_ reading: FileReading?) -> [String] {
        guard let forest = reading?.forest else { return [] }
        func members(_ extra: [HexTree.Member]) -> String { extra.map { " \($0.name)=\($0.value.string ?? $0.value.text)" }.joined() }
        return forest.hexes.flatMap { hex in
            let parent = hex.parent.map { "\(forest.hexes[$0].description)/" } ?? ""
            return ["\(parent)\(hex.description)\(members(hex.extra))"] + hex.links.map { "  \($0.title) <\($0.url)>\(members($0.extra))" }
        }
    }

    @Test("a backup of Firefox")
    func firefox() throws {
        let text = """
            {"guid":"root________","title":"","typeCode":2,"root":"placesRoot","type":"text/x-moz-place-container","children":[
            {"guid":"menu________","title":"menu","typeCode":2,"children":[
            {"title":"One","dateAdded":1388166091504000,"typeCode":1,"type":"text/x-moz-place","tags":"db,c","keyword":"k","uri":"https://a.example/"},
            {"title":"","typeCode":3,"type":"text/x-moz-place-separator"},
            {"title":"Deep","type":"text/x-moz-place-container","children":[{"title":"https://b.example/","type":"text/x-moz-place","uri":"https://b.example/",
            "annos":[{"name":"bookmarkProperties/description","value":"a note"}]}]},
            {"title":"Recent","typeCode":1,"uri":"place:sort=12"}]},
            {"guid":"toolbar_____","title":"toolbar","type":"text/x-moz-place-container"},
            {"title":"Loose","typeCode":1,"uri":"https://c.example/"}]}
            """
        for text in [text, text.replacing("\n", with: ""), Self.printed(text.replacing("\n", with: ""), end: "\n")] {
            let bookmarks = try #require(try Self.read(text).bookmarks)
            #expect(
                Self.outline(bookmarks) == [
                    "menu", "  One <https://a.example/> addDate=1388166091 tags=[\"db\",\"c\"] keyword=k", "menu/Deep",
                    "   <https://b.example/> note=a note",
                    "toolbar toolbar=true", "file", "  Loose <https://c.example/>",
                ])
            #expect(bookmarks.skipped.map(\.reason) == [.query])
        }
    }

    @Test("the bookmarks of Chromium")
    func chromium() throws {
        let text = """
            {"checksum":"x","roots":{"bookmark_bar":{"children":[{"date_added":"13343042088123456","name":"One","type":"url","url":"https://a.example/"},
            {"children":[{"name":"Two","type":"url","url":"https://b.example/","date_last_used":"0"},{"name":"none","type":"url"}],"date_added":"0","name":"F","type":"folder"}],
            "name":"Bookmarks bar","type":"folder"},"other":{"children":[],"name":"Other","type":"folder"},"sync_transaction_version":"1"},"version":1}
            """
        let bookmarks = try #require(try Self.read(text).bookmarks)
        #expect(
            Self.outline(bookmarks) == [
                "Bookmarks bar toolbar=true", "  One <https://a.example/> addDate=1698568488", "Bookmarks bar/F",
                "  Two <https://b.example/>",
            ])
        #expect(bookmarks.skipped == [FileReading.Skip(reason: .noLink, count: 1, items: [.init(line: 2, text: "none")])])
    }

    @Test("the bookmarks of Pinboard")
    func pinboard() throws {
        let text = """
            [{"href":"https://a.example/","description":"A","extended":"e","meta":"m","time":"2023-01-05T10:11:12Z","shared":"no","toread":"yes","tags":"a b"},
            {"href":"","description":"none"}]
            """
        let bookmarks = try #require(try Self.read(text).bookmarks)
        #expect(
            Self.outline(bookmarks) == [
                "file", "  A <https://a.example/> addDate=1672913472 tags=[\"a\",\"b\"] note=e shared=no toread=yes",
            ])
        #expect(bookmarks.skipped.first?.items == [.init(line: 2, text: "none")])
    }

    @Test("arbitrary bytes are read as JSON, hexes or an error", arguments: 0..<300)
    func hostile(seed: Int) {
        var random = SeededGenerator(seed: UInt64(seed))
        let pieces = [
            "{", "}", "[", "]", ",", ":", "\"", "\\", "\n", "\"links\":[", "\"url\":\"a:b\"", "\"hexDescription\":\"", "\"children\":[",
            "\"uri\":\"a:b\"", "\"guid\":1",
            "\"roots\":{\"other\":", "null", "1e999", "99999999999999999999", "\"href\":\"a:b\",\"description\":1", "\u{0}", "\r", " ",
        ]
        var text = ""
        for _ in 0..<Int.random(in: 1...60, using: &random) { text += pieces.randomElement(using: &random) ?? "" }
        if let file = try? Self.read(text) {
            for hex in file.hexes { #expect(!hex.bytes.contains(0x0A)) }
            _ = file.bookmarks?.forest.divided()
        }
    }

    @Test("nesting depth is bounded", arguments: ["[", "{\"children\":[", "{\"a\":"])
    func deep(piece: String) {
        #expect(throws: JSONFile.Fault.self) { try Self.read(String(repeating: piece, count: 100_000)) }
    }
}
