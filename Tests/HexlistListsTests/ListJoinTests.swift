import TestSupport
import Testing

@testable import HexlistLists

@Suite("Two collections become one") struct ListJoinTests {
    @Test("the older collection remains, else the one with the smaller id; both sides choose the same") func remaining() {
        var generator = SeededGenerator(seed: 1)
        func list(_ time: Int64) -> ListNode.ID { ListNode.ID(kind: .hex, time: time, using: &generator) }
        let twins = [list(3), list(3)].sorted()
        for (first, second) in [(list(1), list(2)), (twins[0], twins[1])] {
            #expect(ListNode.ID.remaining(first, second) == first && ListNode.ID.remaining(second, first) == first)
        }
    }

    /// A machine with a collection of its own. A line is a title of a hex, or an indented URL of a link in it.
    /// - Parameter start: the time of the first node; by default later for a greater seed.
    private func machine(_ seed: UInt64, at start: Int64? = nil, _ lines: String...) throws -> Replica {
        var generator = SeededGenerator(seed: seed)
        let root = ListNode.ID(kind: .hex, time: Int64(seed), using: &generator)
        var machine = Replica(list: root, seed: seed)
        for (index, line) in lines.enumerated() {
            let depth = line.prefix { $0 == " " }.count
            let title = UTF8Text(String(line.dropFirst(depth)))
            try machine.change(at: (start ?? 1_000_000 + 1_000 * Int64(seed)) + Int64(index)) { list, generator in
                var parent = root
                for _ in 0..<depth { parent = list.storage.contents(of: parent).last { $0.node.id.kind == .hex }?.node.id ?? parent }
                let isLink = title.description.hasPrefix("http")
                let key = try list.keys(at: .last, in: parent, using: &generator)[0]
                _ = try list.add(
                    isLink ? .link : .hex, in: parent, key: key, title: isLink ? "t" : title, url: isLink ? title : "", using: &generator)
            }
        }
        return machine
    }

    @Test("hexes with equal titles and links with equal URLs at the same place become one, and everything else is added") func matching()
        throws
    {
        var first = try machine(1, "News", " http:a", " http:b", " Inner", "  http:c", "Twice", "Twice", "", "Only here")
        let second = try machine(
            2, "News", " http:b", " http:d", " http:b", " Inner", "  http:c", "  http:e", "Twice", " http:f", "", " http:g", "Other",
            " News")
        let before = first.storage.rows
        try first.change(at: 2_000_000) { list, _ in
            // 9 are added, 4 get the later versions of their titles.
            let count = try list.join(second.storage).count
            #expect(count == 13)
        }
        #expect(
            first.text.replacing("- t ", with: "") == """
                + News
                  <http:a>
                  <http:b>
                  <http:d>
                  <http:b>
                  + Inner
                    <http:c>
                    <http:e>
                + Twice
                + Twice
                + \("")
                + Only here
                + Twice
                  <http:f>
                + \("")
                  <http:g>
                + Other
                  + News

                """)
        for (id, row) in before {
            let node = try #require(first.storage.row(id)?.node)
            #expect(node.place == row.node.place && node.title?.value == row.node.title?.value && node.registers == row.node.registers)
        }
        // The added nodes keep their ids and versions.
        for node in second.storage.nodes() {
            guard let carried = first.storage.row(node.id)?.node, !carried.isMarkedDeleted else { continue }
            #expect(carried.title == node.title && carried.url == node.url && carried.place?.version == node.place?.version)
        }
        // A second join of the same collections changes nothing.
        let digest = first.digest
        try first.change(at: 3_000_000) { list, _ in
            let count = try list.join(second.storage).count
            #expect(count == 0)
        }
        #expect(first.digest == digest)
    }

    @Test("deleted nodes stay deleted, also those deleted together with a hex that has a counterpart") func deleted() throws {
        var first = try machine(1, "News", " http:a")
        var second = try machine(2, "News", " Inner", "  http:b", " http:c", "Gone", " http:d")
        let inner = try #require(second.storage.nodes().first { $0.title?.value == "Inner" }).id
        let gone = try #require(second.storage.nodes().first { $0.title?.value == "Gone" }).id
        try second.change(at: 1_500_000) { list, _ in
            try list.delete(inner)
            try list.delete(gone)
        }
        try first.change(at: 2_000_000) { list, _ in try list.join(second.storage) }
        #expect(first.text == "+ News\n  - t <http:a>\n  - t <http:c>\n")
        try first.change(at: 3_000_000) { list, _ in try list.restore(inner) }
        #expect(first.text == "+ News\n  - t <http:a>\n  - t <http:c>\n  + Inner\n    - t <http:b>\n")
    }

    @Test("nodes with one id are merged, also if they were renamed or moved, and take no other node's counterpart") func sameIDs() throws {
        var first = try machine(1, "News", " http:a", "Work")
        var second = try machine(2, "Reading", " http:b", " http:c", "Old")
        try first.change(at: 1_100_000) { list, _ in try list.join(second.storage) }
        func node(_ title: UTF8Text, _ replica: Replica) throws -> ListNode {
            try #require(replica.storage.nodes().first { $0.title?.value == title || $0.url == title })
        }
        // The second machine continues with its collection, as after the restoration of a backup.
        let (reading, old, c) = (try node("Reading", second), try node("Old", second), try node("http:c", second))
        try second.change(at: 1_200_000) { list, generator in
            try list.setTitle(of: reading.id, to: "Work")
            try list.setTitle(of: c.id, to: "new")
            try list.setRegister("tag/x", of: c.id, to: "1")
            let key = try list.keys(at: .last, in: old.id, using: &generator)[0]
            try list.move(c.id, to: old.id, key: key)
            _ = try list.add(.link, in: old.id, key: key, title: "added", url: "http:d", using: &generator)
        }
        for _ in 0..<2 { try first.change(at: 1_300_000) { list, _ in try list.join(second.storage) } }
        #expect(try node("http:c", first).title?.value == "new" && node("http:c", first).registers["tag/x"]?.value == "1")
        #expect(
            first.text == """
                + News
                  - t <http:a>
                + Work
                + Work
                  - t <http:b>
                + Old
                  - new <http:c>
                  - added <http:d>

                """)
    }

    @Test("of nodes that become one, the later values stay, and none is removed") func values() throws {
        var first = try machine(1, "News", " http:a", "Gone", " http:b")
        var second = try machine(2, "News", " http:a", "Gone", " http:b")
        func link(_ replica: Replica, _ url: UTF8Text) throws -> ListNode.ID {
            try #require(replica.storage.nodes().first { $0.url == url }).id
        }
        let (own, other) = (try link(first, "http:a"), try link(second, "http:a"))
        try second.change(at: 1_100_000) { list, _ in
            try list.setRegister("note", of: other, to: "earlier")
            try list.setRegister("color", of: other, to: "red")
            try list.setRegister("tag/b", of: other, to: "1")
        }
        try first.change(at: 1_200_000) { list, _ in
            try list.setTitle(of: own, to: "Title")
            try list.setRegister("note", of: own, to: "later")
            try list.setRegister("tag/a", of: own, to: "1")
        }
        try second.change(at: 1_300_000) { list, _ in
            try list.setRegister("color", of: other, to: "blue")
            try list.setRegister("tag/a", of: other, to: "1")
            try list.setRegister("tag/a", of: other, to: "")
        }
        // A deleted hex that is shown because of its link is not revived by the values of its counterpart.
        let gone = try #require(first.storage.nodes().first { $0.title?.value == "Gone" }).id
        let inside = try link(first, "http:b")
        try first.change(at: 1_400_000) { list, _ in
            try list.delete(gone)
            _ = try list.restore(inside)
        }
        let mark = first.storage.row(gone)?.node.deletion
        try first.change(at: 2_000_000) { list, _ in try list.join(second.storage) }
        let node = try #require(first.storage.row(own)?.node)
        #expect(node.title?.value == "Title")
        #expect(node.registers.mapValues(\.value) == ["note": "later", "color": "blue", "tag/a": "1", "tag/b": "1"])
        #expect(first.storage.row(gone)?.node.deletion == mark && mark != nil)
    }

    @Test("a node that became one with another and was deleted stays deleted when an old copy joins again") func oldCopy() throws {
        var first = try machine(1, "News", " http:a", "Work")
        let second = try machine(2, "News", " http:a", "Work", "Only here")
        try first.change(at: 2_000_000) { list, _ in try list.join(second.storage) }
        for title in ["News", "Only here"] as [UTF8Text] {
            let id = try #require(first.storage.contents(of: first.list).first { $0.node.title?.value == title }).node.id
            try first.change(at: 3_000_000) { list, _ in try list.delete(id) }
        }
        try first.change(at: 4_000_000) { list, _ in try list.join(second.storage) }
        #expect(first.text == "+ Work\n")
    }

    @Test(
        "a link that three collections have is kept once, in whatever order they are joined and whichever is the oldest",
        arguments: [[1, 2, 3], [1, 3, 2], [2, 1, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1]] as [[Int64]]) func threeCollections(ages: [Int64])
        throws
    {
        let made = try ages.enumerated().map { try machine(UInt64($0 + 1), at: 1_000_000 * $1, "Reading", " http:a", "Only \($0)") }
        func joined(_ replica: Replica, _ other: Replica, at time: Int64) throws -> Replica {
            var replica = replica
            try replica.change(at: time) { list, _ in try list.join(other.storage) }
            return replica
        }
        // The third collection is on two machines. One of them joins the first collection, the other one the second.
        let one = try joined(made[0], made[2], at: 5_000_000)
        let two = try joined(made[1], made[2], at: 5_000_001)
        var results = [
            try joined(one, two, at: 6_000_000), try joined(one, made[1], at: 6_000_000), try joined(made[0], two, at: 6_000_000),
        ]
        results.append(try joined(results[1], two, at: 7_000_000))
        results.append(try joined(results[2], made[2], at: 7_000_000))
        for result in results {
            let links = result.storage.rows.values.filter { $0.state == .present && $0.node.id.kind == .link }
            #expect(links.map(\.node.url) == ["http:a"], "\(result.text)")
            let hexes = result.storage.contents(of: result.list).filter { $0.state == .present }.compactMap { $0.node.title?.value }
            #expect(Set(hexes).isSuperset(of: ["Only 0", "Only 1", "Only 2"]) && hexes.contains("Reading"))
        }
    }

    @Test("two links that earlier joins replaced by each other do not both disappear") func replacedByEachOther() throws {
        func joined(_ replica: Replica, _ other: Replica, at time: Int64) throws -> Replica {
            var replica = replica
            try replica.change(at: time) { list, _ in try list.join(other.storage) }
            return replica
        }
        let (first, second) = (try machine(1, "Reading"), try machine(2, "Reading", " http:a"))
        let third = try machine(3, "Reading", " http:a")
        // The link of the third collection remains in the first one, and that of the second collection in the second one.
        let one = try joined(joined(first, third, at: 4_000_000), second, at: 5_000_000)
        let two = try joined(second, third, at: 5_000_000)
        for result in [try joined(one, two, at: 6_000_000), try joined(joined(one, two, at: 6_000_000), third, at: 7_000_000)] {
            #expect(result.storage.rows.values.count { $0.state == .present && $0.node.url == "http:a" } == 1)
        }
    }

    @Test("what was deleted and added again in an old copy does not become one with a node that the join deletes") func addedAgain() throws
    {
        var first = try machine(1, "Other", " http:o")
        var second = try machine(2, "Mine", " http:a", "Other", " http:o", " http:p")
        try first.change(at: 2_000_000) { list, _ in try list.join(second.storage) }
        let nodes = second.storage.nodes()
        let mine = try #require(nodes.first { $0.title?.value == "Mine" }).id
        let (other, link) = (
            try #require(nodes.first { $0.title?.value == "Other" }).id, try #require(nodes.first { $0.url == "http:p" }).id
        )
        try second.change(at: 3_000_000) { list, generator in
            try list.delete(mine)
            try list.delete(link)
            var key = try list.keys(at: .last, in: list.storage.list, using: &generator)[0]
            let again = try list.add(.hex, in: list.storage.list, key: key, title: "Mine", using: &generator)
            _ = try list.add(.link, in: again, key: key, title: "t", url: "http:a", using: &generator)
            key = try list.keys(at: .last, in: other, using: &generator)[0]
            _ = try list.add(.link, in: other, key: key, title: "t", url: "http:p", using: &generator)
        }
        for time in [4_000_000, 5_000_000] as [Int64] {
            try first.change(at: time) { list, _ in try list.join(second.storage) }
            #expect(first.text == "+ Other\n  - t <http:o>\n  - t <http:p>\n+ Mine\n  - t <http:a>\n")
        }
    }

    @Test("a deleted hex that is shown because of a link becomes one with no other hex: deletions stay, and no values are lost")
    func shownButDeleted() throws {
        func deleteAllBut(_ url: UTF8Text, in replica: inout Replica) throws {
            let nodes = replica.storage.nodes()
            let hex = try #require(nodes.first { $0.title?.value == "Reading" }).id
            let link = try #require(nodes.first { $0.url == url }).id
            try replica.change(at: 1_500_000) { list, _ in
                try list.delete(hex)
                _ = try list.restore(link)
            }
        }
        // Deleted in the collection that is added.
        var (first, second) = (try machine(1, "Reading", " http:o"), try machine(2, "Reading", " http:deleted", " http:kept"))
        try deleteAllBut("http:kept", in: &second)
        try first.change(at: 2_000_000) { list, _ in try list.join(second.storage) }
        func links(_ replica: Replica) -> [UTF8Text] {
            replica.storage.rows.values.filter { $0.state == .present && $0.node.id.kind == .link }.map(\.node.url).sorted()
        }
        #expect(links(first) == ["http:kept", "http:o"])
        // Deleted in the remaining collection.
        (first, second) = (try machine(1, "Reading", " http:deleted", " http:kept"), try machine(2, "Reading", " http:o"))
        let reading = try #require(second.storage.nodes().first { $0.title?.value == "Reading" }).id
        try second.change(at: 1_400_000) { list, _ in try list.setRegister("note", of: reading, to: "text") }
        try deleteAllBut("http:kept", in: &first)
        try first.change(at: 2_000_000) { list, _ in try list.join(second.storage) }
        #expect(links(first) == ["http:kept", "http:o"])
        let row = try #require(first.storage.row(reading))
        #expect(row.state == .present && row.node.registers["note"]?.value == "text")
    }

    @Test("imported on two machines, then changed on three, which join at the same time by two ways: no duplicates, nothing is missing")
    func threeMachines() throws {
        var generator = SeededGenerator(seed: 3)
        let folders = (0..<40).map { (title: UTF8Text("folder \($0)"), parent: $0 < 8 ? nil : Int.random(in: 0..<$0, using: &generator)) }
        let links = (0..<300).map { (url: UTF8Text("http:\($0)"), folder: Int.random(in: 0..<40, using: &generator)) }
        // A is a collection of its own; B and C share another one.
        var (single, pair) = (World(machines: 3, seed: 4), World(machines: 3, seed: 5))
        single.now += 5_000
        func importAll(_ list: inout Transaction, _ generator: inout SeededGenerator, root: ListNode.ID) throws {
            var hexes: [(id: ListNode.ID, level: Int)] = []
            var key = OrderKey.first(number: 1_000, using: &generator)
            func next() throws -> OrderKey {
                key = try #require(OrderKey.after(key, number: 1_000, using: &generator))
                return key
            }
            for folder in folders {
                let outer = folder.parent.map { hexes[$0] }.flatMap { $0.level < 8 ? $0 : nil }
                let id = try list.add(.hex, in: outer?.id ?? root, key: next(), title: folder.title, using: &generator)
                hexes.append((id, (outer?.level ?? 0) + 1))
            }
            for link in links {
                _ = try list.add(.link, in: hexes[link.folder].id, key: next(), title: "t", url: link.url, using: &generator)
            }
        }
        try single.change(0) { try importAll(&$0, &$1, root: $0.storage.list) }
        try pair.change(1) { try importAll(&$0, &$1, root: $0.storage.list) }
        try pair.exchange([(1, 2)])
        var (titles, tags): ([UTF8Text: UTF8Text], [UTF8Text: Set<UTF8Text>]) = ([:], [:])
        func change(_ world: inout World, _ machine: Int, _ name: String) throws {
            for index in 0..<20 {
                world.now += 10
                try world.change(machine) { list, generator in
                    let rows = list.storage.rows.values.filter { $0.state == .present }.sorted { $0.node.id < $1.node.id }
                    let hex = try #require(rows.filter { $0.node.id.kind == .hex }.randomElement(using: &generator)).node.id
                    let key = try list.keys(at: .last, in: hex, using: &generator)[0]
                    _ = try list.add(.link, in: hex, key: key, title: "new", url: UTF8Text("\(name)\(index)"), using: &generator)
                    // Values of links that all three have, some changed by several machines.
                    let url = UTF8Text("http:\(Int.random(in: 0..<30, using: &generator))")
                    let link = try #require(list.storage.nodes().filter { $0.url == url }.min { $0.id < $1.id }).id
                    try list.setTitle(of: link, to: UTF8Text("\(name)\(index)"))
                    try list.setRegister(UTF8Text("tag/\(name)"), of: link, to: "1")
                    try list.setRegister("color", of: link, to: UTF8Text("\(name)\(index)"))
                    titles[url] = UTF8Text("\(name)\(index)")
                    tags[url, default: []].insert(UTF8Text("tag/\(name)"))
                }
            }
        }
        try change(&single, 0, "a")
        pair.now = max(pair.now, single.now)
        try change(&pair, 1, "b")
        try change(&pair, 2, "c")  // B does not have these changes
        single.now = pair.now + 60_000
        for machine in [1, 2] {
            try single.pull(machine, from: 0)
            let other = pair.machines[machine].storage
            try single.change(machine) { list, _ in try list.join(other) }
        }
        try single.exchange([(0, 1), (1, 2), (0, 2)])
        let rows = single.machines[0].storage.rows.values.filter { $0.state == .present }
        let urls = rows.filter { $0.node.id.kind == .link }.map(\.node.url)
        for (url, title) in titles {
            let node = try #require(rows.map(\.node).first { $0.url == url })
            #expect(node.title?.value == title && node.registers["color"]?.value == title)
            #expect(Set(node.registers.keys) == tags[url, default: []].union(["color"]))
        }
        let expected = links.map(\.url) + ["a", "b", "c"].flatMap { name in (0..<20).map { UTF8Text("\(name)\($0)") } }
        #expect(urls.sorted() == expected.sorted())
        #expect(rows.count { $0.node.id.kind == .hex } == folders.count)
        for machine in single.machines { #expect(machine.text == single.machines[0].text && machine.digest == single.machines[0].digest) }
    }
}
