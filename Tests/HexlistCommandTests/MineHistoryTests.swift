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
                == "title: Reading; color: (none); https://a.example title: A; https://a.example note: n; deleted: https://b.example")
    }

    @Test("the log tells renamed, coloured, tagged and noted hexes and links apart") func kinds() {
        func value(_ name: String, link: String? = nil, after: String = "x") -> MineChangedValue {
            MineChangedValue(link: link, name: name, before: "", after: after)
        }
        func text(_ values: [MineChangedValue], links: Int = 0) -> String {
            MineHistoryText.change(change(MineChangeCounts(changed: 1), links > 0 ? MineChangeCounts(changed: links) : nil, values: values))
        }
        #expect(text([value("title")]) == "renamed 1 hex")
        #expect(text([value("tag b"), value("color"), value("title")]) == "renamed, coloured and tagged 1 hex")
        #expect(text([value("tag b", after: "")]) == "untagged 1 hex" && text([value("note")]) == "noted 1 hex")
        #expect(text([value("other")]) == "changed 1 hex" && text([]) == "changed 1 hex")
        #expect(text([value("title"), value("title", link: "a")], links: 2) == "renamed 1 hex and 2 links")
        #expect(text([value("title"), value("note", link: "a")], links: 1) == "renamed 1 hex, noted 1 link")
        // Ten values are listed at most, so there may be others.
        #expect(text((0..<10).map { value("title", link: "\($0)") }, links: 11) == "changed 1 hex and 11 links")
    }

    @Test("an edit prints its parts") func edited() {
        var hex = HexJSON(
            id: 7, location: "mine", senderUUID: "", senderName: "", description: "Top", color: "", linkCount: 12, unread: false,
            receivedAt: Timestamp(milliseconds: 0))
        hex.change = 7
        let values = [
            MineChangedValue(link: nil, name: "title", before: "a", after: "b"),
            MineChangedValue(link: "https://a.example", name: "deleted", before: "", after: ""),
        ]
        let edit = change(MineChangeCounts(changed: 1), MineChangeCounts(added: 2, deleted: 1), values: values)
        #expect(MineText.edited(hex, edit) == "Hex 7: renamed, added 2 links, deleted 1 link. It now has 12 links.")
        #expect(MineText.edited(hex, change(nil, MineChangeCounts(moved: 1))) == "Hex 7: moved 1 link.")
        #expect(MineText.edited(hex, change(MineChangeCounts(changed: 1), values: [values[0]])) == "Hex 7: renamed.")
        #expect(MineText.edited(hex, nil) == "Nothing was changed.")
    }

    @Test("the question before the trash is emptied has the counts, and fits a narrow terminal") func emptying() {
        func question(_ changed: Int, _ links: Int) -> String {
            MineHistoryText.emptying(ChangeCountJSON(changed: changed, links: links), "line").question
        }
        #expect(question(8, 5).hasPrefix("Remove 3 hexes with everything inside and 5 links from the trash for good, and clear the"))
        #expect(question(1, 1).hasPrefix("Remove 1 link from") && question(1, 0).hasPrefix("Remove 1 hex with everything inside from"))
        #expect(question(0, 0) == "The trash is empty. Clear the change log? This cannot be undone.")
        for columns in [40, 80] {
            let lines = TextWidth.lines(question(8_000, 5_000), columns: columns)
            #expect(lines.count > 1 && lines.allSatisfy { TextWidth.of($0) <= columns }, "\(lines)")
        }
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
        link.around = [3]
        #expect(MineHistoryText.restored(link).contains("Hex 7 and hex 3 around it were deleted too: they are shown again, with the"))
        link.around = [3, 1]
        #expect(MineHistoryText.restored(link).contains("Hex 7 and hexes 3 and 1 around it were deleted too"))
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
