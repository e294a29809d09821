import TestSupport
import Testing

@testable import HexlistLists

@Suite("Undoing changes of a list") struct ListUndoTests {
    private var lists = Scenario()

    /// Undoes changes on machine A.
    private mutating func undo(_ changes: [ListChange], keeping expected: [ListNode.ID: Set<ListChange.Part>] = [:]) throws {
        let kept = try lists.change(.a) { list, _ in try list.undo(changes) }
        #expect(kept == expected)
    }

    /// Returns the changes that a transaction on machine B makes.
    private mutating func changes(_ body: (inout Transaction, inout SeededGenerator) throws -> Void) throws -> [ListChange] {
        let changes = try lists.world.change(1, body)
        try lists.sync()
        return changes
    }

    @Test("every value is as before; values that were changed since stay, and are reported") mutating func values() throws {
        let (hex, other) = (try lists.hex(.a, "H"), try lists.hex(.a, "Other"))
        let link = try lists.link(.a, "1", in: hex)
        try lists.sync()
        let root = lists.list
        let changes = try changes { list, generator in
            try list.setTitle(of: link, to: "B")
            try list.setRegister("done", of: link, to: "true")
            try list.setRegister("color", of: hex, to: "red")
            try list.move(link, to: other, key: list.keys(at: .last, in: other, using: &generator)[0])
            try list.move(hex, to: root, key: list.keys(at: .last, in: root, using: &generator)[0])
        }
        try lists.expect("+ Other", "  - B <1>", "+ H red")
        try lists.rename(.c, link, "C")
        try lists.sync()
        try undo(changes, keeping: [link: [.title]])
        try lists.expect("+ H", "  - C <1>", "+ Other")
        #expect(lists.node(link)?.registers["done"]?.value == "")
    }

    @Test("several changes of one value are undone together, newest first") mutating func series() throws {
        let link = try lists.link(.a, "1", in: try lists.hex(.a, "H"))
        try lists.sync()
        let changes = try changes { list, _ in for title in ["2", "3", "4"] as [UTF8Text] { try list.setTitle(of: link, to: title) } }
        try undo([changes[0]], keeping: [link: [.title]])
        try undo([changes[2]])
        try lists.expect("+ H", "  - 3 <1>")
    }

    @Test("an addition is undone together with later changes of it; another change keeps it") mutating func additionAndChanges() throws {
        let hex = try lists.hex(.a, "H")
        try lists.sync()
        var link: ListNode.ID?
        let changes = try changes { list, generator in
            let key = try list.keys(at: .last, in: hex, using: &generator)[0]
            let id = try list.add(.link, in: hex, key: key, title: "1", url: "1", using: &generator)
            for title in ["2", "3"] as [UTF8Text] { try list.setTitle(of: id, to: title) }
            link = id
        }
        let id = try #require(link)
        try undo([changes[0], changes[1]], keeping: [id: [.addition, .title]])
        try lists.expect("+ H", "  - 3 <1>")
        try undo(changes)
        try lists.expect("+ H")
        try lists.restore(.a, id)
        try undo(changes, keeping: [id: [.addition, .title]])
    }

    @Test("a deletion and a restoring of one node are undone together") mutating func deletionAndRestoring() throws {
        let link = try lists.link(.a, "1", in: try lists.hex(.a, "H"))
        try lists.sync()
        let changes = try changes { list, _ in
            try list.delete(link)
            try list.restore(link)
        }
        try undo(changes)
        try lists.expect("+ H", "  - t1 <1>")
        try undo([changes[1]], keeping: [link: [.restoring]])
    }

    @Test("all changes of a value are undone together; not those before a change that stays") mutating func wholeSeries() throws {
        let link = try lists.link(.a, "1", in: try lists.hex(.a, "H"))
        try lists.sync()
        let changes = try changes { list, _ in for title in ["2", "3", "4"] as [UTF8Text] { try list.setTitle(of: link, to: title) } }
        try undo([changes[0], changes[2]], keeping: [link: [.title]])
        try lists.expect("+ H", "  - 3 <1>")
        let more = try self.changes { list, _ in for title in ["5", "6"] as [UTF8Text] { try list.setTitle(of: link, to: title) } }
        try undo(more)
        try lists.expect("+ H", "  - 3 <1>")
    }

    @Test("a deletion of a hex: it comes back with its contents, without what was deleted on its own") mutating func deletion() throws {
        let hex = try lists.hex(.a, "H")
        let inner = try lists.hex(.a, "Inner", in: hex)
        let (first, second) = (try lists.link(.a, "1", in: inner), try lists.link(.a, "2", in: hex))
        try lists.sync()
        try lists.delete(.c, second)
        try lists.sync()
        let changes = try changes { list, _ in try list.delete(hex) }
        try lists.expect()
        try undo(changes)
        try lists.expect("+ H", "  + Inner", "    - t1 <1>")
        #expect(lists.node(first)?.place?.version == lists.node(first, on: .c)?.place?.version)
        // A change that was undone changes nothing a second time.
        try undo(changes)
    }

    @Test("an addition: deleted, unless it was changed since; a hex that others filled stays with their links") mutating func addition()
        throws
    {
        let root = lists.list
        let changes = try changes { list, generator in
            let key = try list.keys(count: 2, at: .last, in: root, using: &generator)
            let hex = try list.add(.hex, in: root, key: key[0], title: "New", using: &generator)
            for url in ["1", "2"] as [UTF8Text] { _ = try list.add(.link, in: hex, key: key[1], title: url, url: url, using: &generator) }
        }
        let hex = try #require(changes.first).after.id
        try lists.link(.c, "3", in: hex)
        try lists.rename(.c, changes[1].after.id, "changed")
        try lists.sync()
        try undo(changes, keeping: [changes[1].after.id: [.addition]])
        try lists.expect("+ New", "  - changed <1>", "  - t3 <3>")
    }

    @Test("a restoring, and an undo: undone again") mutating func again() throws {
        let link = try lists.link(.a, "1", in: try lists.hex(.a, "H"))
        try lists.sync()
        try lists.delete(.a, link)
        try lists.sync()
        let restoring = try changes { list, _ in try list.restore(link) }
        try lists.expect("+ H", "  - t1 <1>")
        try undo(restoring)
        try lists.expect("+ H")
    }

    @Test("a value of a node that was deleted since stays as it is") mutating func deletedSince() throws {
        let link = try lists.link(.a, "1", in: try lists.hex(.a, "H"))
        try lists.sync()
        let changes = try changes { list, _ in try list.setTitle(of: link, to: "B") }
        try lists.delete(.c, link)
        try lists.sync()
        try undo(changes, keeping: [link: [.title]])
        try lists.expect("+ H")
    }
}
