import HexlistAPI
import HexlistModel
import Testing

@testable import hexlist

@Suite("Changes of links by their nodes") struct LinkChangesTests {
    private func hex(_ nodes: String...) -> HexJSON {
        var hex = HexJSON(
            id: 7, location: "mine", senderUUID: "", senderName: "", description: "", color: "", linkCount: nodes.count, unread: false,
            receivedAt: Timestamp(milliseconds: 0),
            links: nodes.map { node in
                var link = LinkJSON(url: "https://\(node).example/", linkDescription: node)
                link.node = node
                return link
            })
        hex.node = "hex"
        return hex
    }

    private func changes(_ edits: [LinkEdit]) throws -> [MineNodeChange] { try edits.changes(of: hex("a", "b", "c", "d")) }

    private func kept(_ numbers: Int...) -> [LinkEdit] { numbers.map { LinkEdit(from: $0) } }

    private let new = LinkEdit(url: "https://new.example/", linkDescription: "new")
    private let added = MineNewLink(url: "https://new.example/", title: "new")

    @Test("links that stay are not named") func unchanged() throws {
        #expect(try changes(kept(1, 2, 3, 4)) == [])
        #expect(try changes([LinkEdit(from: 1, linkDescription: "a")] + kept(2, 3, 4)) == [])
        #expect(try [LinkEdit]().changes(of: hex()) == [])
    }

    @Test("links are removed and renamed by their nodes") func values() throws {
        #expect(try changes(kept(1, 3)) == [MineNodeChange(remove: "b"), MineNodeChange(remove: "d")])
        #expect(
            try changes(kept(1, 2) + [LinkEdit(from: 3, linkDescription: "")] + kept(4)) == [MineNodeChange(node: "c", title: "")])
        // The same text for a person, but other bytes.
        var hex = hex("a")
        hex.links?[0].linkDescription = "é"
        #expect(try [LinkEdit(from: 1, linkDescription: "e\u{301}")].changes(of: hex) == [MineNodeChange(node: "a", title: "e\u{301}")])
    }

    @Test("as few links as possible are moved, and new ones are added behind the link before them") func places() throws {
        #expect(try changes(kept(2, 3, 4, 1)) == [MineNodeChange(move: "a")])
        #expect(try changes(kept(4, 1, 2, 3)) == [MineNodeChange(move: "d", after: "hex")])
        #expect(try changes(kept(1, 3, 2, 4)).count == 1)
        #expect(try changes(kept(1, 2) + [new] + kept(3, 4)) == [MineNodeChange(add: added, after: "b")])
        #expect(try changes([new] + kept(1, 2, 3, 4)) == [MineNodeChange(add: added, after: "hex")])
        #expect(try changes(kept(1, 2, 3, 4) + [new]) == [MineNodeChange(add: added)])
        #expect(
            try changes(kept(2) + [new] + kept(1, 4))
                == [MineNodeChange(remove: "c"), MineNodeChange(move: "b", after: "hex"), MineNodeChange(add: added, after: "hex")])
    }

    @Test("a hex without ids of its links is refused") func older() throws {
        var older = hex("a")
        older.links?[0].node = nil
        #expect(throws: HexlistError.self) { try kept(1).changes(of: older) }
        older = hex("a")
        older.node = nil
        #expect(throws: HexlistError.self) { try kept(1).changes(of: older) }
    }
}
