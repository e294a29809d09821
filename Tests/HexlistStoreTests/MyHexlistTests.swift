import GRDB
import HexlistModel
import Testing

@testable import HexlistStore

/// My Hexlist: hexes created, saved, edited and moved, with their inner hexes.
@Suite(.timeLimit(.minutes(5))) struct MyHexlistTests {
    private func folder(_ name: String, links: Int = 0) -> HexContent { content(name, links: links) }

    /// The names of a hex and its inner hexes, by level.
    private func names(_ id: Int64, _ test: TestStore) throws -> [String] {
        let content = try #require(try test.read { try $0.hex(id) }).content
        return [content.string(content.hexDescription)] + content.children.map { content.string($0.hexDescription) }
    }

    /// Compares each hex's counts of inner hexes with the rows.
    private func insidesAreRight(_ test: TestStore) throws -> Bool {
        try test.read { reader in
            let ids = try Int64.fetchAll(reader.db, sql: "SELECT id FROM hex")
            for detail in try reader.hexes(ids) {
                let (summary, content) = (detail.summary, detail.content)
                guard summary.hexesInside == content.children.count, summary.linksInside == content.childLinks.count,
                    summary.linkCount == content.links.count
                else { return false }
            }
            return true
        }
    }

    private func refused(_ message: String, _ body: () async throws -> Void) async {
        let error = await #expect(throws: HexlistError.self) { try await body() }
        #expect(error?.code == .badRequest && error?.message == message, "\(error?.message ?? "")")
    }

    @Test func aHexIsMadeInsideAnother() async throws {
        let test = try TestStore()
        let top = try await test.store.addMine(folder("a"), at: start)
        let first = try await test.store.addMine(folder("b", links: 2), into: top, at: start)
        _ = try await test.store.addMine(folder("c", links: 1), into: first, at: start)
        _ = try await test.store.addMine(folder("d"), into: top, at: start)
        #expect(try names(top, test) == ["a", "b", "d", "c"])
        #expect(try test.read { try $0.counts() }.mine == 1)
        #expect(try test.read { try $0.hexPage(HexFilter(location: .mine)) }.items.map(\.id) == [top])
        #expect(try insidesAreRight(test) && test.countersAreRight())
    }

    private func trash(_ test: TestStore, hexesOnly: Bool = true) throws -> [TrashedItem] {
        try test.read { try $0.trashPage(limit: 9, before: nil, hexesOnly: hexesOnly) }.items
    }

    @Test("a deleted hex is in the trash with everything inside, and returns to the hex that it was in, or to the top") func trash()
        async throws
    {
        let test = try TestStore()
        let top = try await test.store.addMine(folder("a"), at: start)
        var content = folder("b", links: 2)
        content.extra = content.add(#"{"x":"\u0000\u202e"}"#)
        content.links[1].extra = content.add(#"{"size":3}"#)
        var child = ChildContent(parent: nil)
        child.hexDescription = content.add("c")
        content.add(child: child)
        var inner = ChildContent(parent: 0)
        inner.hexDescription = content.add("d")
        content.childLinks = [content.links[0]]
        inner.links = 0..<1
        content.add(child: inner)
        let middle = try await test.store.addMine(content, into: top, at: start)
        let after = try await test.store.addMine(folder("z"), into: top, at: start)
        let before = try #require(try test.read { try $0.hex(middle) }).content
        // The inner hex "d" is not a second item.
        let last = try #require(try test.read { try $0.hex(middle) }).childIDs[1]
        #expect(try await test.store.change([last, middle], .delete, at: start + 5) == 2)
        #expect(try names(top, test) == ["a", "z"])
        let item = try #require(try trash(test).first)
        let expected = TrashedItem(
            number: item.number, hex: middle, subject: "b", container: top, containerSubject: "a", hexesInside: 2, links: 3,
            deletedAt: start + 5)
        #expect(try trash(test) == [expected])
        #expect(try await test.store.restoreMine(middle, at: start) == middle)
        #expect(try names(top, test) == ["a", "b", "z", "c", "d"])
        let restored = try #require(try test.read { try $0.hex(middle) }).content
        #expect(restored.texts == before.texts && restored.links(of: 1).count == 1)
        #expect(try trash(test).isEmpty)
        let error = await #expect(throws: HexlistError.self) { try await test.store.restoreMine(middle, at: start) }
        #expect(error?.code == .notFound)
        // If the hex that contained it is gone, the restored hex is at the top level.
        _ = try await test.store.change([middle], .delete, at: start)
        _ = try await test.store.change([top], .delete, at: start)
        #expect(try await test.store.restoreMine(middle, at: start) == middle)
        #expect(try test.read { try $0.hex(middle) }?.summary.parent == nil)
        #expect(try trash(test).map(\.hex) == [top])
        // The container returns without it.
        _ = try await test.store.restoreMine(top, at: start)
        #expect(try names(top, test) == ["a", "z"] && after > middle)
        #expect(try test.read { try $0.hexPage(HexFilter(location: .mine)) }.items.map(\.id) == [middle, top])
        #expect(try insidesAreRight(test) && test.countersAreRight())
    }

    @Test("the trash is emptied by age and by size, page by page; only hexes of My Hexlist are in it") func trashLimits() async throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        _ = try test.trust(peer)
        _ = try test.receive([hex(1)], from: peer)
        #expect(try await test.store.change([1], .delete, at: start) == 1)
        #expect(try trash(test, hexesOnly: false).isEmpty)
        var ids: [Int64] = []
        for number in 0..<5 { ids.append(try await test.store.addMine(folder("\(number)"), at: start)) }
        _ = try await test.store.change(ids, .delete, at: start)
        let first = try test.read { try $0.trashPage(limit: 3, before: nil, hexesOnly: true) }
        #expect(first.items.map(\.subject) == ["4", "3", "2"])
        #expect(try first.next == test.read { try $0.trashNumber(ofHex: ids[2]) })
        // Restoring the last item of a page does not end the list.
        _ = try await test.store.restoreMine(ids[2], at: start)
        #expect(try test.read { try $0.trashPage(limit: 3, before: first.next) }.items.map(\.subject) == ["1", "0"])
        _ = try await test.store.change([ids[2]], .delete, at: start)
        let rest = try test.read { try $0.trashPage(limit: 3, before: first.next) }
        #expect(rest.items.map(\.subject) == ["1", "0"] && rest.next == nil)
        let now = try test.read(\.lived)
        try test.write { writer in
            _ = try writer.change {
                try writer.run("UPDATE node SET lived = ? - 9 + CAST(title AS INTEGER)", now)
                writer.trashBytes = try writer.first("SELECT sum(trashBytes) FROM node") { $0.int(0) } ?? 0
            }
        }
        #expect(try test.write { try $0.maintain(at: now) }.hexesPurged == 0)
        let more = try await test.store.addMine(folder("a long description"), at: start)
        _ = try await test.store.change([more], .delete, at: start)
        #expect(try test.write { try $0.maintain(at: now) }.hexesPurged == 2)
        #expect(try trash(test).map(\.subject) == ["a long description", "2", "4", "3"])
        let days = Int64(TrashedItem.days) * day
        let deleted = try test.read { try $0.all("SELECT lived FROM node WHERE lived IS NOT NULL ORDER BY lived") { $0.int64(0) } }
        let (oldest, newest) = (try #require(deleted.first), try #require(deleted.last))
        #expect(try test.write { try $0.maintain(at: oldest + days - 1) }.hexesPurged == 0)
        #expect(try test.write { try $0.maintain(at: newest + days) }.hexesPurged == 4)
        _ = try await test.store.addMine(folder("y"), at: start)
        #expect(try await test.store.emptyTrash() == (0, 0))
        // Items are removed as a whole, and the last one stays, even if it is too large.
        try test.write { writer in _ = try writer.change { writer.trashBytes = 1 } }
        let large = try await test.store.addMine(content("large", links: 9), at: start)
        let last = try await test.store.addMine(content("last", links: 9), at: start)
        _ = try await test.store.change([large, last], .delete, at: start)
        #expect(try test.write { try $0.maintain(at: now) }.linksPurged == 9)
        #expect(try trash(test).map(\.links) == [9])
        #expect(try test.countersAreRight())
    }

    @Test func aHexIsPutIntoNoneThatIsMissing() async throws {
        let test = try TestStore()
        for number in [Int64(1), 7] {
            let error = await #expect(throws: HexlistError.self) { try await test.store.addMine(folder("a"), into: number, at: start) }
            #expect(error?.code == .notFound && error?.message == "There is no hex \(number).", "\(error?.message ?? "")")
        }
        #expect(try test.read { try $0.newestHex() } == 0)
    }

    @Test func soMuchIsSavedAtOnce() async throws {
        let test = try TestStore()
        let id = try await test.store.addMine(folder("a", links: 5_000), at: start)
        await refused("One request saves 100000 hexes and links at most; these have 105021.") {
            _ = try await test.store.saveMine(Array(repeating: id, count: 21), at: start)
        }
        let error = await #expect(throws: HexlistError.self) { try await test.store.saveMine([id, 99], at: start) }
        #expect(error?.code == .notFound)
        #expect(try test.read { try $0.newestHex() } == id)
    }

    @Test func whatIsReceivedIsSavedWhole() async throws {
        let test = try TestStore()
        let friend = try TestPeer(1)
        _ = try test.trust(friend)
        var tree = content("tree", links: 2, extra: "{\"x\":1}")
        var child = ChildContent(parent: nil)
        child.hexDescription = tree.add("inside")
        child.extra = tree.add("{\"y\":2}")
        tree.add(child: child)
        try test.receive([IncomingHex(content: tree, messageID: message(1), weight: 900), hex(2)], from: friend)
        let saved = try await test.store.saveMine([1, 3], at: start)
        #expect(saved.ids == [4, 6] && saved.hexes == 3 && saved.links == 4)
        let detail = try #require(try test.read { try $0.hex(4) })
        #expect(detail.content.texts == tree.texts && detail.summary.location == .mine && !detail.summary.unread)
        #expect(detail.content.string(detail.content.children[0].extra) == "{\"y\":2}")
        // An inner hex can be saved too, also into a hex.
        #expect(try await test.store.saveMine([2, 1], into: 6, at: start).ids == [7, 8])
        #expect(try names(6, test) == ["A hex", "inside", "tree", "inside"])
        let missing = await #expect(throws: HexlistError.self) { _ = try await test.store.saveMine([1, 99], at: start) }
        #expect(missing?.code == .notFound && test.store.fault == nil)
        #expect(try test.read { try $0.counts() }.mine == 2)
        #expect(try insidesAreRight(test) && test.countersAreRight())
        await refused("Hex 1 is not in My Hexlist (inbox).") { _ = try await test.store.saveMine([3], into: 1, at: start) }
    }

    @Test("a received hex without a sender is saved with its actual sender, so that it is not taken for the user's own")
    func savedWithSender() async throws {
        let test = try TestStore()
        let friend = try TestPeer(1)
        _ = try test.trust(friend)
        var nobody = content("nobody's")
        (nobody.senderUUID, nobody.senderName) = (.empty, .empty)
        try test.receive([IncomingHex(content: nobody, messageID: message(1), weight: 500), hex(2)], from: friend)
        let saved = try await test.store.saveMine([1, 2], at: start)
        let summaries = try saved.ids.map { id in try #require(try test.read { try $0.hex(id) }).summary }
        #expect(summaries.map(\.senderUUID) == [friend.id.description, "SENDER"])
        #expect(summaries.map(\.senderName) == ["", "Sender"])
        // The user's own hexes stay own, also as copies.
        let own = try await test.store.addMine(nobody, at: start)
        let copied = try await test.store.saveMine([own], at: start)
        #expect(try test.read { try $0.hex(copied.ids[0]) }?.summary.senderUUID == "")
        #expect(try test.countersAreRight())
    }

    @Test func linksAreChangedAndKeepWhatTheyHave() async throws {
        let test = try TestStore()
        let top = try await test.store.addMine(folder("top"), at: start)
        let id = try await test.store.addMine(content("a", links: 3, extra: "{\"x\":1}"), into: top, at: start)
        try await test.store.editMine(
            id, MineEdit(description: "b", links: [.init(from: 2, linkDescription: "third"), .init(url: "new"), .init(from: 0)]), at: start)
        let detail = try #require(try test.read { try $0.hex(id) })
        #expect(detail.content.string(detail.content.hexDescription) == "b" && detail.content.string(detail.content.hexColor) == "#ff8800")
        #expect(detail.content.links.map { detail.content.string($0.url) } == ["https://example.com/2", "new", "https://example.com/0"])
        #expect(detail.content.links.map { detail.content.string($0.linkDescription) } == ["third", "", "Link 0"])
        #expect(detail.content.links.map { detail.content.string($0.service) } == ["Dropbox", "Unknown", "Dropbox"])
        #expect(detail.content.links.map { detail.content.string($0.extra) } == ["", "", "{\"x\":1}"])
        try await test.store.editMine(id, MineEdit(color: "", links: [.init(from: 0)]), at: start)
        #expect(try test.read { try $0.hex(top) }?.summary.linksInside == 1)
        #expect(try insidesAreRight(test) && test.countersAreRight())
        await refused("There is no link 2: the hex has 1.") {
            try await test.store.editMine(id, MineEdit(links: [.init(from: 1)]), at: start)
        }
        await refused("A new link has a `url`.") {
            try await test.store.editMine(id, MineEdit(links: [.init(linkDescription: "d")]), at: start)
        }
        let many = Array(repeating: MineEdit.Link(url: "u"), count: 5_001)
        await refused("A hex has at most 5000 links; this one has 5001.") {
            try await test.store.editMine(id, MineEdit(links: many), at: start)
        }
        await refused("Hex \(top) would have 5001 links in all; the maximum is 5000.") {
            try await test.store.editMine(top, MineEdit(links: Array(many.dropFirst())), at: start)
        }
        #expect(try insidesAreRight(test) && test.countersAreRight())
    }

    @Test func hexesAreMovedInAndOut() async throws {
        let test = try TestStore()
        var ids: [Int64] = []
        for name in ["a", "b", "c", "d"] { ids.append(try await test.store.addMine(folder(name, links: 1), at: start)) }
        let (a, b, c, d) = (ids[0], ids[1], ids[2], ids[3])
        try await test.store.moveMine(b, into: a, at: start)
        try await test.store.moveMine(d, into: b, at: start)
        try await test.store.moveMine(c, into: a, beside: .before(b), at: start)
        #expect(try names(a, test) == ["a", "c", "b", "d"])
        #expect(try test.read { try $0.counts() }.mine == 1)
        try await test.store.moveMine(d, into: a, beside: .before(c), at: start)
        try await test.store.moveMine(b, into: a, beside: .before(d), at: start)
        #expect(try names(a, test) == ["a", "b", "d", "c"])
        #expect(try insidesAreRight(test))
        try await test.store.moveMine(d, into: nil, at: start)
        try await test.store.moveMine(d, into: nil, at: start)
        #expect(try names(a, test) == ["a", "b", "c"] && test.read { try $0.counts() }.mine == 2)
        #expect(try insidesAreRight(test) && test.countersAreRight())
    }

    @Test func aCycleAndWhatIsTooMuchIsRefused() async throws {
        let test = try TestStore()
        var chain = [try await test.store.addMine(folder("0"), at: start)]
        for level in 1..<8 { chain.append(try await test.store.addMine(folder("\(level)"), into: chain[level - 1], at: start)) }
        await refused("Hex \(chain[0]) cannot be moved into itself.") { try await test.store.moveMine(chain[0], into: chain[0], at: start) }
        await refused("Hex \(chain[0]) cannot be moved into hex \(chain[7]), which is inside it.") {
            try await test.store.moveMine(chain[0], into: chain[7], at: start)
        }
        await refused("Hex \(chain[3]) cannot be moved into hex \(chain[5]), which is inside it.") {
            try await test.store.moveMine(chain[3], into: chain[5], at: start)
        }
        let tooDeep = "A hex has at most 8 levels of hexes, itself the first."
        await refused(tooDeep) { _ = try await test.store.addMine(folder("8"), into: chain[7], at: start) }
        let other = try await test.store.addMine(folder("other"), at: start)
        await refused(tooDeep) { try await test.store.moveMine(chain[0], into: other, at: start) }
        await refused(tooDeep) { try await test.store.moveMine(other, into: chain[7], at: start) }
        await refused("Hex \(other) is not directly inside hex \(chain[0]).") {
            try await test.store.moveMine(chain[4], into: chain[0], beside: .before(other), at: start)
        }
        await refused("Hex \(other) cannot be moved before itself.") {
            try await test.store.moveMine(other, into: chain[0], beside: .before(other), at: start)
        }
        await refused("Hex \(chain[0]) cannot be moved into hex \(chain[3]), which is inside it.") {
            try await test.store.moveMine(chain[0], into: nil, beside: .after(chain[4]), at: start)
        }
        _ = try await test.store.addMine(folder("links", links: 5_000), into: chain[6], at: start)
        await refused("Hex \(chain[0]) would have 5001 links in all; the maximum is 5000.") {
            _ = try await test.store.addMine(folder("one", links: 1), into: chain[1], at: start)
        }
        let missing = await #expect(throws: HexlistError.self) { try await test.store.moveMine(99, into: other, at: start) }
        #expect(missing?.code == .notFound)
        #expect(try names(chain[0], test).count == 9)
        #expect(try insidesAreRight(test) && test.countersAreRight())
    }
}
