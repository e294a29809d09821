import HexlistAPI
import HexlistModel
import Testing

@testable import hexlist

/// The texts of `mine log`, `mine undo` and `mine trash`.
@Suite struct MineHistoryTests {
    private func change(
        _ hexes: MineChangeCounts? = nil, _ links: MineChangeCounts? = nil, subject: String = "", others: Int = 0, undo: Bool = false,
        undoneBy: Int64? = nil, values: [MineChangedValue] = []
    ) -> MineChangeJSON {
        MineChangeJSON(
            number: 7, at: Timestamp(milliseconds: 0), hexes: hexes, links: links, hex: 1, subject: subject, others: others, undo: undo,
            undoneBy: undoneBy, undoable: undoneBy == nil, values: values)
    }

    @Test func changes() {
        #expect(MineHistoryText.change(change(nil, MineChangeCounts(deleted: 18))) == "deleted 18 links")
        let edit = change(MineChangeCounts(changed: 1), MineChangeCounts(added: 1, moved: 2, changed: 1), undoneBy: 8)
        #expect(MineHistoryText.change(edit) == "undone: added 1 link, moved 2 links, changed 1 hex and 1 link")
        #expect(MineHistoryText.change(change(MineChangeCounts(restored: 2), undo: true)) == "undo, which restored 2 hexes")
        #expect(MineHistoryText.subject(change(subject: "Work", others: 2)) == "Work, and 2 others")
        #expect(MineHistoryText.subject(change()) == "(no description)")
    }

    @Test func valuesBefore() {
        let values = [
            MineChangedValue(link: nil, name: "title", before: "Reading", after: "Books"),
            MineChangedValue(link: nil, name: "color", before: "", after: "red"),
            MineChangedValue(link: "https://a.example", name: "title", before: "A", after: ""),
            MineChangedValue(link: "https://a.example", name: "note", before: "n", after: ""),
            MineChangedValue(link: "https://b.example", name: "deleted", before: "", after: ""),
        ]
        #expect(
            MineHistoryText.before(change(values: values))
                == "Reading; color (none); https://a.example: A; https://a.example note n; https://b.example")
    }

    @Test func undo() {
        var result = MineUndoResult(number: 9, undone: [], hexes: nil, links: MineChangeCounts(restored: 18), kept: [], keptCount: 0)
        #expect(MineHistoryText.undone([7], result) == ["Change 7 is undone. This restored 18 links."])
        result.kept = [
            MineKeptValue(change: 7, hex: 3, link: nil, name: "title"),
            MineKeptValue(change: 7, hex: nil, link: "https://a.example/\u{1B}[1m", name: "note"),
        ]
        result.keptCount = 3
        result.undone = [7, 8]
        #expect(
            MineHistoryText.undone([7, 8, 7], result) == [
                "2 changes are undone. This restored 18 links.", "3 values stay as they are, because of later changes:", "  hex 3: title",
                "  a hex, https://a.example/\u{FFFD}[1m: note", "  and 1 more",
            ])
        #expect(MineHistoryText.undone([7, 8, 9], result).first == "Of 3 changes, 7, 8 are undone. This restored 18 links.")
        result.undone = [8]
        #expect(MineHistoryText.undone([7, 8], result).first == "Of 2 changes, 8 is undone. This restored 18 links.")
    }

    @Test("the number of a hex is named, also on a narrow terminal") func hexCells() {
        var table = Table(["NUMBER", "WHAT", "IN HEX"])
        table.add([Table.Cell("813"), Table.Cell("a link with a long name"), MineHistoryText.cell(hex: 5)])
        #expect(table.lines(Terminal(isInteractive: true, hasColor: false, width: 24)).joined(separator: " ").contains("in hex 5"))
    }

    @Test func trash() {
        var hex = RestoredItemJSON(number: 1, hex: 7, link: nil, parent: nil, hexRestored: false)
        #expect(MineHistoryText.restored(hex) == "Hex 7 is back, at the top level.")
        hex.parent = 2
        #expect(MineHistoryText.restored(hex) == "Hex 7 is back, in hex 2.")
        var link = RestoredItemJSON(number: 1, hex: 7, link: 2, parent: nil, hexRestored: false)
        #expect(MineHistoryText.restored(link) == "The link is back, as link 2 of hex 7.")
        link.hexRestored = true
        #expect(
            MineHistoryText.restored(link)
                == "The link is back, as link 2 of hex 7. Hex 7 was deleted too: it is shown again, with the restored links only.")
        #expect(MineHistoryText.emptied(0) == "The trash was empty. The change log is cleared.")
        #expect(MineHistoryText.emptied(1) == "1 item removed from the trash, and the change log is cleared.")
        func item(_ url: String?, _ subject: String) -> TrashedItemJSON {
            TrashedItemJSON(
                number: 1, hex: nil, subject: subject, url: url, parent: nil, parentSubject: nil, hexesInside: 0, links: 0,
                deletedAt: Timestamp(milliseconds: 0), ends: Timestamp(milliseconds: 0))
        }
        #expect(["https://a", nil].map { MineHistoryText.title(item($0, "A")) } == ["A  https://a", "A"])
        #expect(MineHistoryText.title(item("https://a", " ")) == "https://a")
    }
}
