import ArgumentParser
import HexlistModel
import Testing

@testable import hexlist

/// Output on a terminal: columns line up for any text, and control characters of peers are replaced.
@Suite("Text on a terminal")
struct TerminalTests {
    @Test(
        "the width of a text in columns",
        arguments: [
            ("", 0), ("abc", 3), ("é", 1), ("e\u{301}", 1), ("日本", 4), ("ﾊ", 1), ("한", 2), ("👍", 2), ("👩‍👩‍👧", 2), ("☎\u{FE0F}", 2),
            ("ا", 1), ("a\u{200D}b", 2), ("👍🏽", 2), ("🇩🇪", 2), ("각", 2), ("が", 2), ("✅", 2), ("🌡", 1), ("→", 1),
        ])
    func width(text: String, columns: Int) { #expect(TextWidth.of(text) == columns) }

    @Test(
        "a text is cut between characters, and the cut is visible",
        arguments: [
            ("abc", 3, "abc"), ("abcd", 3, "ab…"), ("日本語", 5, "日本…"), ("日本語", 4, "日…"), ("日本語", 6, "日本語"), ("abc", 1, "…"),
            ("e\u{301}e\u{301}e\u{301}", 2, "e\u{301}…"), ("", 5, ""),
        ])
    func cut(text: String, columns: Int, expected: String) {
        let cut = TextWidth.cut(text, columns: columns)
        #expect(cut == expected)
        #expect(TextWidth.of(cut) <= columns)
    }

    @Test("columns line up; the last is not padded, and trailing empty cells add nothing")
    func table() {
        var table = Table(["ID", "NAME", "WHY"])
        table.add([Table.Cell("1"), Table.Cell("日本"), Table.Cell("a")])
        table.add([Table.Cell("100"), Table.Cell("x"), Table.Cell("")])
        // Descriptor `-1` is not a terminal: no colours.
        let lines = table.lines(Terminal(descriptor: -1))
        #expect(lines == ["ID   NAME  WHY", "1    日本  a", "100  x"])
    }

    @Test("a line may begin in colour; control characters are replaced in both parts")
    func colour() {
        let terminal = Terminal(isInteractive: true, hasColor: true, width: 80)
        #expect(terminal.line("failed", .failure, "  a\u{1B}[1mb") == "\u{1B}[31mfailed\u{1B}[0m  a\u{FFFD}[1mb")
        #expect(terminal.line("a\u{1B}", .plain, "") == "a\u{FFFD}")
        #expect(Terminal(descriptor: -1).line("failed", .failure, "  a") == "failed  a")
    }

    @Test("control characters in a cell are replaced")
    func hostile() {
        let cell = Table.Cell("\u{1B}[2Ja\u{202E}b\nc\u{7}")
        #expect(!cell.text.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x202E })
        let marks = "a" + String(repeating: "\u{301}", count: 100_000)
        var table = Table()
        table.add([Table.Cell(marks, columns: 10), Table.Cell("b")])
        #expect((table.lines(Self.terminal(40)).first?.utf8.count ?? 0) < 200)
    }

    private static func terminal(_ width: Int?) -> Terminal { Terminal(isInteractive: width != nil, hasColor: false, width: width) }

    private static let list: Table = {
        var table = Table(["HEX", "FROM", "LINKS", "DESCRIPTION"])
        table.add([
            Table.Cell("7"), Table.Cell("Bob 0C6F1B22 (stranger)"), Table.Cell(count: 2), Table.Cell("the 日本 page on trains", minimum: 12),
        ])
        table.add([Table.Cell("12"), Table.Cell("ada"), Table.Cell(count: 1), Table.Cell("–")])
        return table
    }()

    @Test("a pipe gets complete texts, however long", arguments: [1, 61, 300])
    func pipe(length: Int) {
        var table = Table(["A", "B"])
        table.add([Table.Cell(String(repeating: "x", count: length)), Table.Cell(String(repeating: "y", count: 5_000))])
        table.add([Table.Cell("1"), Table.Cell("2")])
        let lines = table.lines(Self.terminal(nil))
        #expect(lines[1] == String(repeating: "x", count: length) + "  " + String(repeating: "y", count: 5_000))
        // A long cell makes its column at most as wide as the screen.
        #expect(lines[2].utf8.count == min(60, max(1, length)) + 3)
    }

    @Test("a narrow terminal first cuts flexible cells, then wraps rows; no line is too long")
    func narrow() {
        #expect(Self.list.lines(Self.terminal(80))[1] == "7    Bob 0C6F1B22 (stranger)  2      the 日本 page on trains")
        #expect(Self.list.lines(Self.terminal(51))[1] == "7    Bob 0C6F1B22 (stranger)  2      the 日本 page…")
        #expect(
            Self.list.lines(Self.terminal(40)) == [
                "7  Bob 0C6F1B22 (stranger)  links 2", "  the 日本 page on trains", "12  ada  links 1",
            ])
        for width in 20...90 {
            #expect(Self.list.lines(Self.terminal(width)).allSatisfy { TextWidth.of($0) <= width }, "\(width)")
        }
    }

    @Test("a long last column is wrapped below itself") func lastColumn() {
        var table = Table(["ID", "HEX", "WHY"])
        table.add([Table.Cell("7"), Table.Cell("a title that is long", columns: 40, minimum: 12), Table.Cell("")])
        table.add([
            Table.Cell("12"), Table.Cell("Trains"), Table.Cell("the peer is offline; next at 12:00; the connection was lost", columns: 400),
        ])
        #expect(
            table.lines(Self.terminal(48)) == [
                "ID  HEX                 WHY", "7   a title that is l…", "12  Trains              the peer is offline;",
                "                        next at 12:00; the", "                        connection was lost",
            ])
        for width in 20...90 { #expect(table.lines(Self.terminal(width)).allSatisfy { TextWidth.of($0) <= width }, "\(width)") }
    }

    @Test("a count follows its column's name; digits that are a name do not")
    func counts() {
        var table = Table(["NAME", "UUID", "UNREAD", "HELD", "ADDRESS"])
        table.add([
            .init("cyd"), .init("05719253"), .init(count: 2), .init(count: 0, none: "–"), .init("[2001:db8:1:2:3:4:5:6]:47100"),
        ])
        #expect(table.lines(Self.terminal(40)) == ["cyd  05719253  unread 2", "  [2001:db8:1:2:3:4:5:6]:47100"])
    }

    @Test("values are wrapped below themselves")
    func values() {
        var table = Table()
        table.add("name", "ada")
        table.add("daemon", "hexlistd 1.0.0, pid 12345, up 3 h 5 min")
        #expect(table.lines(Self.terminal(32)) == ["name    ada", "daemon  hexlistd 1.0.0, pid", "        12345, up 3 h 5 min"])
        // A value that does not fit beside its name goes below it, uncut.
        table.add("uuid", "CF6A0262-1BE8-8351-87AE-E58794DEBA2C")
        #expect(table.lines(Self.terminal(40)).suffix(2) == ["uuid", "  CF6A0262-1BE8-8351-87AE-E58794DEBA2C"])
        for width in 20...60 { #expect(table.lines(Self.terminal(width)).allSatisfy { TextWidth.of($0) <= width }, "\(width)") }
    }

    @Test(
        "words are wrapped; a longer one is broken",
        arguments: [
            ("a b c", 3, ["a b", "c"]), ("", 5, [""]), ("abcdef", 4, ["abcd", "ef"]), ("a bcdefg h", 4, ["a", "bcde", "fg h"]),
            ("日本語 x", 4, ["日本", "語 x"]), ("  a b", 9, ["  a b"]), ("    a bc  d", 7, ["   a bc", "d"]), ("a  b", 9, ["a  b"]),
            (" ", 5, [""]), ("run `a b` or `c d` now", 9, ["run `a b`", "or `c d`", "now"]), ("(`a b`), `c` d", 8, ["(`a b`),", "`c` d"]),
            ("run `abc def ghi` x", 9, ["run `abc", "def ghi`", "x"]), ("a` b c d", 4, ["a` b", "c d"]),
        ])
    func words(text: String, columns: Int, lines: [String]) { #expect(TextWidth.lines(text, columns: columns) == lines) }

    @Test("a truncated list names the command for the rest")
    func more() {
        #expect(NextPageHint.text("11", ["/usr/bin/hexlist", "inbox", "--limit", "4"]) == "More: hexlist inbox --limit 4 --after 11")
        #expect(
            NextPageHint.text("7", ["hexlist", "search", "a b", "--after", "11", "--after=12"])
                == "More: hexlist search 'a b' --after 7")
    }

    @Test("help is wrapped to the terminal; no paragraph keeps a line break of the source")
    func help() {
        var commands: [any ParsableCommand.Type] = [Hexlist.self]
        var seen = 0
        while let command = commands.popLast() {
            commands += command.configuration.subcommands
            seen += 1
            for paragraph in command.configuration.discussion.split(separator: "\n\n") {
                #expect(!paragraph.contains("\n"), "\(command.configuration.commandName ?? ""): \(paragraph)")
            }
        }
        #expect(seen > 20)
    }

    @Test(
        "a word is quoted for a shell",
        arguments: [
            ("ada", "ada"), ("5E3C-12", "5E3C-12"), ("Ada's laptop", #"'Ada'\''s laptop'"#), ("", "''"), ("$(x)", "'$(x)'"),
            ("a;b", "'a;b'"), ("'\u{301}; x", "''\\''\u{301}; x'"),
        ])
    func shell(word: String, quoted: String) { #expect(ShellText.quoted(word) == quoted) }
}

@Suite("Links as typed")
struct LinkInputTests {
    @Test(
        "a URL, white space, then the description",
        arguments: [
            ("https://example.org", "https://example.org", ""), ("  u  the  page  ", "u", "the  page"), ("u\ttab", "u", "tab"),
            ("u\u{3000}wide", "u", "wide"), ("日本 語", "日本", "語"),
        ])
    func link(text: String, url: String, description: String) throws {
        let link = try #require(LinkInput(text))
        #expect((link.url, link.description) == (url, description))
    }

    @Test("white space is not a link", arguments: ["", " ", "\t\n", "\u{A0}"])
    func blank(text: String) { #expect(LinkInput(text) == nil) }
}
