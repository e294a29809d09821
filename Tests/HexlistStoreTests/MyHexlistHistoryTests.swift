import Foundation
import GRDB
import HexlistModel
import Testing

@testable import HexlistStore

/// The change log of My Hexlist, undo, and deleted links.
@Suite(.timeLimit(.minutes(5))) struct MyHexlistHistoryTests {
    private let test: TestStore
    private var store: HexStore { test.store }

    init() throws { test = try TestStore() }

    private func log(hex: Int64? = nil, since: Int64? = nil) throws -> [MyHexlistChange] {
        try test.read { try $0.mineChanges(limit: 100, before: nil, hex: hex, since: since) }.items
    }

    /// The number of the newest change.
    private func newest() throws -> Int64 { try #require(try log().first).number }

    private func trash() throws -> [TrashedItem] { try test.read { try $0.trashPage(limit: 100, before: nil) }.items }

    /// The description of a hex, and those of its links in parentheses: `a (1, 2)`; `nil` if there is no such hex.
    private func text(_ id: Int64) throws -> String? {
        guard let content = try test.read({ try $0.hex(id) })?.content else { return nil }
        let links = content.links.map { content.string($0.linkDescription) + content.string($0.url).dropFirst("https://".count) }
        let children = content.children.map { content.string($0.hexDescription) }
        return "\(content.string(content.hexDescription)) (\((links + children).joined(separator: ", ")))"
    }

    private func links(_ urls: String...) -> HexContent {
        var content = content("a", links: 0)
        content.links = urls.map { url in
            var link = LinkContent(url: content.add("https://\(url)"), linkDescription: .empty, service: .empty)
            link.linkDescription = .empty
            return link
        }
        return content
    }

    private func refused(_ message: String, _ code: HexlistError.Code = .badRequest, _ body: () async throws -> Void) async {
        let error = await #expect(throws: HexlistError.self) { try await body() }
        #expect(error?.code == code && error?.message == message, "\(error?.message ?? "")")
    }

    @Test("one request is one change, with numbers of hexes and links, and the values before") func listed() async throws {
        let hex = try await store.addMine(links("1", "2", "3"), at: start)
        try await store.editMine(
            hex,
            MineEdit(
                description: "b", tags: ["t"], links: [.init(from: 2, linkDescription: "three"), .init(from: 0), .init(url: "https://4")]),
            at: start + 1)
        let other = try await store.addMine(content("other", links: 0), at: start + 2)
        try await store.moveMine(hex, into: other, at: start + 3)
        _ = try await store.change([other], .delete, at: start + 4)
        let changes = try log()
        #expect(changes.map(\.number) == [5, 4, 3, 2, 1] && changes.map(\.at) == [4, 3, 2, 1, 0].map { start + $0 })
        #expect(changes.map(\.hex) == [other, hex, other, hex, hex] && changes.map(\.subject) == ["other", "b", "other", "b", "a"])
        let (deletion, move, edit) = (changes[0], changes[1], changes[3])
        #expect(deletion.hexes.deleted == 2 && deletion.links.deleted == 3)
        #expect(move.hexes.moved == 1 && move.hexes.changed == 0 && move.links == MyHexlistChange.Counts())
        #expect(edit.hexes.changed == 1 && edit.links.added == 1 && edit.links.deleted == 1 && edit.links.changed == 1)
        #expect(edit.links.moved == 1 && changes[4].hexes.added == 1 && changes[4].links.added == 3)
        let values = edit.values.map { "\($0.link ?? "-") \($0.name) \($0.before)>\($0.after)" }.sorted()
        #expect(values == ["- tag t >t", "- title a>b", "https://2 deleted >", "https://3 title >three"])
        #expect(try log(hex: hex).map(\.number) == [5, 4, 2, 1] && log(hex: other).map(\.number) == [5, 4, 3])
        #expect(try log(since: start + 3).map(\.number) == [5, 4])
        let page = try test.read { try $0.mineChanges(limit: 2, before: nil) }
        #expect(page.next == 4)
        #expect(try test.read { try $0.mineChanges(limit: 9, before: page.next) }.items.map(\.number) == [3, 2, 1])
        await refused("There is no hex 999 in My Hexlist.", .notFound) { _ = try self.log(hex: 999) }
    }

    @Test("an undo restores texts, order and deleted links; an undo of the undo makes the change again") func undoing() async throws {
        let hex = try await store.addMine(links("1", "2", "3"), at: start)
        let before = try text(hex)
        try await store.editMine(
            hex,
            MineEdit(
                description: "b", color: "red", tags: ["t"],
                links: [.init(from: 2, linkDescription: "x"), .init(from: 0), .init(url: "https://4")]),
            at: start)
        let after = try text(hex)
        let undone = try await store.undoMine([newest()], at: start)
        #expect(try text(hex) == before && undone.kept.isEmpty)
        #expect(try test.read { try $0.hex(hex) }?.summary.color == "#ff8800")
        #expect(try log().prefix(2).map(\.undoneBy) == [nil, undone.number] && log()[0].kind == .undo)
        let number = undone.number - 1
        await refused("Change \(number) was already undone, by change \(undone.number).") {
            _ = try await self.store.undoMine([number], at: start)
        }
        let redone = try await store.undoMine([undone.number], at: start)
        #expect(try text(hex) == after && log().prefix(3).map(\.undoneBy) == [nil, redone.number, nil])
        // The change can be undone again, by the number of the redo.
        _ = try await store.undoMine([redone.number], at: start)
        #expect(try text(hex) == before && test.countersAreRight())
    }

    @Test("values that were changed again stay, and are listed") func kept() async throws {
        let hex = try await store.addMine(links("1", "2"), at: start)
        try await store.editMine(
            hex, MineEdit(description: "b", color: "red", links: [.init(from: 0, linkDescription: "one"), .init(from: 1)]), at: start)
        let number = try newest()
        try await store.editMine(
            hex, MineEdit(description: "c", links: [.init(from: 0, linkDescription: "eins"), .init(from: 1)]), at: start)
        let undone = try await store.undoMine([number], at: start)
        #expect(try text(hex) == "c (eins1, 2)" && test.read { try $0.hex(hex) }?.summary.color == "#ff8800")
        let kept = [
            KeptValue(change: number, hex: hex, link: "https://1", name: "title"),
            KeptValue(change: number, hex: hex, link: nil, name: "title"),
        ]
        #expect(undone.keptCount == 2 && undone.kept.count == 2 && kept.allSatisfy(undone.kept.contains))
        try await store.editMine(hex, MineEdit(color: "blue"), at: start)
        let color = try newest()
        try await store.editMine(hex, MineEdit(color: "green"), at: start)
        await refused("Change \(color) was not undone: everything in it was changed again later, or is no longer in the trash.") {
            _ = try await self.store.undoMine([color], at: start)
        }
        await refused("There is no change 99 in the log.", .notFound) { _ = try await self.store.undoMine([color, 99], at: start) }
    }

    @Test("several changes are undone together, newest first, also an addition with later changes of it") func several() async throws {
        let hex = try await store.addMine(links("1"), at: start)
        try await store.editMine(
            hex, MineEdit(description: "b", links: [.init(from: 0, linkDescription: "one"), .init(url: "https://2")]), at: start)
        try await store.editMine(hex, MineEdit(description: "c"), at: start)
        let undone = try await store.undoMine([1, 2, 3, 3], at: start)
        #expect(try text(hex) == nil && undone.kept.isEmpty && undone.hexes.deleted == 1)
        _ = try await store.undoMine([undone.number], at: start)
        #expect(try text(hex) != nil && log().map(\.undoneBy) == [nil, 5, nil, nil, nil])
        #expect(try test.countersAreRight())
    }

    @Test("an undone addition keeps links that were changed since, and a hex that was changed since with everything inside")
    func additions() async throws {
        let hex = try await store.addMine(links("1", "2"), at: start)
        try await store.editMine(hex, MineEdit(links: [.init(from: 0, linkDescription: "one"), .init(from: 1)]), at: start)
        #expect(try await store.undoMine([1], at: start).kept.map(\.link) == ["https://1", nil])
        #expect(try text(hex) == "a (one1)")
        let other = try await store.addMine(links("1", "2"), at: start)
        let number = try newest()
        try await store.editMine(other, MineEdit(description: "b"), at: start)
        await refused("Change \(number) was not undone: everything in it was changed again later, or is no longer in the trash.") {
            _ = try await self.store.undoMine([number], at: start)
        }
        #expect(try text(other) == "b (1, 2)")
    }

    @Test("a title that the daemon read does not keep an addition from being undone, and is not listed") func titles() async throws {
        let hex = try await store.addMine(links("1.example"), wantsTitles: true, at: start)
        let wanted = try #require(try test.read { try $0.wantedTitles(notTriedIn: 1, limit: 9) }.first)
        #expect(try await store.finishTitle(wanted, title: "Title", at: start) == 1)
        #expect(try text(hex) == "a (Title1.example)" && log().map(\.number) == [1])
        let undone = try await store.undoMine([1], at: start)
        #expect(try text(hex) == nil && undone.keptCount == 0)
    }

    @Test("a title that the daemon read is kept if the link is deleted and restored") func restoredTitle() async throws {
        let hex = try await store.addMine(links("1.example", "2"), wantsTitles: true, at: start)
        let wanted = try #require(try test.read { try $0.wantedTitles(notTriedIn: 1, limit: 9) }.first)
        #expect(try await store.finishTitle(wanted, title: "Title", at: start) == 1)
        try await store.editMine(hex, MineEdit(links: [.init(from: 1)]), at: start)
        _ = try await store.undoMine([newest()], at: start)
        #expect(try text(hex) == "a (Title1.example, 2)" && test.countersAreRight())
    }

    @Test("a deleted hex is restored by undo with everything inside, at its place; a move is undone") func deletions() async throws {
        let outer = try await store.addMine(content("outer", links: 0), at: start)
        let (first, second) = (
            try await store.addMine(links("1", "2"), into: outer, at: start),
            try await store.addMine(content("z", links: 1), into: outer, at: start)
        )
        let before = try text(outer)
        try await store.moveMine(second, into: outer, beside: .before(first), at: start)
        let (move, moved) = (try newest(), try text(outer))
        _ = try await store.change([first], .delete, at: start)
        #expect(try await store.undoMine([newest()], at: start).links.restored == 2)
        #expect(try text(outer) == moved)
        _ = try await store.undoMine([move], at: start)
        #expect(try text(outer) == before)
        _ = try await store.change([first], .delete, at: start)
        let deletion = try newest()
        _ = try await store.change([outer], .delete, at: start)
        let all = try newest()
        // The hex that contained it is deleted, so it is restored to the top level.
        let undone = try await store.undoMine([deletion], at: start)
        #expect(try test.read { try $0.hex(first) }?.summary.parent == nil && text(first) == "a (1, 2)")
        #expect(undone.hexes.restored == 1 && undone.links.restored == 2)
        _ = try await store.undoMine([undone.number], at: start)
        #expect(try text(first) == nil)
        _ = try await store.undoMine([all], at: start)
        #expect(try text(outer) == "outer (z)" && text(second) != nil && test.countersAreRight())
    }

    @Test("links that were deleted and restored with their hex are deleted, changed and undone like others") func revived() async throws {
        let hex = try await store.addMine(links("1", "2", "3"), at: start)
        try await store.editMine(hex, MineEdit(links: [.init(from: 0, linkDescription: "one"), .init(from: 1), .init(from: 2)]), at: start)
        let edit = try newest()
        _ = try await store.change([hex], .delete, at: start)
        _ = try await store.restoreMine(hex, at: start)
        _ = try await store.undoMine([edit], at: start)
        #expect(try text(hex) == "a (1, 2, 3)")
        try await store.editMine(hex, MineEdit(links: [.init(from: 0), .init(from: 2)]), at: start)
        #expect(try log().first?.links.deleted == 1 && trash().map(\.url) == ["https://2"])
        _ = try await store.undoMine([newest()], at: start)
        #expect(try text(hex) == "a (1, 2, 3)")
        _ = try await store.change([hex], .delete, at: start)
        #expect(try log().first?.hexes.deleted == 1 && log().first?.links.deleted == 3 && trash().first?.links == 3)
        let restored = try await store.undoMine([newest()], at: start)
        #expect(restored.links.restored == 3)
        #expect(try await store.undoMine([restored.number], at: start).links.deleted == 3)
        _ = try await store.undoMine([newest()], at: start)
        #expect(try text(hex) == "a (1, 2, 3)" && test.countersAreRight())
    }

    @Test("a deleted link is in the trash, and returns to its place; its hex returns with it") func links() async throws {
        let hex = try await store.addMine(links("1", "2", "3"), at: start)
        try await store.editMine(hex, MineEdit(links: [.init(from: 0), .init(from: 2)]), at: start + 7)
        let item = try #require(try trash().first)
        #expect(
            try trash() == [
                TrashedItem(
                    number: item.number, subject: "", url: "https://2", container: hex, containerSubject: "a", hexesInside: 0, links: 0,
                    deletedAt: start + 7)
            ])
        let restored = try await store.restoreMine(numbers: [item.number], at: start)
        #expect(restored == [RestoredItem(number: item.number, hex: hex, link: 1)])
        #expect(try text(hex) == "a (1, 2, 3)" && trash().isEmpty)
        await refused("There is no item \(item.number) in the trash.", .notFound) {
            _ = try await self.store.restoreMine(numbers: [item.number], at: start)
        }
        try await store.editMine(hex, MineEdit(links: [.init(from: 0), .init(from: 2)]), at: start)
        _ = try await store.change([hex], .delete, at: start)
        let again = try #require(try trash().last).number
        #expect(try trash().count == 2 && again > item.number)
        // The hex is restored too. Its other links are one item then.
        #expect(
            try await store.restoreMine(numbers: [again], at: start) == [
                RestoredItem(number: again, hex: hex, link: 0, isHexRestored: true)
            ])
        #expect(try text(hex) == "a (2)" && test.countersAreRight())
        #expect(try log().first?.hexes.restored == 1 && log().first?.links.restored == 1)
        let rest = try trash()
        #expect(rest.count == 1 && rest[0].url?.hasPrefix("https://") == true && rest[0].links == 1 && rest[0].container == hex)
        #expect(try test.read { try $0.trashCount() } == (0, 1))
        let others = try await store.restoreMine(numbers: rest.map(\.number), at: start)
        #expect(others.map(\.otherLinks) == [1] && others.map(\.isHexRestored) == [false])
        #expect(try text(hex) == "a (1, 2, 3)" && trash().isEmpty && test.countersAreRight())
        #expect(try log().first?.links.restored == 2)
        // An undo of it deletes them again, as single links: they were restored by the user.
        _ = try await store.undoMine([newest()], at: start)
        #expect(try text(hex) == "a (2)" && trash().count == 2)
    }

    @Test("a hex that was restored for a link in it is an ordinary hex: it can be renamed, deleted and restored", arguments: [false, true])
    func restoredForALink(_ emptiesTrash: Bool) async throws {
        let outer = try await store.addMine(content("outer", links: 0), at: start)
        let hex = try await store.addMine(links("1", "2"), into: outer, at: start)
        try await store.editMine(hex, MineEdit(links: [.init(from: 0)]), at: start)
        let link = try #require(try trash().first)
        _ = try await store.change([outer], .delete, at: start)
        let restored = try await store.restoreMine(numbers: [link.number], at: start)
        #expect(try text(outer) == "outer (a)" && text(hex) == "a (2)")
        #expect(restored == [RestoredItem(number: link.number, hex: hex, link: 0, isHexRestored: true, around: [outer])])
        if emptiesTrash { #expect(try await store.emptyTrash() == (0, 1)) }
        try await store.editMine(hex, MineEdit(description: "b"), at: start)
        #expect(try log().first?.hexes.changed == 1 && log().first?.hexes.restored == 0)
        _ = try await store.undoMine([newest()], at: start)
        #expect(try text(hex) == "a (2)")
        _ = try await store.change([outer], .delete, at: start)
        #expect(try log().first?.hexes.deleted == 2 && log().first?.links.deleted == 1 && log().first?.hex == outer)
        let deletion = try newest()
        #expect(try trash().first?.hex == outer && trash().first?.hexesInside == 1 && trash().first?.links == 1)
        await refused("Hex \(hex) was inside hex \(outer), and was deleted with it.", .notFound) {
            _ = try await self.store.restoreMine(hex, at: start)
        }
        if emptiesTrash { _ = try await store.undoMine([deletion], at: start) } else { _ = try await store.restoreMine(outer, at: start) }
        #expect(try text(outer) == "outer (a)" && text(hex) == "a (2)" && test.countersAreRight())
    }

    @Test("an added hex stays if something in it was changed since; the rest of it is deleted") func undoOfAChangedHex() async throws {
        let outer = try await store.addMine(content("outer", links: 0), at: start)
        let addition = try newest()
        let inner = try await store.addMine(links("1"), into: outer, at: start)
        await refused("Change \(addition) was not undone: everything in it was changed again later, or is no longer in the trash.") {
            _ = try await self.store.undoMine([addition], at: start)
        }
        #expect(try text(outer) == "outer (a)" && text(inner) == "a (1)" && trash().isEmpty)
        _ = try await store.undoMine([addition, newest()], at: start)
        #expect(try text(outer) == nil && Set(trash().map(\.hex)) == [outer, inner] && test.countersAreRight())
    }

    @Test("only a change of which something was reverted counts as undone") func partlyUndone() async throws {
        let hex = try await store.addMine(links("1"), at: start)
        for title in ["one", "two"] { try await store.editMine(hex, MineEdit(description: title), at: start) }
        try await store.editMine(hex, MineEdit(color: "red"), at: start)
        let numbers = try log().map(\.number)
        let result = try await store.undoMine([numbers[2], numbers[0]], at: start)
        #expect(result.undone == [numbers[0]] && result.keptCount == 1)
        #expect(try log().filter { $0.undoneBy != nil }.map(\.number) == [numbers[0]])
        _ = try await store.undoMine([numbers[1]], at: start)
        _ = try await store.undoMine([numbers[2]], at: start)
        #expect(try text(hex) == "a (1)")
    }

    @Test("a tag that only gets another number is not listed as changed") func renumberedTags() async throws {
        let hex = try await store.addMine(links("1"), at: start)
        try await store.editMine(hex, MineEdit(tags: ["a", "b", "c"]), at: start)
        try await store.editMine(hex, MineEdit(tags: ["b", "c"]), at: start)
        let removal = try newest()
        #expect(try log().first?.values.map(\.name) == ["tag a"])
        try await store.editMine(hex, MineEdit(tags: ["c"]), at: start)
        let result = try await store.undoMine([removal], at: start)
        #expect(result.keptCount == 0 && result.undone == [removal])
        let content = try #require(try test.read { try $0.hex(hex) }).content
        #expect(content.string(content.extra) == #"{"tags":["a","c"]}"#)
    }

    @Test("a request that deletes an inner hex and the hex around it counts each hex and link once") func nestedDeletion() async throws {
        let outer = try await store.addMine(links("1"), at: start)
        let inner = try await store.addMine(links("2", "3"), into: outer, at: start)
        _ = try await store.change([inner, outer], .delete, at: start)
        #expect(try log().first?.hexes.deleted == 2 && log().first?.links.deleted == 3)
        let undone = try await store.undoMine([newest()], at: start)
        #expect(try undone.hexes.restored == 2 && undone.links.restored == 3 && text(outer) == "a (1, a)" && text(inner) == "a (2, 3)")
    }

    @Test("the log of a hex lists its deletion together with the hex around it") func logOfAnInnerHex() async throws {
        let outer = try await store.addMine(links("1"), at: start)
        let inner = try await store.addMine(links("2"), into: outer, at: start)
        _ = try await store.change([outer], .delete, at: start)
        let deletion = try newest()
        #expect(try log(hex: inner).map(\.number) == [deletion, deletion - 1])
        #expect(try log().first?.hexes.deleted == 2 && log().first?.others == 0)
        let undone = try await store.undoMine([deletion], at: start)
        #expect(undone.hexes.restored == 2 && undone.links.restored == 2 && undone.keptCount == 0)
    }

    @Test("a number is restored once, however often it is given") func repeatedNumbers() async throws {
        let hexes = [try await store.addMine(links("1"), at: start), try await store.addMine(links("2"), at: start)]
        _ = try await store.change(hexes, .delete, at: start)
        let items = try trash()
        let numbers = [items[0].number, items[0].number, items[1].number]
        #expect(try await store.restoreMine(numbers: numbers, at: start).map(\.hex) == items.map(\.hex))
    }

    @Test("many changes of tags do not remove colour, sender and note", arguments: [1, 40, 64]) func manyTags(_ count: Int) async throws {
        var content = links("1")
        (content.hexColor, content.senderName) = (content.add("red"), content.add("Ada"))
        content.extra = content.add(#"{"note":"n"}"#)
        let hex = try await store.addMine(content, at: start)
        for round in 0..<20 {
            let tags = (0..<count).map { "tag \(round) \($0)" }
            try await store.editMine(hex, MineEdit(tags: tags), at: start)
            let found = try #require(try test.read { try $0.hex(hex) }).content
            #expect(found.string(found.hexColor) == "red" && found.string(found.senderName) == "Ada")
            let list = tags.map { "\"\($0)\"" }.joined(separator: ",")
            #expect(found.string(found.extra) == #"{"note":"n","tags":[\#(list)]}"#)
        }
        let undone = try await store.undoMine(log().map(\.number).dropLast(), at: start)
        #expect(undone.kept.isEmpty, "\(undone.keptCount) \(undone.kept.prefix(5)) \(undone.undone)")
        let found = try #require(try test.read { try $0.hex(hex) }).content
        #expect(found.string(found.extra) == #"{"note":"n"}"#)
    }

    @Test("too many tags for registers leave no second member of the same name after an undo") func tagsInTwoRegisters() async throws {
        let hex = try await store.addMine(links("1"), at: start)
        try await store.editMine(hex, MineEdit(tags: ["a", "b"]), at: start)
        try await store.editMine(hex, MineEdit(tags: (0..<50).map { "t\($0)" }), at: start)
        let many = try newest()
        try await store.editMine(hex, MineEdit(tags: ["c"]), at: start)
        let few = try newest()
        _ = try await store.undoMine([many], at: start)
        _ = try await store.undoMine([few], at: start)
        let content = try #require(try test.read { try $0.hex(hex) }).content
        #expect(content.string(content.extra).components(separatedBy: "tags").count == 2)
    }

    @Test("changes are undone one by one, newest first, up to the addition; and again after a redo") func stepByStep() async throws {
        let hex = try await store.addMine(links("1"), at: start)
        try await store.editMine(hex, MineEdit(description: "b", tags: ["t"]), at: start)
        try await store.editMine(hex, MineEdit(description: "c", links: [.init(from: 0, linkDescription: "one")]), at: start)
        _ = try await store.undoMine([3], at: start)
        #expect(try text(hex) == "b (1)")
        #expect(try await store.undoMine([2], at: start).keptCount == 0 && text(hex) == "a (1)")
        #expect(try await store.undoMine([1], at: start).keptCount == 0 && text(hex) == nil)
        _ = try await store.undoMine([newest()], at: start)
        // A change that was made again keeps the hex.
        let undo = try #require(try log().first { $0.number == 2 }?.undoneBy)
        _ = try await store.undoMine([undo], at: start)
        #expect(try text(hex) == "b (1)")
        try await store.editMine(hex, MineEdit(links: [.init(url: "https://2")]), at: start)
        #expect(try text(hex) == "b (2)" && test.countersAreRight())
    }

    @Test("an undo of several changes can be undone: the hex has the values that it had before") func combined() async throws {
        let hex = try await store.addMine(links("x"), at: start)
        try await store.editMine(hex, MineEdit(links: [.init(url: "https://n")]), at: start)
        let undone = try await store.undoMine([1, 2], at: start)
        #expect(try text(hex) == nil)
        _ = try await store.undoMine([undone.number], at: start)
        #expect(try text(hex) == "a (n)" && test.countersAreRight())
        _ = try await store.undoMine([newest()], at: start)
        #expect(try text(hex) == nil && test.countersAreRight())
    }

    @Test("a deletion and the restoring after it are undone together: the hex stays") func deletionAndRestoring() async throws {
        let hex = try await store.addMine(links("1", "2"), at: start)
        _ = try await store.change([hex], .delete, at: start)
        _ = try await store.restoreMine(hex, at: start)
        #expect(try await store.undoMine([2, 3], at: start).undone == [2, 3] && text(hex) == "a (1, 2)")
        try await store.editMine(hex, MineEdit(links: [.init(from: 1)]), at: start)
        _ = try await store.restoreMine(numbers: [try #require(try trash().first).number], at: start)
        try await store.editMine(
            hex, MineEdit(description: "b", links: [.init(from: 0, linkDescription: "one"), .init(from: 1)]), at: start)
        #expect(try await store.undoMine([5, 6, 7], at: start).keptCount == 0 && text(hex) == "a (1, 2)" && test.countersAreRight())
    }

    @Test("two moves are undone together: the second one stands in the way of the first otherwise") func twoMoves() async throws {
        let (a, b) = (try await store.addMine(links("1"), at: start), try await store.addMine(links("2"), at: start))
        try await store.moveMine(a, into: b, at: start)
        try await store.moveMine(a, into: nil, at: start)
        try await store.moveMine(b, into: a, at: start)
        #expect(try await store.undoMine([4, 5], at: start).keptCount == 0)
        #expect(try test.read { try $0.hex(a)?.summary.parent } == b)
        #expect(try test.read { try $0.hex(b)?.summary.parent } == nil)
        #expect(try test.countersAreRight())
    }

    @Test("an undone restoring counts what it deletes again, and nothing if it is kept") func undoneRestoring() async throws {
        let hex = try await store.addMine(links("1", "2"), at: start)
        _ = try await store.change([hex], .delete, at: start)
        _ = try await store.restoreMine(hex, at: start)
        let restoring = try newest()
        try await store.editMine(hex, MineEdit(description: "b"), at: start)
        await refused("Change \(restoring) was not undone: everything in it was changed again later, or is no longer in the trash.") {
            _ = try await self.store.undoMine([restoring], at: start)
        }
        #expect(try log().filter { $0.undoneBy != nil }.isEmpty)
        // A link that was added since stays, and the hex with it.
        _ = try await store.undoMine([newest()], at: start)
        try await store.editMine(hex, MineEdit(links: [.init(from: 0), .init(from: 1), .init(url: "https://3")]), at: start)
        let undone = try await store.undoMine([restoring], at: start)
        #expect(try text(hex) == "a (3)" && undone.links.deleted == 2 && undone.hexes.deleted == 0 && test.countersAreRight())
        #expect(try log().first?.links.deleted == 2 && log().first?.hexes.deleted == 0)
    }

    @Test("if a move back into a deleted hex is undone, the reply counts that hex too, as the log does") func revivedByUndo() async throws {
        let outer = try await store.addMine(links("1"), at: start)
        let inner = try await store.addMine(links("2"), into: outer, at: start)
        let other = try await store.addMine(links("3"), at: start)
        try await store.moveMine(inner, into: other, at: start)
        let move = try newest()
        _ = try await store.change([outer], .delete, at: start)
        let undone = try await store.undoMine([move], at: start)
        #expect(try text(outer) == "a (a)" && log().first?.hexes == undone.hexes)
        #expect(undone.hexes.restored == 1)
    }

    @Test("the rest of a hex that was restored for a link is one item, and is removed or restored as one") func rest() async throws {
        func restoredForALink() async throws -> (hex: Int64, inner: Int64, change: Int64) {
            let hex = try await store.addMine(links("1", "2", "3", "4"), at: start)
            let inner = try await store.addMine(links("5"), into: hex, at: start)
            try await store.editMine(hex, MineEdit(links: [.init(from: 0), .init(from: 1), .init(from: 2)]), at: start)
            let link = try #require(try trash().first).number
            _ = try await store.change([hex], .delete, at: start)
            let deletion = try newest()
            _ = try await store.restoreMine(numbers: [link], at: start)
            #expect(try text(hex) == "a (4)" && trash().count == 1)
            return (hex, inner, deletion)
        }
        // A part of the item can be restored by its number. The others stay one item.
        let (hex, inner, deletion) = try await restoredForALink()
        #expect(try await store.restoreMine(inner, at: start) == inner)
        #expect(try text(hex) == "a (4, a)" && trash().count == 1)
        _ = try await store.undoMine([deletion], at: start)  // restores the others
        #expect(try text(hex) == "a (1, 2, 3, 4, a)" && trash().isEmpty && test.countersAreRight())
        // It is emptied as one.
        let second = try await restoredForALink().hex
        #expect(try await store.emptyTrash() == (0, 1))
        #expect(try text(second) == "a (4)" && trash().isEmpty)
        #expect(try test.read { try $0.first("SELECT count(*) FROM node WHERE state = 1") { $0.int(0) } } == 0)
        // The hex can be deleted again. Its restored content is that at the second deletion.
        let third = try await restoredForALink()
        _ = try await store.change([third.hex], .delete, at: start)
        #expect(try trash().count == 2)
        _ = try await store.restoreMine(hexes: [third.hex], at: start)
        #expect(try text(third.hex) == "a (4)")
        _ = try await store.restoreMine(numbers: trash().map(\.number), at: start)
        #expect(try text(third.hex) == "a (1, 2, 3, 4, a)" && trash().isEmpty && test.countersAreRight())
    }

    @Test("several hexes are restored together, or none; so are several items, and changes are undone together") func all() async throws {
        let hexes = [try await store.addMine(links("1"), at: start), try await store.addMine(links("2"), at: start)]
        _ = try await store.change(hexes, .delete, at: start)
        let (item, deletion) = (try #require(try trash().first).number, try newest())
        await refused("Hex 77 is not in the trash.", .notFound) {
            _ = try await self.store.restoreMine(hexes: [hexes[0], 77], at: start)
        }
        await refused("There is no item 77 in the trash.", .notFound) {
            _ = try await self.store.restoreMine(numbers: [item, 77], at: start)
        }
        await refused("There is no change 77 in the log.", .notFound) { _ = try await self.store.undoMine([deletion, 77], at: start) }
        #expect(try trash().count == 2 && newest() == deletion)
        let restored = try await store.restoreMine(hexes: [hexes[1], hexes[0], hexes[1]], at: start)
        #expect(try restored.map(\.hex) == [hexes[1], hexes[0]] && trash().isEmpty && log().first?.hexes.restored == 2)
    }

    @Test("an edit returns the number of its change, and none if nothing changed") func numbers() async throws {
        let hex = try await store.addMine(links("1"), at: start)
        #expect(try await store.editMine(hex, MineEdit(description: "b"), at: start) == newest())
        #expect(try await store.editMine(hex, MineEdit(description: "b", links: [.init(from: 0)]), at: start) == nil)
        #expect(try await store.moveMine(hex, into: nil, at: start) == nil)
        let other = try await store.addMine(links("2"), at: start)
        #expect(try await store.moveMine(hex, into: other, at: start) == newest())
    }

    @Test("a move to the place where the hex is already is no change") func moveInPlace() async throws {
        let outer = try await store.addMine(content("outer", links: 0), at: start)
        for parent in [nil, outer] {
            // New hexes are the first at the top level, and the last in a hex.
            var hexes: [Int64] = []
            for name in ["a", "b", "c"] { hexes.append(try await store.addMine(content(name, links: 1), into: parent, at: start)) }
            if parent == nil { hexes.reverse() }
            #expect(try await store.moveMine(hexes[0], into: parent, beside: .before(hexes[1]), at: start) == nil)
            #expect(try await store.moveMine(hexes[1], into: nil, beside: .after(hexes[0]), at: start) == nil)
            #expect(try await store.moveMine(hexes[0], into: parent, beside: .before(hexes[2]), at: start) == newest())
            #expect(try await store.moveMine(hexes[0], into: parent, beside: .after(hexes[1]), at: start) == nil)
        }
        let last = try await store.addMine(content("d", links: 1), into: outer, at: start)
        #expect(try await store.moveMine(last, into: outer, at: start) == nil)
    }

    @Test("a subject and a value that are cut end in an ellipsis") func cut() async throws {
        let long = String(repeating: "a", count: 300)
        let hex = try await store.addMine(content(long, links: 0), at: start)
        try await store.editMine(hex, MineEdit(color: long), at: start)
        let change = try #require(try log().first)
        #expect(change.subject == String(repeating: "a", count: 117) + "…")
        #expect(change.values.map(\.after) == [String(repeating: "a", count: 237) + "…"])
    }

    @Test("a link that is restored together with its hex does not count as the reason for it") func linkAndItsHex() async throws {
        let hex = try await store.addMine(links("1", "2"), at: start)
        try await store.editMine(hex, MineEdit(links: [.init(from: 1)]), at: start)
        _ = try await store.change([hex], .delete, at: start)
        let restored = try await store.restoreMine(numbers: trash().map(\.number), at: start)
        #expect(try text(hex) == "a (1, 2)")
        #expect(restored.allSatisfy { !$0.isHexRestored })
    }

    @Test("the values of long texts are listed; changes that are too large together are undone one by one") func largeChanges() async throws
    {
        let long = String(repeating: "x", count: 60_000)
        let hex = try await store.addMine(content("a", links: 40), at: start)
        for round in 0..<3 {
            let links = (0..<40).map { MineEdit.Link(from: $0, linkDescription: "\(round) \(long)") }
            try await store.editMine(hex, MineEdit(links: links), at: start)
        }
        #expect(try log().prefix(2).allSatisfy { $0.isUndoable && !$0.values.isEmpty })
        await refused("These 2 changes are too large to be undone together.") { _ = try await self.store.undoMine([3, 4], at: start) }
        _ = try await store.undoMine([4], at: start)
        let hexes = try #require(try test.read { try $0.hex(hex) }).content
        #expect(try hexes.string(hexes.links[0].linkDescription).hasPrefix("1 x"))
    }

    @Test("links that were separated from their deleted hex are restored by the undo of the deletion") func separatedLinks() async throws {
        let hex = try await store.addMine(links("1", "2", "3", "4"), at: start)
        try await store.editMine(hex, MineEdit(links: (1..<4).map { .init(from: $0) }), at: start)
        _ = try await store.change([hex], .delete, at: start)
        let deletion = try newest()
        let restoring = try await store.undoMine([2], at: start)
        #expect(try text(hex) == "a (1)" && trash().map(\.links) == [2])
        #expect(try await store.undoMine([deletion], at: start).links.restored == 3 && text(hex) == "a (1, 2, 3, 4)")
        _ = try await store.undoMine([newest()], at: start)
        _ = try await store.undoMine([restoring.number], at: start)
        #expect(try text(hex) == nil)
        _ = try await store.undoMine([newest() - 1], at: start)
        #expect(try text(hex)?.hasSuffix("2, 3, 4)") == true && test.countersAreRight())
    }

    @Test("a link that an edit deletes stays deleted if the edit gives its neighbours new positions") func newPositions() async throws {
        let hex = try await store.addMine(links("a", "b"), at: start)
        var urls = ["https://a", "https://b"]
        for number in 0..<400 {
            var edited = urls.indices.map { MineEdit.Link(from: $0) }
            let middle = urls.count / 2
            edited.insert(MineEdit.Link(url: "https://\(number)"), at: middle)
            urls.insert("https://\(number)", at: middle)
            if number > 3 {
                edited.remove(at: number % 2 == 0 ? 0 : edited.count - 1)
                urls.remove(at: number % 2 == 0 ? 0 : urls.count - 1)
            }
            try await store.editMine(hex, MineEdit(links: edited), at: start + Int64(number))
            let content = try #require(try test.read { try $0.hex(hex) }).content
            #expect(content.links.map { content.string($0.url) } == urls)
        }
    }

    @Test("restoring an inner hex leaves number and date of its deleted outer hex") func numberStays() async throws {
        let outer = try await store.addMine(links("1"), at: start)
        let inner = try await store.addMine(links("2"), into: outer, at: start)
        _ = try await store.change([inner], .delete, at: start)
        _ = try await store.change([outer], .delete, at: start + 1)
        let item = try #require(try trash().first)
        _ = try await store.restoreMine(inner, at: start + 9)
        #expect(try trash() == [item] && item.hex == outer)
    }

    @Test("a change that was made again is undone by its redo") func chain() async throws {
        let hex = try await store.addMine(links("1"), at: start)
        try await store.editMine(hex, MineEdit(description: "b"), at: start)
        _ = try await store.undoMine([2], at: start)
        _ = try await store.undoMine([3], at: start)
        #expect(try log().map(\.undoneBy) == [nil, 4, nil, nil])
        await refused("Change 2 was undone, and made again by change 4.") { _ = try await self.store.undoMine([2], at: start) }
        _ = try await store.undoMine([4], at: start)
        await refused("Change 2 was already undone, by change 5.") { _ = try await self.store.undoMine([2], at: start) }
    }

    @Test("a change of which a value stayed can be undone again") func partlyUndoneTwice() async throws {
        let hex = try await store.addMine(links("1"), at: start)
        try await store.editMine(hex, MineEdit(description: "b", color: "red"), at: start)
        try await store.editMine(hex, MineEdit(description: "c"), at: start)
        #expect(try await store.undoMine([2], at: start).keptCount == 1)
        _ = try await store.undoMine([3], at: start)
        #expect(try text(hex) == "b (1)")
        #expect(try await store.undoMine([2], at: start).keptCount == 0 && text(hex) == "a (1)")
        #expect(try log().last { $0.number == 2 }?.undoneBy != nil)
    }

    @Test("an undo that also deleted a hex around a changed link can be undone") func changedAndDeletedTogether() async throws {
        let outer = try await store.addMine(links("1"), at: start)
        let inner = try await store.addMine(links("2"), into: outer, at: start)
        let other = try await store.addMine(links("3"), at: start)
        try await store.editMine(inner, MineEdit(color: "red", links: [.init(from: 0, linkDescription: "two")]), at: start)
        let undone = try await store.undoMine([1, 2, 4], at: start)
        #expect(try text(outer) == nil && text(other) != nil && undone.keptCount == 0)
        #expect(try await store.undoMine([undone.number], at: start).keptCount == 0)
        #expect(try text(inner) == "a (two2)" && test.read { try $0.hex(inner) }?.summary.color == "red" && test.countersAreRight())
    }

    @Test("a hex is not restored into one in which it would be too deep") func depth() async throws {
        var hexes = [try await store.addMine(links("1"), at: start)]
        for _ in 1..<7 { hexes.append(try await store.addMine(links("1"), into: hexes.last, at: start)) }
        let deepest = try await store.addMine(links("8"), into: hexes.last, at: start)
        _ = try await store.change([deepest], .delete, at: start)
        let outer = try await store.addMine(links("o"), at: start)
        try await store.moveMine(hexes[0], into: outer, at: start)
        await refused("A hex has at most 8 levels of hexes, itself the first.") { _ = try await self.store.restoreMine(deepest, at: start) }
        try await store.moveMine(hexes[6], into: nil, at: start)
        _ = try await store.restoreMine(deepest, at: start)
        #expect(try test.read { try $0.hex(deepest) }?.summary.parent == hexes[6] && test.countersAreRight())
    }

    @Test("what would exceed the bounds of a hex is not restored") func bounds() async throws {
        let hex = try await store.addMine(content("a", links: 5_000), at: start)
        try await store.editMine(hex, MineEdit(links: (1..<5_000).map { .init(from: $0) }), at: start)
        let (number, item) = (try newest(), try #require(try trash().first).number)
        try await store.editMine(hex, MineEdit(links: (0..<4_999).map { .init(from: $0) } + [.init(url: "https://new")]), at: start)
        let error = await #expect(throws: HexlistError.self) { try await self.store.restoreMine(numbers: [item], at: start) }
        #expect(error?.code == .badRequest)
        await #expect(throws: HexlistError.self) { try await self.store.undoMine([number], at: start) }
        #expect(try test.read { try $0.hex(hex) }?.summary.linkCount == 5_000 && test.countersAreRight())
    }

    @Test("emptying the trash also clears the log, and nothing comes back") func empty() async throws {
        let hex = try await store.addMine(links("1", "2"), at: start)
        try await store.editMine(hex, MineEdit(description: "b", links: [.init(from: 0)]), at: start)
        let other = try await store.addMine(links("3"), at: start)
        _ = try await store.change([other], .delete, at: start)
        #expect(try await store.emptyTrash() == (1, 1))
        #expect(try trash().isEmpty && log().isEmpty)
        #expect(try test.read { try $0.all("SELECT title || url FROM node ORDER BY id") { $0.text(0) } } == ["b", "https://1"])
        // Numbers are not used twice.
        try await store.editMine(hex, MineEdit(description: "c"), at: start)
        #expect(try log().map(\.number) == [5])
    }

    @Test("the log is bounded by age, by rows and by bytes; a change that is too large is listed, but cannot be undone") func logBounds()
        async throws
    {
        let hex = try await store.addMine(links("1"), at: start)
        for number in 0..<3 { try await store.editMine(hex, MineEdit(description: "\(number)"), at: start) }
        func bytesAreRight() throws -> Bool {
            try test.read {
                try $0.first("SELECT changeBytes = (SELECT coalesce(sum(bytes), 0) FROM mineChange) FROM list") { $0.bool(0) } ?? false
            }
        }
        let lived = try #require(try test.read { try $0.first("SELECT max(lived) FROM mineChange") { $0.int64(0) } })
        _ = try test.write { writer in try writer.change { try writer.run("UPDATE mineChange SET lived = ? - (number < 3)", lived) } }
        #expect(try test.write { try $0.maintain(at: lived + 30 * day - 1) }.changesForgotten == 2)
        #expect(try log().map(\.number) == [4, 3] && bytesAreRight())
        _ = try test.write { writer in
            try writer.change {
                // 19 998 copies of the last change.
                try writer.run("CREATE TEMP TABLE copied AS SELECT * FROM mineChange WHERE number = 4")
                for _ in 0..<19_998 {
                    try writer.run("UPDATE copied SET number = number + 1")
                    try writer.run("INSERT INTO mineChange SELECT * FROM copied")
                }
                try writer.run("DROP TABLE copied")
                try writer.run(
                    "UPDATE list SET changes = changes + 19998, changeBytes = (SELECT sum(bytes) FROM mineChange)")
            }
        }
        func bounds() throws -> [Int64] {
            try test.read {
                try $0.first("SELECT min(number), max(number), count(*) FROM mineChange") { [$0.int64(0), $0.int64(1), $0.int64(2)] } ?? []
            }
        }
        #expect(try bounds() == [3, 20_002, 20_000])
        try await store.editMine(hex, MineEdit(description: "x"), at: start)
        #expect(try bounds() == [4, 20_003, 20_000] && bytesAreRight())
        let text = String(repeating: "x", count: 60_000)
        var edit = MineEdit(links: (0..<150).map { .init(url: "https://\($0)", linkDescription: text) })
        try await store.editMine(hex, edit, at: start)
        edit = MineEdit(links: (0..<150).map { .init(from: $0, linkDescription: "") })
        try await store.editMine(hex, edit, at: start)
        #expect(try log().first?.isUndoable == false && log().first?.links.changed == 150)
        let number = try newest()
        await refused("Change \(number) is too large to be undone.") { _ = try await self.store.undoMine([number], at: start) }
        // 100 texts of 60 000 bytes each, three times: more than the log may have.
        for round in 0..<3 {
            for part in ["\(text)\(round)", ""] {
                try await store.editMine(
                    hex, MineEdit(links: (0..<150).map { .init(from: $0, linkDescription: $0 < 100 ? part : nil) }), at: start)
            }
        }
        #expect(try bytesAreRight() && log().count < 6)
        #expect(try test.read { try $0.first("SELECT changeBytes FROM list") { $0.int(0) } ?? 0 } <= MyHexlistChange.maximumBytes)
    }
}
