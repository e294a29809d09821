import GRDB
import HexlistModel
import Testing

@testable import HexlistStore

/// Inner hexes: stored completely, listed nowhere, deleted with their parent.
@Suite(.timeLimit(.minutes(5))) struct TreeTests {
    /// A hex with inner hexes: `shape` has the parent's index and the number of links of each.
    private func tree(_ shape: [(Int?, Int)]) -> HexContent {
        var content = HexlistStoreTests.content("Top", links: 1)
        for (number, (parent, links)) in shape.enumerated() {
            var child = ChildContent(parent: parent)
            child.hexDescription = content.add("Inside \(number)")
            child.extra = content.add(number == 1 ? "{\"x\":1}" : "")
            let first = content.childLinks.count
            for link in 0..<links {
                content.childLinks.append(
                    LinkContent(url: content.add("u\(number).\(link)"), linkDescription: content.add(""), service: content.add("Unknown")))
            }
            child.links = first..<first + links
            content.add(child: child)
        }
        return content
    }

    /// Three levels: 0 and 1 directly inside, 2 and 3 inside 0, 4 inside 1.
    private var small: HexContent { tree([(nil, 1), (nil, 0), (0, 2), (0, 0), (1, 3)]) }

    /// The contents of a tree without ids.
    private func texts(_ content: HexContent) -> [String] {
        content.texts
            + content.children.indices.flatMap { index in
                let child = content.children[index]
                return ["\(String(describing: child.parent))"] + [child.senderUUID, child.hexDescription, child.extra].map(content.string)
                    + content.links(of: index).flatMap { [$0.url, $0.service, $0.extra].map(content.string) }
            }
    }

    private func incoming(_ content: HexContent, _ number: UInt64 = 1) -> IncomingHex {
        IncomingHex(content: content, messageID: message(number), weight: content.weight(frame: 900))
    }

    private func rows(_ table: String, in test: TestStore) throws -> Int {
        try test.read { reader in try Int.fetchOne(reader.db, sql: "SELECT count(*) FROM \(table)") ?? -1 }
    }

    @Test("the linked files of a hex are counted at all levels, with hostile sizes")
    func fileTotals() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        _ = try test.trust(peer)
        var content = small
        let extras = [#"{"size":5}"#, #"{"size":-7}"#, #"{"size":"x"}"#, #"{"size":9223372036854775807}"#, "", #"{"a":1}"#]
        for (number, extra) in extras.enumerated() {
            let link = LinkContent(
                url: content.add("hexlist://x/\(number)"), linkDescription: content.add(""), service: content.add("Unknown"),
                extra: content.add(extra))
            content.links.append(link)
        }
        var inner = tree([(nil, 1)])
        inner.childLinks[0].url = inner.add("hexlist://x/y")
        inner.childLinks[0].extra = inner.add(#"{"size":8}"#)
        _ = try test.receive([incoming(content), incoming(inner, 2), hex(3)], from: peer)
        let page = try test.read { try $0.hexPage() }.items
        let totals = try test.read { try $0.fileTotals(of: page) }
        #expect(totals.count == 2 && page.count == 3)
        #expect(totals[1]?.count == 6 && totals[1]?.bytes == 1 << 62)
        #expect(totals[page[1].id]?.count == 1 && totals[page[1].id]?.bytes == 8)
    }

    @Test func aTreeIsKeptWhole() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        _ = try test.trust(peer)
        #expect(
            try test.receive([incoming(small), hex(2), incoming(small)], from: peer) == [.stored, .stored, .duplicate(of: .stored)])
        let detail = try #require(try test.read { try $0.hex(1) })
        #expect(texts(detail.content) == texts(small))
        #expect(detail.childIDs == [2, 3, 4, 5, 6])
        #expect(detail.summary.hexesInside == 5 && detail.summary.linksInside == 6 && detail.summary.linkCount == 1)
        #expect(try test.read { try $0.hexPage() }.items.map(\.id) == [7, 1])
        #expect(try test.countersAreRight())
        let inner = try #require(try test.read { try $0.hex(2) })
        #expect(inner.summary.parent == 1 && inner.summary.location == .inbox && inner.summary.peer == peer.id)
        #expect(inner.summary.hexesInside == 2 && inner.summary.linksInside == 2)
        #expect(inner.content.children.map { inner.content.string($0.hexDescription) } == ["Inside 2", "Inside 3"])
        let both = try test.read { try $0.hexes([2, 1, 7]) }
        #expect(both.map(\.content.children.count) == [2, 5, 0] && texts(both[1].content) == texts(small))
    }

    @Test func whatIsInsideIsOnNoListAndInNoRange() async throws {
        let test = try TestStore()
        let (friend, stranger) = (try TestPeer(1), try TestPeer(2))
        _ = try test.trust(friend)
        try test.receive([incoming(small)], from: friend)
        try test.receive([incoming(small)], from: stranger)
        _ = try test.write { try $0.insertMine(self.small, at: start) }
        for (location, id) in [(HexLocation.inbox, Int64(1)), (.held, 7), (.mine, 13)] {
            #expect(try test.read { try $0.hexPage(HexFilter(location: location)) }.items.map(\.id) == [id])
            #expect(try test.read { try $0.hexIDs(.ids(1...99, in: location)) }.items == [id])
        }
        #expect(try test.read { try $0.hexIDs(.ids(1...99, in: nil)) }.items == [1, 7, 13])
        #expect(try await test.store.change(.ids(1...99, in: nil), .read(true), at: start) == 2)
        #expect(try await test.store.change([7], .accept, at: start) == 1)
        let inner = try #require(try test.read { try $0.hex(8) })
        #expect(inner.summary.location == .inbox)
        #expect(try test.countersAreRight())
    }

    @Test func whatIsInsideIsDeletedWithTheHex() async throws {
        let test = try TestStore()
        let (friend, stranger) = (try TestPeer(1), try TestPeer(2))
        _ = try test.trust(friend)
        try test.receive([incoming(small), hex(2)], from: friend)
        try test.receive([incoming(small)], from: stranger)
        #expect(try await test.store.change([1], .delete, at: start) == 1)
        #expect(try await test.store.change(.list(HexFilter(location: .held)), .delete, at: start) == 1)
        #expect(try rows("hex", in: test) == 1 && rows("link", in: test) == 2)
        #expect(try test.countersAreRight())
        // A held hex with inner hexes expires as a whole.
        try test.receive([incoming(small, 5)], from: stranger)
        #expect(try test.write { try $0.maintain(at: start + 8 * day) }.heldDropped == 1)
        #expect(try rows("hex", in: test) == 1)
        #expect(try test.countersAreRight())
    }

    @Test func aHexInsideIsChangedWithTheOneItIsIn() async throws {
        let test = try TestStore()
        let friend = try TestPeer(1)
        _ = try test.trust(friend)
        try test.receive([incoming(small)], from: friend)
        for change in [HexChange.delete, .read(true), .accept] {
            let error = await #expect(throws: HexlistError.self) { _ = try await test.store.change([4], change, at: start) }
            #expect(error?.code == .badRequest && error?.message == "Hex 4 is inside hex 1.")
        }
        // In My Hexlist an inner hex can be deleted alone, and its parents no longer count it.
        let mine = try test.write { try $0.insertMine(self.small, at: start) }
        #expect(try await test.store.change([mine + 1, mine + 3, mine + 5], .delete, at: start) == 3)
        let detail = try #require(try test.read { try $0.hex(mine) })
        #expect(detail.childIDs == [mine + 2] && detail.summary.hexesInside == 1 && detail.summary.linksInside == 0)
        #expect(try test.countersAreRight())
    }

    @Test func theBoundsAreThoseOfTheWholeTree() throws {
        let test = try TestStore()
        let friend = try TestPeer(1)
        _ = try test.trust(friend)
        let links = tree([(nil, 5_000)])
        let empty = tree(Array(repeating: (nil, 0), count: 5_001))
        #expect(
            try test.receive([incoming(links), incoming(empty, 2)], from: friend)
                == Array(repeating: .refused(.tooManyLinks), count: 2))
        for content in [links, empty] { #expect(throws: HexlistError.self) { try test.write { try $0.insertMine(content, at: start) } } }
        let wide = [(Int?, Int)](repeating: (nil, 0), count: 4_993)
        let deep: [(Int?, Int)] = [(nil, 0)] + (4_993..<4_999).map { ($0, $0 == 4_998 ? 4_999 : 0) }
        let largest = tree(wide + deep)
        #expect(largest.levels == 8)
        #expect(try test.receive([incoming(largest, 3)], from: friend) == [.stored])
        let detail = try #require(try test.read { try $0.hex(1) })
        #expect(texts(detail.content) == texts(largest))
        #expect(try test.countersAreRight())
    }

    @Test func noPlaceIsWithoutWhatItIsIn() throws {
        let test = try TestStore()
        let id = try test.write { try $0.insertMine(self.small, at: start) }
        for sql in [
            "UPDATE hex SET parent = NULL WHERE id = \(id + 1)", "UPDATE hex SET location = 'mine' WHERE id = \(id + 1)",
            "UPDATE hex SET location = 'elsewhere' WHERE id = \(id)",
        ] {
            #expect(throws: (any Error).self) { try test.store.onWritingConnection { try $0.execute(sql: sql) } }
        }
    }
}
