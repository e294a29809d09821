import HexlistModel
import Testing

@testable import HexlistLists

/// The table "Concurrent changes" of Docs/Lists.md: A and B change the list while they are apart, then exchange.
@Suite("Concurrent changes of a list") struct ConcurrentChangesTests {
    private var lists = Scenario()

    @Test("different items, or different fields of one link: both changes") mutating func differentFields() throws {
        let (news, other) = (try lists.hex(.a, "News"), try lists.hex(.a, "Other"))
        let (first, second) = (try lists.link(.a, "1", in: news), try lists.link(.a, "2", in: news))
        try lists.sync()
        try lists.rename(.a, first, "A")
        try lists.move(.b, first, to: other)
        try lists.rename(.b, second, "B")
        try lists.expect("+ News", "  - B <2>", "+ Other", "  - A <1>")
    }

    @Test("the same title, colour or other register: the later value") mutating func sameField() throws {
        let news = try lists.hex(.a, "News")
        let link = try lists.link(.a, "1", in: news)
        try lists.sync()
        try lists.rename(.a, link, "A")
        try lists.change(.a) { list, _ in try list.setRegister("color", of: news, to: "red") }
        try lists.change(.a) { list, _ in try list.setRegister("done", of: link, to: "true") }
        try lists.rename(.b, link, "B")
        try lists.change(.b) { list, _ in try list.setRegister("color", of: news, to: "blue") }
        try lists.change(.b) { list, _ in try list.setRegister("done", of: link, to: "") }
        try lists.expect("+ News blue", "  - B <1>")
        #expect(lists.node(link)?.registers["done"]?.value == "")
    }

    @Test("registers of this and of a later version, side by side") mutating func differentRegisters() throws {
        let news = try lists.hex(.a, "News")
        let link = try lists.link(.a, "1", in: news)
        try lists.sync()
        try lists.change(.a) { list, _ in try list.setRegister("done", of: link, to: "true") }
        try lists.change(.b) { list, _ in try list.setRegister("tag/db", of: link, to: "1") }
        try lists.change(.b) { list, _ in try list.setRegister("from a later version", of: link, to: "{}") }
        try lists.sync()
        #expect(Set(lists.node(link, on: .c)?.registers.keys.map(\.description) ?? []) == ["done", "tag/db", "from a later version"])
    }

    @Test("a node has 64 registers: empty ones make room, values stay, on each replica") mutating func manyRegisters() throws {
        let news = try lists.hex(.a, "News")
        try lists.change(.a) { list, _ in try list.setRegister("color", of: news, to: "red") }
        try lists.sync()
        for number in 1...200 {
            try lists.change(number % 2 == 0 ? .a : .b) { list, _ in
                if number > 20 { try list.setRegister(UTF8Text("tag/\(number - 20)"), of: news, to: "") }
                try list.setRegister(UTF8Text("tag/\(number)"), of: news, to: "1")
            }
            try lists.sync()
        }
        for machine in [Scenario.Machine.a, .b, .c] {
            let registers = try #require(lists.node(news, on: machine)).registers
            #expect(registers.count == 64 && registers["color"]?.value == "red")
            #expect(registers.count { $0.key != "color" && !$0.value.value.isEmpty } == 20)
        }
    }

    @Test("an entry of a shared list has 256 registers") mutating func registersOfSharedList() throws {
        let root = lists.list
        let entry = try lists.change(.a) { list, generator in
            try list.add(
                .sharedList, in: root, key: list.keys(at: .first, in: root, using: &generator)[0], title: "", using: &generator)
        }
        for number in 1...260 {
            try lists.change(number % 2 == 0 ? .a : .b) { list, _ in
                if number > 100 { try list.setRegister(UTF8Text("with/\(number - 100)"), of: entry, to: "") }
                try list.setRegister(UTF8Text("with/\(number)"), of: entry, to: "read")
            }
            try lists.sync()
        }
        for machine in [Scenario.Machine.a, .b, .c] {
            let registers = try #require(lists.node(entry, on: machine)).registers
            #expect(registers.count == 256 && registers.count { !$0.value.value.isEmpty } == 100)
        }
    }

    @Test("the URL of one link: both URLs, one below the other, with title and other values") mutating func sameURL() throws {
        let news = try lists.hex(.a, "News")
        let link = try lists.link(.a, "1", in: news)
        try lists.change(.a) { list, _ in try list.setRegister("note", of: link, to: "read soon") }
        try lists.link(.a, "2", in: news)
        try lists.sync()
        var links: [ListNode.ID?] = []
        links.append(try lists.change(.a) { try $0.setURL(of: link, to: "A", service: "", using: &$1) })
        links.append(try lists.change(.b) { try $0.setURL(of: link, to: "B", service: "", using: &$1) })
        try lists.expect("+ News", "  - t1 <A>", "  - t1 <B>", "  - t2 <2>")
        for id in links { #expect(lists.node(try #require(id))?.registers["note"]?.value == "read soon") }
    }

    @Test("deleted on A, edited or moved on B: the item stays, as edited or at its new place") mutating func deletedAndEdited() throws {
        let (news, other) = (try lists.hex(.a, "News"), try lists.hex(.a, "Other"))
        let (first, second) = (try lists.link(.a, "1", in: news), try lists.link(.a, "2", in: news))
        let third = try lists.link(.a, "3", in: news)
        try lists.sync()
        for link in [first, second, third] { try lists.delete(.a, link) }
        try lists.rename(.b, first, "B")
        try lists.move(.b, second, to: other)
        try lists.expect("+ News", "  - B <1>", "+ Other", "  - t2 <2>")
    }

    @Test("hex deleted on A, link added to it on B: the hex stays with only that link, and goes with it")
    mutating func deletedAndAdded() throws {
        let news = try lists.hex(.a, "News")
        try lists.link(.a, "1", in: news)
        try lists.sync()
        try lists.delete(.a, news)
        let added = try lists.link(.b, "2", in: news)
        try lists.expect("+ News", "  - t2 <2>")
        try lists.delete(.b, added)
        try lists.expect()
    }

    @Test("… and that hex is renamed, coloured or moved afterwards: the deleted items do not come back", arguments: 0..<3)
    mutating func renamedAfterwards(change: Int) throws {
        let (news, other) = (try lists.hex(.a, "News"), try lists.hex(.a, "Other"))
        try lists.link(.a, "1", in: news)
        try lists.link(.a, "2", in: try lists.hex(.a, "Inner", in: news))
        try lists.sync()
        try lists.delete(.a, news)
        try lists.link(.b, "3", in: news)
        try lists.expect("+ News", "  - t3 <3>", "+ Other")
        switch change {
        case 0: try lists.rename(.a, news, "News 2")
        case 1: try lists.change(.a) { list, _ in try list.setRegister("color", of: news, to: "red") }
        default: try lists.move(.a, news, to: other)
        }
        switch change {
        case 0: try lists.expect("+ News 2", "  - t3 <3>", "+ Other")
        case 1: try lists.expect("+ News red", "  - t3 <3>", "+ Other")
        default: try lists.expect("+ Other", "  + News", "    - t3 <3>")
        }
    }

    @Test("hex deleted on A, renamed or moved on B: the hex stays with all its contents", arguments: [false, true])
    mutating func deletedAndRenamed(isMoved: Bool) throws {
        let (news, other) = (try lists.hex(.a, "News"), try lists.hex(.a, "Other"))
        try lists.link(.a, "1", in: try lists.hex(.a, "Inner", in: news))
        try lists.sync()
        try lists.delete(.a, news)
        if isMoved {
            try lists.move(.b, news, to: other)
            try lists.expect("+ Other", "  + News", "    + Inner", "      - t1 <1>")
        } else {
            try lists.rename(.b, news, "Old news")
            try lists.expect("+ Old news", "  + Inner", "    - t1 <1>", "+ Other")
        }
    }

    @Test("hex deleted on A, a hex or link inside it moved out on B: the moved item stays complete")
    mutating func deletedAndMovedOut() throws {
        let (news, other) = (try lists.hex(.a, "News"), try lists.hex(.a, "Other"))
        let inner = try lists.hex(.a, "Inner", in: news)
        try lists.link(.a, "1", in: inner)
        let link = try lists.link(.a, "2", in: news)
        try lists.link(.a, "3", in: news)
        try lists.sync()
        try lists.delete(.a, news)
        try lists.move(.b, inner, to: other)
        try lists.move(.b, link, to: other)
        try lists.expect("+ Other", "  - t2 <2>", "  + Inner", "    - t1 <1>")
    }

    @Test("deleted on both sides; deleted on A and unchanged on B: deleted") mutating func deleted() throws {
        let news = try lists.hex(.a, "News")
        let (first, second) = (try lists.link(.a, "1", in: news), try lists.link(.a, "2", in: news))
        try lists.sync()
        try lists.delete(.a, first)
        try lists.delete(.b, first)
        try lists.delete(.a, second)
        try lists.expect("+ News")
        try lists.delete(.a, news)
        try lists.delete(.b, news)
        try lists.expect()
    }

    @Test("edited on B, then moved and deleted on A: the deleted link has B's title everywhere, for the trash")
    mutating func deletedValues() throws {
        let (news, other) = (try lists.hex(.a, "News"), try lists.hex(.a, "Other"))
        let link = try lists.link(.a, "1", in: news)
        try lists.sync()
        try lists.rename(.b, link, "B")
        try lists.move(.a, link, to: other)
        try lists.delete(.a, link)
        // B has A's deletion, and its own title in addition, before A requests anything.
        try lists.world.pull(1, from: 0)
        try lists.expect("+ News", "+ Other")
        #expect(lists.node(link)?.title?.value == "B" && lists.node(link) == lists.node(link, on: .b))
        try lists.restore(.a, link)
        try lists.expect("+ News", "+ Other", "  - B <1>")
    }

    @Test("moved to two places: the later move") mutating func movedTwice() throws {
        let (first, second, third) = (try lists.hex(.a, "1"), try lists.hex(.a, "2"), try lists.hex(.a, "3"))
        let link = try lists.link(.a, "u", in: first)
        try lists.sync()
        try lists.move(.a, link, to: second)
        try lists.move(.b, link, to: third)
        try lists.expect("+ 1", "+ 2", "+ 3", "  - tu <u>")
    }

    @Test("two hexes moved into each other: the earlier move takes effect, and the other one not later on either")
    mutating func movedIntoEachOther() throws {
        let (first, second) = (try lists.hex(.a, "1"), try lists.hex(.a, "2"))
        try lists.link(.a, "u1", in: first)
        try lists.link(.a, "u2", in: second)
        try lists.sync()
        try lists.move(.a, first, to: second)
        try lists.move(.b, second, to: first)
        try lists.expect("+ 2", "  - tu2 <u2>", "  + 1", "    - tu1 <u1>")
        try lists.move(.a, first, to: try lists.hex(.a, "3"))
        try lists.expect("+ 2", "  - tu2 <u2>", "+ 3", "  + 1", "    - tu1 <u1>")
    }

    @Test("moves that close a cycle together: the hex of the newest one is where it was before") mutating func movesInAChain() throws {
        let outer = try lists.hex(.a, "Outer")
        let first = try lists.hex(.a, "1", in: outer)
        let second = try lists.hex(.a, "2", in: first)
        let other = try lists.hex(.a, "Other")
        try lists.sync()
        try lists.move(.a, first, to: other)
        try lists.move(.b, second, to: lists.list)
        try lists.move(.b, first, to: second)
        try lists.expect("+ Outer", "+ Other", "+ 2", "  + 1")
    }

    @Test("reordered on both sides: each moved item is at the position chosen for it") mutating func reordered() throws {
        let hex = try lists.hex(.a, "H")
        let links = try ["1", "2", "3"].map { try lists.link(.a, UTF8Text($0), in: hex) }
        try lists.sync()
        try lists.move(.a, links[2], to: hex, at: .first)
        try lists.move(.b, links[0], to: hex, at: .last)
        try lists.expect("+ H", "  - t3 <3>", "  - t2 <2>", "  - t1 <1>")
        try lists.move(.a, links[0], to: hex, at: .after(links[2]))
        try lists.move(.a, links[2], to: hex, at: .before(links[1]))
        try lists.expect("+ H", "  - t1 <1>", "  - t3 <3>", "  - t2 <2>")
    }

    @Test("added at the end on both sides: by time, interleaved") mutating func addedAtTheEnd() throws {
        let hex = try lists.hex(.a, "H")
        try lists.link(.a, "1", in: hex)
        try lists.sync()
        try lists.link(.a, "2", in: hex)
        try lists.link(.b, "3", in: hex)
        try lists.link(.a, "4", in: hex)
        try lists.expect("+ H", "  - t1 <1>", "  - t2 <2>", "  - t3 <3>", "  - t4 <4>")
    }

    @Test("added at the top level of My Hexlist on both sides: the newest first") mutating func newestFirst() throws {
        let root = lists.list
        for (machine, title) in [(Scenario.Machine.a, "1"), (.b, "2"), (.a, "3"), (.c, "4")] {
            try lists.change(machine) { list, generator in
                let key = try list.keys(at: .first, in: root, isNewestFirst: true, using: &generator)[0]
                _ = try list.add(.hex, in: root, key: key, title: UTF8Text(title), using: &generator)
            }
        }
        try lists.expect("+ 4", "+ 3", "+ 2", "+ 1")
    }

    @Test("pasted at one place on both sides: one run after the other") mutating func pasted() throws {
        let hex = try lists.hex(.a, "H")
        let first = try lists.link(.a, "first", in: hex)
        try lists.link(.a, "last", in: hex)
        try lists.sync()
        for (machine, name) in [(Scenario.Machine.a, "a"), (.b, "b")] {
            try lists.change(machine) { list, generator in
                for (index, key) in try list.keys(count: 300, at: .after(first), in: hex, using: &generator).enumerated() {
                    _ = try list.add(.link, in: hex, key: key, title: UTF8Text(name), url: UTF8Text("\(index)"), using: &generator)
                }
            }
        }
        try lists.sync()
        let order = lists.text.split(separator: "\n").dropFirst(2).dropLast().map { $0.dropFirst(4) }
        let runs = ["a", "b"].map { name in (0..<300).map { "\(name) <\($0)>"[...] } }
        #expect(order == runs[0] + runs[1] || order == runs[1] + runs[0])
    }

    @Test("more than 8 levels by both sides together: deeper items are on the eighth, and nothing is missing")
    mutating func tooDeep() throws {
        var chains: [[ListNode.ID]] = []
        for name in ["a", "b"] {
            var chain = [lists.list]
            for level in 1...6 { chain.append(try lists.hex(.a, UTF8Text("\(name)\(level)"), in: chain.last)) }
            try lists.link(.a, UTF8Text(name), in: try #require(chain.last))
            chains.append(chain)
        }
        try lists.sync()
        try lists.move(.b, chains[1][1], to: chains[0][4])
        try lists.expect(
            "+ a1", "  + a2", "    + a3", "      + a4", "        + a5", "          + a6", "            - ta <a>", "        + b1",
            "          + b2", "            + b3", "              + b4", "              + b5", "              + b6",
            "                - tb <b>")
    }

    @Test("the same URL added on both sides: the link is there twice") mutating func sameURLAdded() throws {
        let hex = try lists.hex(.a, "H")
        try lists.sync()
        try lists.link(.a, "u", in: hex)
        try lists.link(.b, "u", in: hex)
        try lists.expect("+ H", "  - tu <u>", "  - tu <u>")
    }

    @Test("a deleted link or hex is restored on another machine, a hex with what was deleted together with it")
    mutating func restored() throws {
        let hex = try lists.hex(.a, "H")
        let (first, second) = (try lists.link(.a, "1", in: hex), try lists.link(.a, "2", in: hex))
        try lists.sync()
        try lists.delete(.b, first)
        try lists.delete(.a, hex)
        try lists.expect()
        try lists.restore(.c, hex)
        try lists.expect("+ H", "  - t2 <2>")
        try lists.delete(.a, second)
        try lists.sync()
        try lists.restore(.b, second)
        try lists.restore(.c, first)
        try lists.expect("+ H", "  - t1 <1>", "  - t2 <2>")
    }

    @Test("a backup is restored: no deleted item comes back, and no item that another machine has is lost") mutating func backup() throws {
        let hex = try lists.hex(.a, "H")
        let first = try lists.link(.a, "1", in: hex)
        try lists.sync()
        let backup = lists.world.machines[0]
        try lists.delete(.a, first)
        let second = try lists.link(.a, "2", in: hex)
        try lists.sync()
        try lists.rename(.a, second, "later")
        try lists.sync()
        lists.world.machines[0].restore(backup)
        try lists.link(.a, "3", in: hex)
        try lists.expect("+ H", "  - later <2>", "  - t3 <3>")
    }

    @Test("a disk image is rolled back, unknown to the program: digests differ, and one whole exchange repairs it")
    mutating func rolledBack() throws {
        let hex = try lists.hex(.a, "H")
        try lists.link(.a, "1", in: hex)
        try lists.sync()
        let image = lists.world.machines[0]
        for url in ["2", "3"] as [UTF8Text] { try lists.link(.a, url, in: hex) }
        try lists.sync()
        lists.world.machines[0] = image
        // As many changes as were lost: the sequence numbers alone do not show the fault.
        for url in ["4", "5", "6"] as [UTF8Text] { try lists.link(.a, url, in: hex) }
        try lists.world.exchange(Scenario.connections)
        #expect(lists.world.machines[0].digest != lists.world.machines[1].digest)
        try lists.world.repair(Scenario.connections)
        try lists.expect("+ H", "  - t1 <1>", "  - t2 <2>", "  - t3 <3>", "  - t4 <4>", "  - t5 <5>", "  - t6 <6>")
    }

    @Test("a clock is hours wrong: a change made after seeing another change wins over it") mutating func wrongClock() throws {
        lists.world.skews[1] = 11 * 3_600_000
        let link = try lists.link(.a, "1", in: try lists.hex(.a, "H"))
        try lists.sync()
        try lists.rename(.b, link, "B")
        try lists.sync()
        try lists.rename(.a, link, "A")
        try lists.expect("+ H", "  - A <1>")
    }
}
