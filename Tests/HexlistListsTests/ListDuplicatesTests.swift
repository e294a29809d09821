import TestSupport
import Testing

@testable import HexlistLists

@Suite("Merging duplicates of a list") struct ListDuplicatesTests {
    private var lists = Scenario()

    /// Finds and merges the duplicates on a machine.
    @discardableResult
    private mutating func merge(
        _ machine: Scenario.Machine = .a, in hex: ListNode.ID? = nil, includingHexes: Bool = true, fits: Bool = true
    ) throws -> ListDuplicates {
        let hex = hex ?? lists.list
        let duplicates = try lists.change(machine) { list, generator in
            let duplicates = try ListDuplicates(in: hex, of: list.storage, includingHexes: includingHexes) { _ in fits }
            try list.merge(duplicates, using: &generator)
            return duplicates
        }
        try lists.change(machine) { list, _ in for hex in duplicates.hexes.flatMap(\.others) { try list.delete(hex) } }
        return duplicates
    }

    private mutating func set(_ name: UTF8Text, of id: ListNode.ID, to value: UTF8Text) throws {
        try lists.change(.a) { list, _ in try list.setRegister(name, of: id, to: value) }
    }

    private func value(_ name: UTF8Text, of id: ListNode.ID) -> UTF8Text? { lists.node(id)?.registers[name]?.value }

    @Test("links with one URL in one hex become the oldest one, in its place; those in other hexes stay") mutating func links() throws {
        let (hex, other) = (try lists.hex(.a, "H"), try lists.hex(.a, "Other"))
        let first = try lists.link(.a, "1", in: hex)
        try lists.link(.a, "2", in: hex)
        try lists.link(.a, "1", in: hex)
        try lists.link(.a, "1", in: hex, at: .first)
        try lists.link(.a, "1", in: other)
        let found = try merge()
        try lists.expect("+ H", "  - t1 <1>", "  - t2 <2>", "+ Other", "  - t1 <1>")
        #expect(found.links.map(\.kept) == [first] && found.links[0].others.count == 2 && found.hexes.isEmpty && found.different == 0)
        #expect(try merge().isEmpty)
    }

    @Test("a link with another title or note stays; missing values are taken over, and all tags") mutating func values() throws {
        let hex = try lists.hex(.a, "H")
        let first = try lists.link(.a, "1", in: hex)
        try lists.rename(.a, first, "")
        try set("tag/a", of: first, to: "1")
        let second = try lists.link(.a, "1", in: hex)
        try set("tag/a", of: second, to: "2")
        try set("tag/b", of: second, to: "1")
        try set("note", of: second, to: "N")
        let third = try lists.link(.a, "1", in: hex)
        try set("note", of: third, to: "M")
        let fourth = try lists.link(.a, "1", in: hex)
        try set("note", of: fourth, to: "M")
        let found = try merge()
        #expect(found.links.map(\.kept) == [first, third] && found.links.map(\.others) == [[second], [fourth]] && found.different == 1)
        try lists.expect("+ H", "  - t1 <1>", "  - t1 <1>")
        #expect(value("note", of: first) == "N" && value("tag/a", of: first) == "1" && value("tag/b", of: first) == "1")
    }

    @Test("nodes with other unknown members stay, also if one has none: they may have a note") mutating func unknownMembers() throws {
        let hex = try lists.hex(.a, "H")
        let first = try lists.link(.a, "1", in: hex)
        try set("extra", of: first, to: "{}")
        let second = try lists.link(.a, "1", in: hex)
        try set("note", of: second, to: "N")
        #expect(try merge().different == 1)
        try set("note", of: second, to: "")
        try set("extra", of: second, to: "{}")
        #expect(try merge().links.map(\.others) == [[second]])
    }

    @Test("hexes with one title become one with the contents of all, at all levels; hexes without a title stay") mutating func hexes()
        throws
    {
        let first = try lists.hex(.a, "H")
        let inner = try lists.hex(.a, "Inner", in: first)
        try lists.link(.a, "1", in: inner)
        try lists.link(.a, "2", in: first)
        let second = try lists.hex(.a, "H")
        let otherInner = try lists.hex(.a, "Inner", in: second)
        try lists.link(.a, "1", in: otherInner)
        try lists.link(.a, "3", in: otherInner)
        try lists.link(.a, "2", in: second)
        try lists.link(.a, "4", in: second)
        _ = try lists.hex(.a, "")
        _ = try lists.hex(.a, "")
        try lists.sync()
        let found = try merge()
        #expect(Set(found.hexes.map(\.kept)) == [first, inner] && found.links.count == 2)
        try lists.expect("+ H", "  - t2 <2>", "  - t4 <4>", "  + Inner", "    - t1 <1>", "    - t3 <3>", "+ ", "+ ")
        #expect(try merge().isEmpty)
    }

    @Test("hexes stay if only links are merged, and if they do not fit into one") mutating func hexesThatStay() throws {
        let hexes = try ["H", "H"].map { try lists.hex(.a, UTF8Text($0)) }
        for hex in hexes + hexes { try lists.link(.a, "1", in: hex) }
        #expect(try merge(fits: false).different == 1)
        try lists.expect("+ H", "  - t1 <1>", "+ H", "  - t1 <1>")
        #expect(try merge(includingHexes: false).different == 0)
        try lists.expect("+ H", "  - t1 <1>", "+ H", "  - t1 <1>")
        try merge()
        try lists.expect("+ H", "  - t1 <1>")
    }

    @Test("only one hex, with the hexes inside") mutating func oneHex() throws {
        let (hex, other) = (try lists.hex(.a, "H"), try lists.hex(.a, "Other"))
        let inner = try lists.hex(.a, "Inner", in: hex)
        for parent in [inner, inner, other, other] { try lists.link(.a, "1", in: parent) }
        try merge(in: hex)
        try lists.expect("+ H", "  + Inner", "    - t1 <1>", "+ Other", "  - t1 <1>", "  - t1 <1>")
    }

    @Test("two machines that merge the same duplicates at the same time lose nothing") mutating func concurrent() throws {
        let (first, second) = (try lists.hex(.a, "H"), try lists.hex(.a, "H"))
        try lists.link(.a, "1", in: first)
        for url in ["1", "2"] as [UTF8Text] { try lists.link(.a, url, in: second) }
        try lists.sync()
        try merge(.a)
        try lists.link(.c, "3", in: second)
        try merge(.c)
        try lists.expect("+ H", "  - t1 <1>", "  - t2 <2>", "  - t3 <3>")
    }

    @Test("a link stays if another machine deletes the kept one at the same time") mutating func concurrentDeletion() throws {
        let hex = try lists.hex(.a, "H")
        let first = try lists.link(.a, "1", in: hex)
        try lists.link(.a, "1", in: hex)
        try lists.sync()
        try lists.delete(.c, first)
        try merge(.a)
        try lists.expect("+ H", "  - t1 <1>")
    }

    @Test("many links with one URL and other values take no quadratic time, and stay") mutating func manyDifferent() throws {
        let hex = try lists.hex(.a, "H")
        for number in 0..<200 {
            let link = try lists.link(.a, "1", in: hex)
            try lists.rename(.a, link, UTF8Text("\(number)"))
        }
        let found = try merge()
        #expect(found.isEmpty && found.different == 199)
    }
}
