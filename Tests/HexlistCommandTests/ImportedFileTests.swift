import HexlistAPI
import HexlistModel
import Testing

@testable import hexlist

@Suite("Imported files") struct ImportedFileTests {
    private static func error(_ bytes: [UInt8], _ path: String = "x") -> HexlistError? {
        #expect(throws: HexlistError.self) { try ImportedFile(bytes, path: path, format: nil) }
    }

    @Test("omitted entries are counted; the first five are named by line")
    func skipped() throws {
        let text = "https://a.example/\nlocalhost:80\n" + (1...7).map { "text \($0)\n" }.joined()
        let file = try ImportedFile(Array(text.utf8), path: "links.txt", format: nil)
        #expect(file.links == 1 && file.lines.count == 1 && file.hasFolders)
        #expect(
            file.skipped.map(ImportText.skipped) == [
                "Skipped: line 2 `localhost:80` has no scheme, as https:// is one.",
                "Skipped 7 entries, each has no link: line 3 `text 1`, line 4 `text 2`, line 5 `text 3`, line 6 `text 4`, line 7 `text 5`, and 2 more.",
            ])
    }

    @Test("a binary file or another encoding is reported as such")
    func encodings() throws {
        #expect(Self.error([0x89, 0x50, 0x4E, 0x47, 0, 0xFF])?.message == "x is not a text file.")
        let broken = Self.error(Array("日本\nb\n".utf8) + [0x63, 0xE9, 0x0A])
        #expect(broken?.message == "x has 1 line that is not UTF-8: line 3 `c\u{FFFD}`.")
        #expect(broken?.hint?.contains("iconv") == false)
        #expect(Self.error([0x63, 0xE9, 0x0A, 0xE9])?.hint?.contains("WINDOWS-1252") == true)
        let japanese = Self.error(Array("<META CHARSET=\"Shift_JIS\">".utf8) + [0x93, 0xFA])
        #expect(japanese?.hint == "Convert it: `iconv -f SHIFT_JIS -t UTF-8`.")
        let utf16 = try ImportedFile(
            [0xFF, 0xFE] + "https://a.example/\n".utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }, path: "-", format: nil)
        #expect(utf16.links == 1 && utf16.encoding == "UTF-16")
    }

    @Test(
        "another program's file is refused in one sentence",
        arguments: [
            ("[{}]", "x is JSON, but not of Hexlist or a known browser or service."),
            ("{\"links\":[]}\n{\n", "x, line 2, is not valid JSON: a member name is expected."),
            ("", "x is empty."),
            ("\u{FEFF}", "x is empty."),
            (" \r\n\t\n", "x is empty (only blank lines)."),
            ("https://a.example/\0", "x is not a text file."),
            ("<?xml version=\"1.0\"?><feed/>", "x is XML or HTML, but neither OPML, XBEL nor bookmarks."),
        ])
    func refused(text: String, message: String) {
        #expect(Self.error(Array(text.utf8))?.message == message)
    }

    @Test("CSV without a URL column is refused; the message lists its columns safely")
    func noColumn() {
        let text = "name,address\u{1B}[2J," + (1...9).map { "c\($0)" }.joined(separator: ",") + "\nx,y\n"
        let error = #expect(throws: HexlistError.self) { try ImportedFile(Array(text.utf8), path: "x.csv", format: nil) }
        #expect(
            error?.message.hasPrefix("x.csv has no column of addresses. Its columns are `name`, `address") == true)
        #expect(error?.message.hasSuffix("`c6`, and 3 more.") == true && error?.message.contains("\u{1B}") == false)
        #expect(error?.hint?.contains("`url`, `link`, `href`") == true)
    }

    @Test(
        "the summary counts hexes and links at all levels",
        arguments: [
            (ImportResult(added: 4, addedInside: 2), "4 hexes with 2 inside them added to My Hexlist; the file has 9 links."),
            (ImportResult(added: 1, addedInside: 1), "1 hex with 1 inside it added to My Hexlist; the file has 9 links."),
            (
                ImportResult(unchanged: 1, extended: 1, newHexes: 1, newLinks: 2),
                "0 hexes added to My Hexlist, 1 new hex and 2 new links added to 1 existing hex, 1 unchanged; the file has 9 links."
            ),
            (
                ImportResult(extended: 2, newHexes: 3),
                "0 hexes added to My Hexlist, 3 new hexes added to 2 existing hexes; the file has 9 links."
            ),
        ])
    func summary(result: ImportResult, text: String) { #expect(ImportText.summary(result, links: 9) == text) }

    @Test(
        "the first line shows which command an input is for",
        arguments: [
            ("https://a.example/", InputKindCheck.link), ("\u{FEFF}\n - <https://a.example/> x\ny", .link), ("<https://a.example/>", .link),
            ("<!DOCTYPE html>\n", .markup), ("\n <opml>", .markup), ("<feed/>", .markup), (#"{"links":["https://a.example/"]}"#, .other),
            (#"[{"url":"https://a.example/"}]"#, .other), ("nonsense", .other), ("", .other),
        ])
    func firstLine(text: String, expected: InputKindCheck) {
        #expect(InputKindCheck(text.utf8) == expected)
        #expect((InputKindCheck(text.utf8).bulkHint == nil) == (expected == .other))
    }

    @Test("browser bookmarks in JSON are folders; exported hexes are hexes")
    func json() throws {
        let chromium = #"{"roots":{"bookmark_bar":{"children":[{"url":"https://a.example/","name":"A"}],"name":"Bar"}}}"#
        let file = try ImportedFile(Array(chromium.utf8), path: "Bookmarks", format: nil)
        #expect(file.hasFolders && file.links == 1)
        let own = try ImportedFile(Array("[\n {\"hexDescription\":\"a\",\n\"links\":[\"a:b\"]}]".utf8), path: "x.json", format: nil)
        #expect(!own.hasFolders && own.lines.map(\.text) == [#"{"hexDescription":"a","links":["a:b"]}"#])
    }

    @Test("links with the address of another link are named")
    func sameAddresses() throws {
        let text = "https://a.example\nhttps://A.example/#top\nhttps://b.example\n"
        let file = try ImportedFile(Array(text.utf8), path: "links.txt", format: nil)
        #expect(file.repeated.count == 1 && file.repeated.first == ["https://A.example/#top"])
        #expect(ImportText.repeated(file.repeated) == "1 link has the address of an earlier link in the file: `https://A.example/#top`.")
        #expect(ImportText.repeated(.init()) == nil && ImportText.respelled(ImportResult()) == nil)
        let result = ImportResult(
            unchanged: 1, respelled: 2, respellings: [EquivalentLinkJSON(url: "https://A.example", stored: "https://a.example")])
        #expect(
            ImportText.respelled(result) == "Left out, same address: `https://A.example` (has `https://a.example`), and 1 more.")
        #expect(ImportText.summary(result, links: 2).contains("2 links left out because the hex has the address in another spelling"))
    }
}
