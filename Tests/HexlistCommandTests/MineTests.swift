import ArgumentParser
import HexlistAPI
import HexlistModel
import Testing

@testable import hexlist

/// The `mine` commands: arguments, and links as editable lines.
@Suite("My Hexlist on the command line")
struct MineTests {
    private let links = [
        LinkJSON(url: "https://a.example", linkDescription: "A page"), LinkJSON(url: "https://b.example"),
        LinkJSON(url: "https://a.example", linkDescription: "again"), LinkJSON(url: "x\ny z", linkDescription: "\u{1B}[31mred"),
        LinkJSON(url: "#odd"), LinkJSON(url: ""),
    ]

    private func edits(_ lines: [String]) throws -> [LinkEdit] {
        try MineText.edits((lines + [""]).joined(separator: "\n"), of: links, from: "file")
    }

    @Test("untouched lines stay unchanged, whatever they contain") func untouched() throws {
        let lines = MineText.lines(links)
        #expect(lines.count == 6 && lines.allSatisfy { !$0.contains("\n") && !$0.contains("\u{1B}") && !$0.isEmpty })
        #expect(try edits(["# a comment", ""] + lines) == (1...6).map { LinkEdit(from: $0) })
        #expect(try edits(lines.reversed()) == (1...6).reversed().map { LinkEdit(from: $0) })
        #expect(try edits([]) == [])
    }

    @Test("a line with a known URL is that link, any other a new link") func changed() throws {
        #expect(
            try edits(["https://b.example  B now ", "https://new.example", "https://a.example again", "https://a.example third"]) == [
                LinkEdit(from: 2, linkDescription: "B now"), LinkEdit(url: "https://new.example", linkDescription: ""), LinkEdit(from: 3),
                LinkEdit(from: 1, linkDescription: "third"),
            ])
        #expect(
            try edits(["https://b.example see https://c.example", "https://new.example https://other.example two"]) == [
                LinkEdit(from: 2, linkDescription: "see https://c.example"), LinkEdit(url: "https://new.example", linkDescription: ""),
                LinkEdit(url: "https://other.example", linkDescription: "two"),
            ])
        let error = #expect(throws: HexlistError.self) { try edits(["https://new.example", "no link"]) }
        #expect(error?.message.contains("file, line 2: `no` is not a link") == true)
    }

    @Test("an empty range is reported, with the command for My Hexlist if its hexes are in the range") func ranges() {
        let received = "Nothing was deleted: no received hex in that range."
        #expect(DeleteCommand.nothing(hasRange: true, held: false, hasOwn: false) == received)
        #expect(
            DeleteCommand.nothing(hasRange: true, held: false, hasOwn: true)
                == received + " To delete from My Hexlist: `hexlist mine rm`.")
        #expect(DeleteCommand.nothing(hasRange: false, held: false, hasOwn: false).contains("the inbox has none of them."))
        #expect(!DeleteCommand.nothing(hasRange: false, held: true, hasOwn: false).contains("the inbox"))
        #expect(ReadCommand.nothing(hasRange: true).contains("in that range") && !ReadCommand.nothing(hasRange: false).contains("range"))
    }

    @Test("the edited text names its hex in the header") func page() throws {
        let hex = HexJSON(
            id: 7, location: "mine", senderUUID: "", senderName: "", description: "Read\u{1B}", color: "", linkCount: 6, unread: false,
            receivedAt: Timestamp(milliseconds: 0), links: links)
        let page = MineText.editorText(hex)
        #expect(page.hasPrefix("# Hex 7: Read") && !page.contains("\u{1B}"))
        #expect(try MineText.edits(page, of: links, from: "file") == (1...6).map { LinkEdit(from: $0) })
    }

    @Test("links are removed and moved in this order, by their old numbers") func flags() throws {
        func numbers(_ count: Int, _ removed: [Int], _ move: (Int, Int)?) throws -> [Int?] {
            try MineText.edits(of: count, removing: removed, moving: move).map(\.from)
        }
        #expect(try numbers(4, [], nil) == [1, 2, 3, 4])
        #expect(try numbers(4, [2, 2], (4, 1)) == [4, 1, 3])
        #expect(try numbers(4, [], (1, 4)) == [2, 3, 4, 1])
        #expect(try numbers(0, [], nil) == [])
        for (count, removed, move) in [(0, [1], nil), (4, [5], nil), (4, [0], nil), (4, [2], (2, 1)), (4, [], (1, 5)), (4, [], (5, 1))]
            as [(Int, [Int], (Int, Int)?)]
        {
            #expect(throws: HexlistError.self) { try numbers(count, removed, move) }
        }
    }

    @Test(
        "the arguments of each command",
        arguments: [
            (["mine"], true), (["mine", "7", "--tree"], true), (["mine", "ad"], false), (["mine", "rmm", "3"], false),
            (["mine", "list", "7"], true), (["mine", "7", "--after", "3"], false),
            (["mine", "add"], false), (["mine", "add", "--description", "d"], true), (["mine", "add", "-", "--from", "-"], false),
            (["mine", "add", "--in", "3", "https://a.example"], true), (["mine", "edit"], false), (["mine", "edit", "7"], true),
            (["mine", "edit", "7", "--move", "1"], false), (["mine", "edit", "7", "--move", "1", "2", "--remove", "3", "4"], true),
            (["mine", "edit", "7", "--add", "https://a.example", "https://b.example b"], true), (["mine", "move", "7"], false),
            (["mine", "move", "7", "--top"], true), (["mine", "move", "7", "--top", "--in", "3"], false),
            (["mine", "move", "7", "--in", "3", "--before", "4"], true), (["mine", "move", "7", "--top", "--before", "4"], true),
            (["mine", "move", "7", "--after", "4"], true), (["mine", "move", "7", "--before", "3", "--after", "4"], false),
            (["mine", "tag"], false), (["mine", "tag", "7"], true), (["mine", "tag", "7.2", "db", "to read"], true),
            (["mine", "tag", "7.2", "--remove", "db"], true), (["mine", "tag", "7.0", "db"], false), (["mine", "tag", "x.2"], false),
            (["mine", "rm"], false), (["mine", "rm", "7", "8", "--yes"], true), (["save"], false), (["save", "7", "8", "--in", "3"], true),
            (["save", "x"], false),
        ] as [([String], Bool)]) func arguments(_ words: [String], isFine: Bool)
    {
        let isTaken = (try? Hexlist.parseAsRoot(words)) != nil
        #expect(isTaken == isFine, "\(words)")
    }

    @Test("a tree is printed with ids, by level") func tree() {
        let inner = InnerHexJSON(id: 9, senderUUID: "", senderName: "", description: "", color: "", links: [], children: nil)
        let child = InnerHexJSON(
            id: 8, senderUUID: "", senderName: "", description: "Inside", color: "", links: Array(links.prefix(2)),
            children: [inner, inner])
        let hex = HexJSON(
            id: 7, location: "mine", senderUUID: "", senderName: "", description: "Top", color: "", linkCount: 1, unread: false,
            receivedAt: Timestamp(milliseconds: 0), hexesInside: 3, linksInside: 2, children: [child])
        #expect(MineText.tree(hex) == ["7  Top  (1 link)", "  8  Inside  (2 links)", "    9", "    9"])
        #expect(MineText.inside(ChangeCountJSON(changed: 2, hexesInside: 6, linksInside: 1)) == "6 hexes with 1 link")
        #expect(MineText.inside(ChangeCountJSON(changed: 2)) == nil)
        let deletion = ChangeCountJSON(changed: 2, links: 40, hexesInside: 6, linksInside: 9)
        #expect(MineText.deletion(deletion) == "2 hexes with 40 links, and 6 hexes with 9 links inside")
        #expect(MineText.deletion(ChangeCountJSON(changed: 1)) == "1 hex")
        #expect(MineText.deleted(1, inside: nil) == "1 hex deleted.")
        #expect(MineText.deleted(2, inside: "1 hex with 0 links") == "2 hexes deleted, and 1 hex with 0 links inside.")
        #expect(child.inside == (2, 0))
    }

    @Test("VISUAL and EDITOR go before the system's editor") func editor() throws {
        #expect(try Editor.command(visual: "code -w", editor: "vi", hasSystemEditor: true) == "code -w")
        #expect(try Editor.command(visual: "", editor: "vi", hasSystemEditor: true) == "vi")
        #expect(try Editor.command(visual: nil, editor: nil, hasSystemEditor: true) == "/usr/bin/editor")
        #expect(throws: HexlistError.self) { try Editor.command(visual: nil, editor: " ", hasSystemEditor: false) }
    }

    @Test("tags are added once and removed without regard to case")
    func tags() throws {
        #expect(MineText.tags(["a", "B"], adding: ["b", "c", "C"], removing: ["A"]) == ["B", "c"])
        #expect(MineText.tags([], adding: [], removing: ["x"]) == [])
        let target = try #require(HexOrLinkID(argument: "7.2"))
        #expect(target.hex == 7 && target.link == 2 && HexOrLinkID(argument: "7")?.link == nil)
        for text in ["", ".", "7.", "7.0", "7.-1", ".2", "7.2.3", "0.1", "a"] { #expect(HexOrLinkID(argument: text) == nil, "\(text)") }
        #expect(MineTagCommand.report(["a", "b"], target) == "Link 2 of hex 7 is tagged a, b.")
        #expect(MineTagCommand.report([], try #require(HexOrLinkID(argument: "7"))) == "Hex 7 has no tags.")
    }
}
