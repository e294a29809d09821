import HexlistModel
import Testing

@testable import hexlist

/// What people see in a terminal: columns line up whatever the text, and no text of a peer is obeyed.
@Suite("Text on a terminal")
struct TerminalTests {
    @Test(
        "columns a text takes",
        arguments: [
            ("", 0), ("abc", 3), ("é", 1), ("e\u{301}", 1), ("日本", 4), ("ﾊ", 1), ("한", 2), ("👍", 2), ("👩‍👩‍👧", 2), ("☎\u{FE0F}", 2),
            ("ا", 1), ("a\u{200D}b", 2),
        ])
    func width(text: String, columns: Int) { #expect(TextWidth.of(text) == columns) }

    @Test(
        "a text is cut between whole characters, and says so",
        arguments: [
            ("abc", 3, "abc"), ("abcd", 3, "ab…"), ("日本語", 5, "日本…"), ("日本語", 4, "日…"), ("日本語", 6, "日本語"), ("abc", 1, "…"),
            ("e\u{301}e\u{301}e\u{301}", 2, "e\u{301}…"), ("", 5, ""),
        ])
    func cut(text: String, columns: Int, expected: String) {
        let cut = TextWidth.cut(text, columns: columns)
        #expect(cut == expected)
        #expect(TextWidth.of(cut) <= columns)
    }

    @Test("columns line up, the last is not padded, empty cells at the end leave nothing behind")
    func table() {
        var table = Table(["ID", "NAME", "WHY"])
        table.add([Table.Cell("1"), Table.Cell("日本"), Table.Cell("a")])
        table.add([Table.Cell("100"), Table.Cell("x"), Table.Cell("")])
        // Not a terminal: no colours.
        let lines = table.lines(Terminal(descriptor: -1))
        #expect(lines == ["ID   NAME  WHY", "1    日本  a", "100  x"])
    }

    @Test("a line may begin in colour, and neither part of it is obeyed")
    func colour() {
        let terminal = Terminal(isInteractive: true, hasColor: true, width: 80)
        #expect(terminal.line("failed", .failure, "  a\u{1B}[1mb") == "\u{1B}[31mfailed\u{1B}[0m  a\u{FFFD}[1mb")
        #expect(terminal.line("a\u{1B}", .plain, "") == "a\u{FFFD}")
        #expect(Terminal(descriptor: -1).line("failed", .failure, "  a") == "failed  a")
    }

    @Test("a cell shows a hostile text and never obeys it")
    func hostile() {
        let cell = Table.Cell("\u{1B}[2Ja\u{202E}b\nc\u{7}")
        #expect(!cell.text.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x202E })
        let marks = "a" + String(repeating: "\u{301}", count: 100_000)
        #expect(Table.Cell(marks, columns: 10).text.utf8.count <= 160 + "…".utf8.count)
    }

    @Test(
        "a word for a shell",
        arguments: [
            ("ada", "ada"), ("5E3C-12", "5E3C-12"), ("Ada's laptop", #"'Ada'\''s laptop'"#), ("", "''"), ("$(x)", "'$(x)'"),
            ("a;b", "'a;b'"),
        ])
    func shell(word: String, quoted: String) { #expect(ShellText.quoted(word) == quoted) }
}

@Suite("Links as people type them")
struct LinkInputTests {
    @Test(
        "URL, then white space, then the description",
        arguments: [
            ("https://example.org", "https://example.org", ""), ("  u  the  page  ", "u", "the  page"), ("u\ttab", "u", "tab"),
            ("u\u{3000}wide", "u", "wide"), ("日本 語", "日本", "語"),
        ])
    func link(text: String, url: String, description: String) throws {
        let link = try #require(LinkInput(text))
        #expect((link.url, link.description) == (url, description))
    }

    @Test("nothing but white space is no link", arguments: ["", " ", "\t\n", "\u{A0}"])
    func blank(text: String) { #expect(LinkInput(text) == nil) }
}
