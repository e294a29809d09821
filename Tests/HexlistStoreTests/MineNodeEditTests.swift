import HexlistLists
import HexlistModel
import TestSupport
import Testing

@testable import HexlistStore

/// Changes of a hex of My Hexlist that name links by their nodes.
@Suite(.timeLimit(.minutes(5))) struct MineNodeEditTests: SharingScenario {
    private let test: TestStore
    private var store: HexStore { test.store }

    init() throws { test = try TestStore() }

    private func add(_ names: [String], into parent: Int64? = nil) async throws -> Int64 {
        var hex = HexContent()
        hex.links = names.map { LinkContent(url: hex.add(Self.url($0)), linkDescription: hex.add($0), service: hex.add("Unknown")) }
        let content = hex
        return try await store.addMine(content, into: parent, at: start)
    }

    private static func url(_ name: String) -> String { "https://\(name).example/" }

    private func new(_ name: String) -> MineNodeEdit.NewLink { MineNodeEdit.NewLink(url: Self.url(name), title: name) }

    private func nodes(_ hex: Int64, in test: TestStore? = nil) throws -> MineLinks {
        try #require(try (test ?? self.test).read { try $0.mineLinkIDs(of: hex) })
    }

    private func edit(_ hex: Int64, _ changes: MineNodeEdit.Change...) async throws {
        try await store.editMine(hex, by: MineNodeEdit(changes: changes), at: start)
    }

    /// The descriptions of the links of a hex, in order.
    private func text(_ hex: Int64, in test: TestStore? = nil) throws -> String {
        let content = try #require(try (test ?? self.test).read { try $0.hex(hex) }).content
        return content.links.map { content.string($0.linkDescription) }.joined(separator: " ")
    }

    private func refused(
        _ message: String, _ code: HexlistError.Code = .badRequest, _ body: () async throws -> Void
    ) async throws {
        let changes = try test.read { try $0.lastMineChange() }
        let error = await #expect(throws: HexlistError.self) { try await body() }
        #expect(error?.code == code && error?.message == message, "\(error?.message ?? "")")
        #expect(try test.read { try $0.lastMineChange() } == changes)
    }

    private func isConsistent() throws -> Bool { try MyHexlistNodeTests().rowsShowTheNodes(store) && test.countersAreRight() }

    @Test("one request is one change of the log; its undo restores all") func forms() async throws {
        let hex = try await add(["a", "b", "c", "d"])
        let (ids, before) = (try nodes(hex), try text(hex))
        let links = ids.ids
        let edit = MineNodeEdit(
            values: MineNodeEdit.Values(title: "Reading", color: "#112233", tags: ["t"]),
            changes: [
                .set(links[0], MineNodeEdit.Values(title: "A", tags: ["x", "y"], note: "n")), .remove(links[1]),
                .add(new("e"), after: links[0]), .move(links[3], after: ids.hex), .add(new("f"), after: nil),
            ])
        let number = try await store.editMine(hex, by: edit, at: start + 1)
        #expect(try text(hex) == "d A e c f" && number == test.read { try $0.lastMineChange() })
        let detail = try #require(try test.read { try $0.hex(hex) })
        #expect(detail.summary.description == "Reading" && detail.summary.color == "#112233")
        let notes = detail.content.annotations(detail.content.links[1].extra)
        #expect(notes.tags == ["x", "y"] && notes.note == "n" && detail.content.annotations(detail.content.extra).tags == ["t"])
        let change = try #require(try test.read { try $0.mineChanges(limit: 1, before: nil) }.items.first)
        #expect(change.links.added == 2 && change.links.deleted == 1 && change.links.moved == 1 && change.links.changed == 1)
        #expect(change.hexes.changed == 1 && change.at == start + 1)
        // Links that stay keep their ids.
        #expect(try nodes(hex).ids.filter(links.contains) == [links[3], links[0], links[2]])
        let undone = try await store.undoMine([change.number], at: start + 2)
        #expect(try text(hex) == before && nodes(hex).ids == links && undone.kept.isEmpty && isConsistent())
        #expect(try test.read { try $0.hex(hex) }?.summary.description == "")
    }

    @Test("the hex can be named by its node; empty values remove") func hexValues() async throws {
        let hex = try await add(["a"])
        let node = try nodes(hex).hex
        try await edit(hex, .set(node, MineNodeEdit.Values(title: "b", color: "red", tags: ["t"], note: "n")))
        var detail = try #require(try test.read { try $0.hex(hex) })
        #expect(detail.summary.description == "b" && detail.content.annotations(detail.content.extra).note == "n")
        try await edit(hex, .set(node, MineNodeEdit.Values(title: "", color: "", tags: [], note: "")))
        detail = try #require(try test.read { try $0.hex(hex) })
        #expect(detail.summary.description == "" && detail.summary.color == "" && detail.content.extra.isEmpty)
        // The same values are no change.
        #expect(
            try await store.editMine(
                hex, by: MineNodeEdit(changes: [.set(node, MineNodeEdit.Values(title: "", tags: [], note: ""))]), at: start) == nil)
        #expect(try isConsistent())
    }

    @Test("links are put at the beginning, behind a link and at the end, consecutive ones in their order") func places() async throws {
        let hex = try await add(["a", "b", "c"])
        _ = try await add(["i"], into: hex)
        let links = try nodes(hex)
        try await edit(hex, .add(new("1"), after: links.hex), .add(new("2"), after: links.hex))
        #expect(try text(hex) == "1 2 a b c")
        try await edit(
            hex, .add(new("3"), after: links.ids[0]), .move(links.ids[2], after: links.ids[0]), .add(new("4"), after: links.ids[0]))
        #expect(try text(hex) == "1 2 a 3 c 4 b")
        // A change in between ends the run, so the later one is directly behind the link.
        try await edit(
            hex, .add(new("5"), after: links.ids[1]), .set(links.ids[1], MineNodeEdit.Values(title: "B")),
            .add(new("6"), after: links.ids[1]))
        #expect(try text(hex) == "1 2 a 3 c 4 B 6 5")
        try await edit(hex, .move(links.ids[0], after: nil), .move(links.ids[1], after: links.hex))
        #expect(try text(hex) == "B 1 2 3 c 4 6 5 a" && isConsistent())
        // A link that is there already is not moved.
        let now = try nodes(hex).ids
        for change in [.move(now[8], after: nil), .move(now[0], after: links.hex), .move(now[4], after: now[3])] as [MineNodeEdit.Change] {
            #expect(try await store.editMine(hex, by: MineNodeEdit(changes: [change]), at: start) == nil)
        }
    }

    @Test("a new URL makes a new link, which takes over place and values, also for later changes of the request")
    func url() async throws {
        let hex = try await add(["a", "b", "c"])
        let links = try nodes(hex).ids
        try await edit(hex, .set(links[1], MineNodeEdit.Values(tags: ["t"], note: "n")))
        try await edit(
            hex, .set(links[1], MineNodeEdit.Values(url: "https://b2.example/")), .add(new("d"), after: links[1]),
            .move(links[0], after: links[1]))
        #expect(try text(hex) == "b d a c")
        let content = try #require(try test.read { try $0.hex(hex) }).content
        let notes = content.annotations(content.links[0].extra)
        #expect(content.string(content.links[0].url) == "https://b2.example/" && notes.tags == ["t"] && notes.note == "n")
        #expect(try !nodes(hex).ids.contains(links[1]))
        let new = try nodes(hex).ids[0]
        try await edit(hex, .set(new, MineNodeEdit.Values(url: "https://b3.example/", title: "B")), .move(new, after: nil))
        #expect(try text(hex) == "d a c B")
        // The same URL is no change.
        let last = try nodes(hex).ids[3]
        let same = MineNodeEdit(changes: [.set(last, MineNodeEdit.Values(url: "https://b3.example/"))])
        #expect(try await store.editMine(hex, by: same, at: start) == nil)
        #expect(try isConsistent())
    }

    @Test("changes that others made since the hex was read stay; a version refuses them") func meanwhile() async throws {
        let hex = try await add(["a", "b", "c", "d"])
        let read = try nodes(hex)
        try await edit(
            hex, .add(new("x"), after: read.ids[0]), .set(read.ids[2], MineNodeEdit.Values(title: "C")), .remove(read.ids[1]),
            .add(new("y"), after: nil))
        // Those of an editor that was open meanwhile.
        let edits: [MineNodeEdit.Change] = [
            .remove(read.ids[3]), .remove(read.ids[1]), .set(read.ids[0], MineNodeEdit.Values(title: "A")), .add(new("z"), after: nil),
        ]
        try await refused("Links of hex \(hex) were added, removed or moved in the meantime. Nothing was changed.", .changed) {
            try await store.editMine(hex, by: MineNodeEdit(changes: edits, version: read.version), at: start)
        }
        try await store.editMine(hex, by: MineNodeEdit(changes: edits), at: start)
        #expect(try text(hex) == "A x C y z")
        let version = try nodes(hex).version
        let last = MineNodeEdit(changes: [.set(read.ids[0], MineNodeEdit.Values(title: "a"))], version: version)
        #expect(try await store.editMine(hex, by: last, at: start) != nil)
        #expect(try isConsistent())
    }

    @Test("a link that was deleted meanwhile is restored by a new value or place; its former place counts") func deleted() async throws {
        let hex = try await add(["a", "b", "c", "d"])
        let links = try nodes(hex).ids
        try await edit(hex, .remove(links[1]), .remove(links[3]))
        try await edit(hex, .add(new("x"), after: links[1]), .add(new("y"), after: links[3]))
        #expect(try text(hex) == "a x c y")
        try await edit(hex, .set(links[1], MineNodeEdit.Values(title: "B")), .move(links[3], after: links[1]))
        #expect(try text(hex) == "a B d x c y")
        let change = try #require(try test.read { try $0.mineChanges(limit: 1, before: nil) }.items.first)
        #expect(change.links.restored == 2)
        #expect(try test.read { try $0.trashPage(limit: 9, before: nil) }.items.isEmpty)
        _ = try await store.undoMine([change.number], at: start)
        #expect(try text(hex) == "a x c y" && isConsistent())
        // A link of the beginning.
        try await edit(hex, .remove(links[0]))
        try await edit(hex, .add(new("z"), after: links[0]))
        #expect(try text(hex) == "z x c y")
    }

    @Test("impossible changes are refused with a reason, and nothing is changed") func refusals() async throws {
        let hex = try await add(["a", "b"])
        let inner = try await add(["i"], into: hex)
        let (links, other, node) = (try nodes(hex).ids, try nodes(inner), try nodes(hex).hex)
        var generator = SystemRandomNumberGenerator()
        let (title, unknown) = (MineNodeEdit.Values(title: "x"), ListNode.ID(kind: .link, time: start, using: &generator))
        let cases: [(String, HexlistError.Code, [MineNodeEdit.Change])] = [
            ("There are no changes.", .badRequest, []),
            ("There is no link \(unknown) in hex \(hex).", .notFound, [.set(links[0], title), .set(unknown, title)]),
            ("There is no link \(unknown) in hex \(hex).", .notFound, [.remove(links[0]), .remove(unknown)]),
            ("There is no link \(unknown) in hex \(hex).", .notFound, [.move(unknown, after: nil)]),
            ("There is no link \(unknown) in hex \(hex).", .notFound, [.add(new("n"), after: unknown)]),
            ("Link \(other.ids[0]) is in hex \(inner), not in hex \(hex).", .badRequest, [.remove(links[0]), .set(other.ids[0], title)]),
            ("Link \(other.ids[0]) is in hex \(inner), not in hex \(hex).", .badRequest, [.move(links[0], after: other.ids[0])]),
            ("`\(other.hex)` is not a link of this hex.", .badRequest, [.remove(other.hex)]),
            ("`\(node)` is not a link of this hex.", .badRequest, [.remove(node)]),
            ("`\(node)` is not a link of this hex.", .badRequest, [.move(node, after: nil)]),
            ("`\(other.hex)` is not a link of this hex.", .badRequest, [.add(new("n"), after: other.hex)]),
            ("`\(other.hex)` is not a link of this hex.", .badRequest, [.set(other.hex, title)]),
            ("Link \(links[0]) is changed twice.", .badRequest, [.set(links[0], title), .set(links[0], title)]),
            ("Link \(links[0]) is moved twice.", .badRequest, [.move(links[0], after: nil), .move(links[0], after: links[1])]),
            ("Link \(links[0]) is removed twice.", .badRequest, [.remove(links[0]), .remove(links[0])]),
            ("Link \(links[0]) is both removed and changed.", .badRequest, [.set(links[0], title), .remove(links[0])]),
            ("Link \(links[0]) is both removed and moved.", .badRequest, [.remove(links[0]), .move(links[0], after: nil)]),
            ("Link \(links[0]) cannot be put after itself.", .badRequest, [.move(links[0], after: links[0])]),
            ("The change of `\(links[0])` has no value.", .badRequest, [.set(links[0], MineNodeEdit.Values())]),
            ("A hex has no `url` and no `service`.", .badRequest, [.set(node, MineNodeEdit.Values(url: "https://a.example"))]),
            ("A link has no `color`.", .badRequest, [.set(links[0], MineNodeEdit.Values(color: "red"))]),
            ("The `url` of a link cannot be empty.", .badRequest, [.set(links[0], MineNodeEdit.Values(url: " "))]),
            ("The `url` of a link cannot be empty.", .badRequest, [.add(MineNodeEdit.NewLink(url: ""), after: nil)]),
            (
                "A text of a hex has at most 65536 bytes.", .badRequest,
                [.add(MineNodeEdit.NewLink(url: "a:b", note: String(repeating: "x", count: 65_537)), after: nil)]
            ),
            (
                "A tag has 1 to 65536 bytes and is not blank.", .badRequest,
                [.set(links[0], MineNodeEdit.Values(tags: [" "]))]
            ),
            (
                "16383 changes are too many for one request; the maximum is 16382.", .badRequest,
                Array(repeating: .remove(links[0]), count: 16_383)
            ),
        ]
        for (message, code, changes) in cases {
            try await refused(message, code) { try await store.editMine(hex, by: MineNodeEdit(changes: changes), at: start) }
        }
        try await refused("The values of hex \(hex) are given twice.") {
            try await store.editMine(hex, by: MineNodeEdit(values: title, changes: [.set(node, title)]), at: start)
        }
        try await refused("There is no hex 999.", .notFound) {
            try await store.editMine(999, by: MineNodeEdit(changes: [.remove(links[0])]), at: start)
        }
        // A link whose values were removed from the trash.
        try await edit(hex, .remove(links[1]))
        _ = try await store.emptyTrash()
        try await refused("There is no link \(links[1]) in hex \(hex).", .notFound) { try await edit(hex, .set(links[1], title)) }
        #expect(try text(hex) == "a" && isConsistent())
    }

    @Test("a hex with 5 000 links gets no more; others can be changed, replaced and removed") func bounds() async throws {
        let hex = try await store.addMine(content("a", links: 4_999), at: start)
        let inner = try await add(["i"], into: hex)
        let links = try nodes(hex).ids
        try await refused("Hex \(hex) would have 5001 links in all; the maximum is 5000.") {
            try await edit(hex, .add(new("n"), after: nil))
        }
        try await refused("Hex \(hex) would have 5001 links in all; the maximum is 5000.") {
            try await edit(inner, .add(new("n"), after: nil))
        }
        try await edit(hex, .add(new("n"), after: links[0]), .remove(links[4_998]), .set(links[7], MineNodeEdit.Values(title: "seven")))
        let content = try #require(try test.read { try $0.hex(hex) }).content
        #expect(content.links.count == 4_999 && content.string(content.links[8].linkDescription) == "seven")
        try await refused("Hex \(hex) would have 5001 links in all; the maximum is 5000.") {
            try await edit(hex, .set(links[4_998], MineNodeEdit.Values(title: "back")))
        }
        #expect(try isConsistent())
    }

    @Test("a hex that two machines filled beyond the bounds can be changed and made smaller") func beyond() async throws {
        let (ada, bob) = (try SharingPerson(1), try SharingPerson(2))
        try await pair(ada, bob)
        let hex = try await ada.store.addMine(content("Reading", links: 2_600), at: start)
        try await exchange((ada, bob), at: 1)
        for person in [ada, bob] {
            let added = (0..<2_390).map { MineNodeEdit.Change.add(new("n\($0)"), after: nil) }
            try await person.store.editMine(person.hex("Reading"), by: MineNodeEdit(changes: added), at: start + 2)
        }
        try await exchange((ada, bob), at: 3)
        let links = try nodes(hex, in: ada.test).ids
        #expect(links.count == 7_380)
        await #expect(throws: HexlistError.self) {
            try await ada.store.editMine(hex, by: MineNodeEdit(changes: [.add(new("more"), after: nil)]), at: start + 4)
        }
        let changes: [MineNodeEdit.Change] = [.remove(links[0]), .set(links[1], MineNodeEdit.Values(title: "B"))]
        #expect(try await ada.store.editMine(hex, by: MineNodeEdit(changes: changes), at: start + 4) != nil)
        #expect(try ada.test.read { try $0.hex(hex) }?.summary.linkCount == 7_379 && ada.isConsistent())
    }

    @Test("changes of a shared hex merge with those that a member makes at the same time; a reader is refused") func shared() async throws {
        let (ada, bob, hex) = try await shared()
        let copy = try bob.hex("Reading")
        let (mine, theirs) = (try nodes(hex, in: ada.test), try nodes(copy, in: bob.test))
        #expect(mine == theirs)
        try await ada.store.editMine(
            hex, by: MineNodeEdit(changes: [.set(mine.ids[0], MineNodeEdit.Values(title: "A")), .add(new("x"), after: mine.hex)]),
            at: start + 3)
        try await bob.store.editMine(
            copy,
            by: MineNodeEdit(
                changes: [
                    .set(mine.hex, MineNodeEdit.Values(title: "Books")), .set(mine.ids[0], MineNodeEdit.Values(tags: ["t"])),
                    .move(mine.ids[1], after: mine.hex),
                ]), at: start + 4)
        try await exchange((ada, bob), at: 5)
        #expect(try nodes(hex, in: ada.test) == nodes(copy, in: bob.test) && text(hex, in: ada.test) == text(copy, in: bob.test))
        let content = try #require(try ada.test.read { try $0.hex(hex) }).content
        let link = try #require(content.links.first { content.string($0.linkDescription) == "A" })
        #expect(content.annotations(link.extra).tags == ["t"] && content.string(content.hexDescription) == "Books")
        #expect(content.links.count == 3 && content.string(content.links[2].linkDescription) == "A")
        #expect(try ada.isConsistent() && bob.isConsistent())

        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .read], at: start + 6)
        try await exchange((ada, bob), at: 7)
        for change in [.set(mine.ids[0], MineNodeEdit.Values(title: "B")), .add(new("y"), after: nil), .remove(mine.ids[0])]
            as [MineNodeEdit.Change]
        {
            let error = await #expect(throws: HexlistError.self) {
                try await bob.store.editMine(copy, by: MineNodeEdit(changes: [change]), at: start + 8)
            }
            #expect(error?.code == .badRequest && error?.message.contains("you can only read it") == true)
        }
        #expect(try nodes(copy, in: bob.test).ids.contains(mine.ids[0]) && bob.isConsistent())
    }

    @Test("titles are read for new links of web pages without one") func titles() async throws {
        let hex = try await add(["a"])
        let changes: [MineNodeEdit.Change] = [
            .add(MineNodeEdit.NewLink(url: "https://1.example"), after: nil), .add(new("2"), after: nil),
            .add(MineNodeEdit.NewLink(url: "https://3.example", wantsTitle: false), after: nil),
            .add(MineNodeEdit.NewLink(url: "mailto:a@b.example"), after: nil),
        ]
        try await store.editMine(hex, by: MineNodeEdit(changes: changes), wantsTitles: true, at: start)
        let wanted = try test.read { try $0.wantedTitles(notTriedIn: 1, limit: 9) }
        #expect(wanted.map(\.url) == ["https://1.example"] && wanted.map(\.hex) == [hex])
        #expect(try await store.finishTitle(try #require(wanted.first), title: "One", at: start) == 1)
        #expect(try text(hex).contains("One"))
        _ = try await store.addMine(content(), at: start)
        try await store.editMine(
            hex, by: MineNodeEdit(changes: [.add(MineNodeEdit.NewLink(url: "https://4.example"), after: nil)]), at: start)
        #expect(try test.read { try $0.wantedTitles(notTriedIn: 1, limit: 9) }.isEmpty)
    }

    @Test("a change of a large hex takes no more statements than one of a small hex") func cost() async throws {
        var counts: [[Int]] = []
        for size in [10, 2_000] {
            let hex = try await store.addMine(content("a", links: size), at: start)
            let links = try nodes(hex).ids
            let middle = links[size / 2]
            let edits: [[MineNodeEdit.Change]] = [
                [.set(middle, MineNodeEdit.Values(title: "x"))], [.set(middle, MineNodeEdit.Values(tags: ["t"], note: "n"))],
                [.add(new("n"), after: nil)], [.move(links[size - 1], after: nil)], [.remove(links[size - 1])],
            ]
            counts.append(
                try edits.map { changes in
                    try test.write { writer in
                        let count = Count()  // without statements of the search index, which a background task writes
                        writer.db.trace { if $0.description.contains(" node") { count.value += 1 } }
                        defer { writer.db.trace(options: []) }
                        try writer.editMine(hex, by: MineNodeEdit(changes: changes), at: start)
                        return count.value
                    }
                })
        }
        #expect(zip(counts[0], counts[1]).allSatisfy { small, large in 5 < large && large < small + 10 }, "\(counts)")
        #expect(try isConsistent())
    }

    private final class Count {
        var value = 0
    }
}

extension MineNodeEdit {
    /// Makes random changes of a hex.
    static func random(of links: MineLinks, using generator: inout some RandomNumberGenerator) -> MineNodeEdit {
        func place(_ generator: inout some RandomNumberGenerator) -> ListNode.ID? {
            Int.random(in: 0..<3, using: &generator) == 0 ? nil : ([links.hex] + links.ids).randomElement(using: &generator)
        }
        var changes: [Change] = []
        for (index, id) in links.ids.shuffled(using: &generator).enumerated() {
            switch Int.random(in: 0..<6, using: &generator) {
            case 0: changes.append(.remove(id))
            case 1: changes.append(.set(id, Values(title: "Title \(index)", tags: ["y", "x"])))
            case 2: changes.append(.set(id, Values(url: "https://other.example/\(index)", note: "note")))
            case 3:
                let after = place(&generator)
                if after != id { changes.append(.move(id, after: after)) }
            default: break
            }
            if Int.random(in: 0..<3, using: &generator) == 0 {
                changes.append(.add(NewLink(url: "https://node.example/\(index)", title: "New"), after: place(&generator)))
            }
        }
        if changes.isEmpty { changes.append(.add(NewLink(url: "https://node.example/"), after: place(&generator))) }
        return MineNodeEdit(values: Bool.random(using: &generator) ? Values(title: "By node") : Values(), changes: changes)
    }
}
