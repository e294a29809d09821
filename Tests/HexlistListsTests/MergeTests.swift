import HexlistModel
import TestSupport
import Testing

@testable import HexlistLists

@Suite("Merging nodes") struct MergeTests {
    /// Random nodes of one id, with few different versions and values, so that equal versions are frequent.
    private struct Nodes {
        var generator: SeededGenerator
        let ids: [ListNode.ID]

        init(seed: UInt64) {
            var generator = SeededGenerator(seed: seed)
            ids = (0..<3).map { _ in ListNode.ID(kind: .hex, time: 1, using: &generator) }
            self.generator = generator
        }

        mutating func random(_ bound: Int) -> Int { Int(generator.next() % UInt64(bound)) }

        mutating func version() -> ListVersion {
            ListVersion(clock: Int64(1 + random(3)), replica: ReplicaNumber(UInt64(random(2))))
        }

        mutating func text() -> UTF8Text { UTF8Text(["", "a", "b", "é", "e\u{301}"][random(5)]) }

        mutating func next(_ id: ListNode.ID) -> ListNode {
            var node = ListNode(id: id)
            if random(2) == 0 { (node.url, node.service) = (text(), text()) }
            if random(3) > 0 {
                node.place = ListNode.Place(
                    version: version(), parent: ids[random(3)], key: OrderKey(bytes: [UInt8(random(2))]), previousParent: ids[random(3)])
            }
            if random(3) > 0 { node.title = ListNode.Register(version: version(), value: text()) }
            for name in ["a", "é", "e\u{301}"] where random(3) == 0 {
                node.registers[UTF8Text(name)] = ListNode.Register(version: version(), value: text())
            }
            if random(2) == 0 { node.deletion = DeletionMark(version: version(), with: random(2) == 0 ? nil : ids[random(3)]) }
            return node
        }
    }

    private func merged(_ nodes: ListNode...) -> ListNode {
        nodes.dropFirst().reduce(into: nodes[0]) { $0.merge($1) }
    }

    @Test("merging is commutative, associative and idempotent, also for equal versions") func laws() {
        var nodes = Nodes(seed: 1)
        let id = nodes.ids[0]
        for _ in 0..<20_000 {
            let (first, second, third) = (nodes.next(id), nodes.next(id), nodes.next(id))
            let all = merged(merged(first, second), third)
            guard merged(first, second) == merged(second, first), merged(first, merged(second, third)) == all,
                merged(all, first) == all, merged(all, all) == all
            else {
                Issue.record("\(first)\n\(second)\n\(third)")
                return
            }
        }
    }

    @Test(
        "of more than 64 registers by several writers, or 256 of a shared list, the newest stay; merging is still associative",
        arguments: [(kind: .hex, maximum: 64), (kind: .link, maximum: 64), (kind: .sharedList, maximum: 256)]
            as [(kind: ListNode.Kind, maximum: Int)])
    func manyRegisters(kind: ListNode.Kind, maximum: Int) {
        var nodes = Nodes(seed: 6)
        let id = ListNode.ID(kind: kind, time: 1, using: &nodes.generator)
        func node() -> ListNode {
            var node = ListNode(id: id)
            for _ in 0..<maximum - 4 {
                let version = ListVersion(clock: Int64(1 + nodes.random(30)), replica: ReplicaNumber(0))
                node.registers[UTF8Text("n\(nodes.random(maximum * 3 / 2))")] = ListNode.Register(version: version, value: nodes.text())
            }
            node.registers["read"] = ListNode.Register(version: nodes.version(), value: "")
            return node
        }
        var most = 0
        for _ in 0..<100 {
            let (first, second, third) = (node(), node(), node())
            let all = merged(merged(first, second), third)
            #expect(merged(first, merged(second, third)) == all && merged(third, first, second) == all && merged(all, second) == all)
            #expect(all.registers.count <= maximum + 1 && all.registers["read"] != nil)
            most = max(most, all.registers.count)
            var again = all
            let changes = again.merge(first)
            #expect(changes.isEmpty)
        }
        #expect(most == maximum + 1)
    }

    @Test("a merge reports what changed") func changes() {
        var nodes = Nodes(seed: 2)
        let id = nodes.ids[0]
        for _ in 0..<5_000 {
            let (first, second) = (nodes.next(id), nodes.next(id))
            var node = first
            let changes = node.merge(second)
            #expect(changes.contains(.place) == (node.place != first.place))
            #expect(changes.contains(.title) == (node.title != first.title))
            #expect(changes.contains(.registers) == (node.registers != first.registers))
            #expect(changes.contains(.deletion) == (node.deletion != first.deletion))
            #expect(changes.contains(.content) == (node.url != first.url || node.service != first.service))
        }
    }

    @Test("texts are compared by bytes: canonically equivalent ones are different") func bytes() {
        #expect(UTF8Text("é") != UTF8Text("e\u{301}") && Set([UTF8Text("é"), UTF8Text("e\u{301}")]).count == 2)
        #expect(UTF8Text("e\u{301}") < UTF8Text("é") && UTF8Text("Z") < UTF8Text("a"))
    }

    @Test("a purged link ignores values that its deletion mark covers, and is revived by newer ones") func purge() {
        var generator = SeededGenerator(seed: 3)
        let id = ListNode.ID(kind: .link, time: 1, using: &generator)
        let root = ListNode.ID(kind: .hex, time: 1, using: &generator)
        func version(_ clock: Int64) -> ListVersion { ListVersion(clock: clock, replica: ReplicaNumber(1)) }
        var link = ListNode(id: id)
        link.url = "u"
        link.place = ListNode.Place(version: version(1), parent: root, key: OrderKey(bytes: [1]))
        link.title = ListNode.Register(version: version(2), value: "t")
        let live = link
        link.purge()
        #expect(link == live)  // no effect, because the link is not deleted
        link.deletion = DeletionMark(version: version(2), with: root)
        link.purge()
        #expect(link.place != nil)  // no effect, because a change of the hex can revive the link
        link.deletion = DeletionMark(version: version(2))
        let deleted = link
        link.purge()
        #expect(link.isPurged && link.url.isEmpty && link.deletion == deleted.deletion)
        #expect(ListDigest.hash(of: link, in: root) == ListDigest.hash(of: deleted, in: root))

        var purged = link
        #expect(purged.merge(live).isEmpty && purged.merge(deleted).isEmpty && purged == link)
        var edited = live
        edited.title = ListNode.Register(version: version(3), value: "new")
        #expect(purged.merge(edited) == [.place, .title, .content])
        #expect(purged.url == "u" && purged.title?.value == "new" && !purged.isMarkedDeleted)
    }

    @Test("a hex keeps its values when purged, because something inside can revive it") func purgeHex() {
        var nodes = Nodes(seed: 4)
        var hex = nodes.next(nodes.ids[0])
        hex.title = ListNode.Register(version: ListVersion(clock: 1, replica: ReplicaNumber(0)), value: "t")
        hex.deletion = DeletionMark(version: ListVersion(clock: 9, replica: ReplicaNumber(0)))
        let before = hex
        hex.purge()
        #expect(hex == before)
    }

    @Test("private registers neither revive a deleted link nor count for the digest") func privateRegisters() {
        let nodes = Nodes(seed: 5)
        let id = nodes.ids[0]
        var node = ListNode(id: id)
        node.title = ListNode.Register(version: ListVersion(clock: 1, replica: ReplicaNumber(0)), value: "t")
        node.deletion = DeletionMark(version: ListVersion(clock: 1, replica: ReplicaNumber(0)))
        let hash = ListDigest.hash(of: node, in: id)
        node.registers["read"] = ListNode.Register(version: ListVersion(clock: 9, replica: ReplicaNumber(0)), value: "true")
        #expect(node.isMarkedDeleted && ListDigest.hash(of: node, in: id) == hash && node.latestTime == 9)
        node.registers["done"] = ListNode.Register(version: ListVersion(clock: 9, replica: ReplicaNumber(0)), value: "true")
        #expect(!node.isMarkedDeleted && ListDigest.hash(of: node, in: id) != hash)
    }
}
