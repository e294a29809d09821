import HexlistModel
import TestSupport
import Testing

@testable import HexlistLists

/// Large trees as a hostile peer would make them. Loop iterations are counted, because times depend on the machine.
@Suite("Structure of lists") struct ListStructureTests {
    private static let count = 20_000

    /// A tree of hexes under `root`, each with the parent that the test gives. `ids` is ascending.
    private struct Hexes {
        let root: ListNode.ID
        let ids: [ListNode.ID]
        var nodes: [ListNode]

        /// - Parameter parent: the index of the parent of each hex; `nil` for the root.
        init(parent: (Int) -> Int?) {
            var generator = SeededGenerator(seed: 7)
            root = ListNode.ID(kind: .hex, time: 0, using: &generator)
            ids = (0..<ListStructureTests.count).map { ListNode.ID(kind: .hex, time: Int64($0 + 1), using: &generator) }
            nodes = []
            for (index, id) in ids.enumerated() {
                var node = ListNode(id: id)
                let version = ListVersion(clock: Int64(index + 1), replica: ReplicaNumber(1))
                node.place = ListNode.Place(version: version, parent: parent(index).map { ids[$0] } ?? root, key: OrderKey(bytes: [1]))
                nodes.append(node)
            }
        }

        mutating func delete(with hex: (Int) -> Int?) {
            for index in nodes.indices {
                guard let version = nodes[index].version else { continue }
                nodes[index].deletion = DeletionMark(version: version, with: hex(index).map { ids[$0] })
            }
        }

        func structure(leaves: Int = 0) -> ListStructure {
            ListStructure(root: root, hexes: nodes.map { ListStructure.Hex($0, leaves: leaves) })
        }
    }

    /// Checks that every hex is in the root within 8 steps, and that the number of loop iterations is linear.
    /// - Parameter evaluations: how often the tree was derived.
    private func check(_ structure: ListStructure, evaluations: Int = 1, _ location: SourceLocation = #_sourceLocation) {
        #expect(structure.steps <= 8 * Self.count * evaluations, sourceLocation: location)
        let indices = Dictionary(uniqueKeysWithValues: structure.hexes.enumerated().map { ($1.id, $0) })
        var deepest = 0
        for index in structure.hexes.indices {
            var level = 1
            var container = structure.container(at: index)
            while container != structure.root, level <= 9, let outer = indices[container] {
                level += 1
                container = structure.container(at: outer)
            }
            deepest = max(deepest, level)
        }
        #expect(deepest <= ListStructure.levels, sourceLocation: location)
    }

    @Test("a chain of 20 000 hexes, in both orders", .offPool) func chain() {
        for isReversed in [false, true] {
            let last = Self.count - 1
            let structure = Hexes { isReversed ? ($0 == last ? nil : $0 + 1) : ($0 == 0 ? nil : $0 - 1) }.structure()
            check(structure)
            #expect(structure.ignoredMoves.isEmpty)
            #expect(structure.hexes.indices.allSatisfy { structure.state(at: $0) == .present })
        }
    }

    @Test("one cycle of 20 000 hexes: the newest move is ignored", .offPool) func cycle() {
        let structure = Hexes { ($0 + 1) % Self.count }.structure()
        check(structure)
        #expect(structure.ignoredMoves.map(\.hex) == [structure.hexes[Self.count - 1].id])
        #expect(structure.ignoredMoves.map(\.container) == [structure.root])
    }

    @Test("10 000 cycles of two hexes, and 20 000 hexes inside themselves", .offPool) func cycles() {
        let pairs = Hexes { $0 ^ 1 }.structure()
        check(pairs)
        #expect(pairs.ignoredMoves.map(\.hex) == stride(from: 1, to: Self.count, by: 2).map { pairs.hexes[$0].id })
        let selves = Hexes { $0 }.structure()
        check(selves)
        #expect(selves.ignoredMoves.count == Self.count)
    }

    @Test("half of the hexes lead into a cycle of the others", .offPool) func tail() {
        let half = Self.count / 2
        check(Hexes { $0 < half ? ($0 + 1) % half : $0 - 1 }.structure())
    }

    @Test("a chain of deletions: all are deleted if the first one is", .offPool) func deletions() {
        for isFirstDeleted in [false, true] {
            var hexes = Hexes { _ in nil }
            hexes.delete { $0 == 0 ? nil : $0 - 1 }
            if !isFirstDeleted { hexes.nodes[0].deletion = nil }
            let structure = hexes.structure()
            check(structure)
            #expect(structure.hexes.indices.allSatisfy { structure.state(at: $0) == (isFirstDeleted ? .deleted : .present) })
        }
    }

    @Test("a cycle of deletions, and deletions with unknown hexes: deleted", .offPool) func deletionCycle() {
        var hexes = Hexes { _ in nil }
        hexes.delete { ($0 + 1) % Self.count }
        let structure = hexes.structure()
        check(structure)
        #expect(structure.hexes.indices.allSatisfy { structure.state(at: $0) == .deleted })

        var generator = SeededGenerator(seed: 8)
        let unknown = ListNode.ID(kind: .hex, time: 9, using: &generator)
        for index in hexes.nodes.indices {
            hexes.nodes[index].deletion = hexes.nodes[index].version.map { DeletionMark(version: $0, with: unknown) }
        }
        let other = hexes.structure()
        #expect(other.hexes.indices.allSatisfy { other.state(at: $0) == .deleted } && !other.isAlive(unknown))
    }

    @Test("a deleted chain with a link in its last hex: what contains the link is shown", .offPool) func retained() {
        var hexes = Hexes { $0 == 0 ? nil : $0 - 1 }
        hexes.delete { _ in nil }
        var structure = hexes.structure()
        structure.addLeaves([hexes.ids[Self.count - 1]: 1])
        check(structure, evaluations: 2)
        // The last hex is at level 8, inside the hexes of the first 7 levels.
        let retained = structure.hexes.indices.filter { structure.state(at: $0) == .retained }
        #expect(retained == Array(0..<7) + [Self.count - 1])
        structure.addLeaves([hexes.ids[Self.count - 1]: -1])
        #expect(structure.hexes.indices.allSatisfy { structure.state(at: $0) == .deleted })
    }

    @Test("links with an unknown parent, deleted with a hex that is revived and deleted again", .offPool) func links() throws {
        var generator = SeededGenerator(seed: 9)
        let root = ListNode.ID(kind: .hex, time: 0, using: &generator)
        let hex = ListNode.ID(kind: .hex, time: 1, using: &generator)
        func version(_ clock: Int64) -> ListVersion { ListVersion(clock: clock, replica: ReplicaNumber(1)) }
        var transaction = Transaction(
            storage: MemoryStorage(list: root), replica: ReplicaNumber(2), clock: HybridClock(), digest: ListDigest(), now: 0)
        let count = 2_000
        for index in 0..<count {
            var link = ListNode(id: ListNode.ID(kind: .link, time: 2, using: &generator))
            link.place = ListNode.Place(version: version(1), parent: hex, key: OrderKey(bytes: [UInt8(index & 255)]))
            link.deletion = DeletionMark(version: version(1), with: hex)
            try transaction.merge(link)
        }
        _ = try transaction.deriveTree()
        #expect(transaction.storage.contents(of: root).isEmpty)
        var node = ListNode(id: hex)
        node.place = ListNode.Place(version: version(1), parent: root, key: OrderKey(bytes: [1]))
        node.deletion = DeletionMark(version: version(1))
        try transaction.merge(node)
        _ = try transaction.deriveTree()
        #expect(transaction.storage.row(hex)?.state == .deleted)
        for round in 0..<3 {
            node.title = ListNode.Register(version: version(Int64(2 * round + 2)), value: "again")
            try transaction.merge(node)
            _ = try transaction.deriveTree()
            #expect(transaction.storage.row(hex)?.leaves == count && transaction.storage.contents(of: hex).count == count)
            node.deletion = DeletionMark(version: version(Int64(2 * round + 2)))
            try transaction.merge(node)
            _ = try transaction.deriveTree()
            #expect(transaction.storage.row(hex)?.state == .deleted && transaction.storage.contents(of: hex).isEmpty)
        }
    }

    @Test("links whose hex arrives later are in the root until then", .offPool) func waiting() throws {
        var lists = Scenario()
        let hex = try lists.hex(.a, "H")
        let link = try lists.link(.a, "1", in: hex)
        var machine = Replica(list: lists.list, seed: 5)
        var page = lists.world.machines[0].page(to: ReplicaNumber(0), after: nil, limit: .max)
        let nodes = page.nodes
        page.nodes = nodes.filter { $0.id == link }
        try machine.receive(page, from: 0, at: lists.world.now)
        #expect(machine.text == "- t1 <1>\n")
        page.nodes = nodes.filter { $0.id == hex }
        try machine.receive(page, from: 0, at: lists.world.now)
        #expect(machine.text == "+ H\n  - t1 <1>\n")
    }

    @Test("changed values of the root are reported like those of a hex, without another hex or its contents", .offPool)
    func rootValues() throws {
        var lists = Scenario()
        let root = lists.list
        try lists.link(.a, "1", in: lists.hex(.a, "H"))
        func tree(_ change: (inout Transaction) throws -> Void) throws -> ListTreeChanges {
            var transaction = Transaction(
                storage: lists.world.machines[0].storage, replica: ReplicaNumber(3), clock: lists.world.machines[0].clock,
                digest: ListDigest(), now: lists.world.now)
            try change(&transaction)
            return try transaction.deriveTree()
        }
        let rename = try tree { try $0.setTitle(of: root, to: "Reading") }
        #expect(rename == ListTreeChanges(hexes: [root]))
        let link = try tree {
            var generator = SeededGenerator(seed: 4)
            _ = try $0.add(.link, in: root, key: OrderKey(bytes: [1]), title: "t", url: "u", using: &generator)
        }
        #expect(link.hexes.isEmpty && link.contents.keys.elementsEqual([root]))
        let start = try #require(link.contents[root]?.start)
        #expect(start.key == [1] && link.contents[root]?.values == nil)
        let nothing = try tree {
            try $0.merge(ListNode(id: root))
            _ = try $0.deriveTree()
            try $0.merge(ListNode(id: root))
        }
        #expect(nothing == ListTreeChanges())
        try lists.rename(.a, root, "Reading")
        try lists.change(.b) { list, _ in try list.setRegister("color", of: root, to: "red") }
        try lists.expect("+ H", "  - t1 <1>")
        let node = try #require(lists.node(root, on: .c))
        #expect(node.title?.value == "Reading" && node.registers["color"]?.value == "red")
    }

    @Test("the root is not deleted by a deletion mark, not moved by a place, and not deleted by an undo", .offPool) func rootMark() throws {
        var lists = Scenario()
        let root = lists.list
        let hex = try lists.hex(.a, "H")
        try lists.link(.a, "1", in: hex)
        try lists.link(.a, "2", in: root)
        let first = try lists.world.change(0) { list, _ in try list.setTitle(of: root, to: "Reading") }
        for with in [nil, root, hex] {
            var forged = ListNode(id: root)
            let version = ListVersion(clock: HybridClock.time(milliseconds: lists.world.now), replica: ReplicaNumber(9))
            forged.deletion = DeletionMark(version: version, with: with)
            forged.place = ListNode.Place(version: version, parent: with ?? hex, key: OrderKey(bytes: [1]), previousParent: hex)
            try lists.change(.b) { list, _ in _ = try list.merge(forged, isReceived: true) }
            try lists.expect("- t2 <2>", "+ H", "  - t1 <1>")
            let deleted = try lists.change(.a) { list, _ in try list.delete(root) }
            let isMoved = try lists.change(.a) { list, _ in try list.move(root, to: hex, key: OrderKey(bytes: [1])) }
            #expect(deleted.isEmpty && !isMoved)
            let rename = try lists.world.change(0) { list, _ in try list.setTitle(of: root, to: "Again") }
            let kept = try lists.change(.a) { list, _ in try list.undo(first + rename) }
            #expect(kept.isEmpty)
            try lists.expect("- t2 <2>", "+ H", "  - t1 <1>")
            #expect(lists.node(root, on: .c)?.title?.value == "Reading")
        }
        let kept = try lists.change(.a) { list, _ in try list.undoAddition(of: root, version: nil, list.ignoredVersions(of: first)).kept }
        #expect(kept == [root])
        try lists.expect("- t2 <2>", "+ H", "  - t1 <1>")
    }

    @Test("nodes of an unknown kind are kept and passed on, but not shown", .offPool) func unknownKind() throws {
        var lists = Scenario()
        var generator = SeededGenerator(seed: 10)
        var node = ListNode(id: ListNode.ID(kind: ListNode.Kind(rawValue: 9), time: 1, using: &generator))
        node.title = ListNode.Register(version: ListVersion(clock: 5, replica: ReplicaNumber(1)), value: "later version")
        try lists.change(.a) { list, _ in _ = try list.merge(node) }
        try lists.expect()
        #expect(lists.node(node.id, on: .c) == node)
    }
}
