import GRDB
import HexlistModel
import Testing

@testable import HexlistStore

@Suite struct HexTests {
    /// An inbox of 50 from two trusted peers in turn, 5 held from a third, 3 of one's own.
    private func filled() throws -> (test: TestStore, one: TestPeer, two: TestPeer, three: TestPeer) {
        let test = try TestStore()
        let (one, two, three) = (try TestPeer(1), try TestPeer(2), try TestPeer(3))
        _ = try test.trust(one)
        _ = try test.trust(two)
        for number in 0..<25 {
            try test.receive([hex(UInt64(number), "one \(number)")], from: one, at: start + Int64(number))
            try test.receive([hex(UInt64(number), "two \(number)")], from: two, at: start - Int64(number))
        }
        try test.receive((1...5).map { hex($0) }, from: three)
        for number in 1...3 { _ = try test.write { try $0.insertMine(content("mine \(number)"), at: start) } }
        return (test, one, two, three)
    }

    private func all(_ test: TestStore, _ filter: HexFilter, limit: Int) throws -> [Int64] {
        var ids: [Int64] = []
        var after: HexCursor?
        repeat {
            let page = try test.read { try $0.hexPage(filter, limit: limit, after: after) }
            #expect(page.items.count <= limit)
            ids += page.items.map(\.id)
            after = page.next
        } while after != nil
        return ids
    }

    @Test(arguments: [1, 7, 20, 50, 1_000, .max]) func pagesAreNewestFirstWithoutGapsOrRepeats(_ limit: Int) async throws {
        let (test, one, two, three) = try filled()
        #expect(try all(test, HexFilter(), limit: limit) == (1...50).reversed())
        #expect(try all(test, HexFilter(peer: one.id), limit: limit) == stride(from: 49, through: 1, by: -2).map { $0 })
        #expect(try all(test, HexFilter(location: .held), limit: limit) == (51...55).reversed())
        #expect(try all(test, HexFilter(location: .held, peer: three.id), limit: limit) == (51...55).reversed())
        #expect(try all(test, HexFilter(location: .held, peer: one.id), limit: limit).isEmpty)
        #expect(try all(test, HexFilter(location: .mine), limit: limit) == [58, 57, 56])
        #expect(try all(test, HexFilter(location: .mine, unread: true), limit: limit).isEmpty)
        #expect(try all(test, HexFilter(peer: try TestPeer(9).id), limit: limit).isEmpty)

        #expect(try test.write { try $0.setRead(Array(1...40) + [50, 51, 999]) } == 42)
        #expect(try test.write { try $0.setRead(Array(1...40)) } == 0)
        #expect(try all(test, HexFilter(unread: true), limit: limit) == (41...49).reversed())
        #expect(try all(test, HexFilter(unread: true, peer: two.id), limit: limit) == [48, 46, 44, 42])
        #expect(try all(test, HexFilter(location: .held, unread: true), limit: limit) == (52...55).reversed())
        #expect(try test.countersAreRight())
    }

    @Test func arrivalsDoNotShiftPages() throws {
        let (test, one, _, _) = try filled()
        let first = try test.read { try $0.hexPage(limit: 10) }
        try test.receive([hex(100)], from: one)
        try test.write { _ = try $0.delete([38], at: start) }
        #expect(try test.read { try $0.hexPage(limit: 10, after: first.next) }.items.map(\.id) == [40, 39] + (30...37).reversed())
    }

    @Test func everythingCanBeMarkedRead() throws {
        let (test, _, _, _) = try filled()
        #expect(try test.write { try $0.setRead(Array(1...4)) } == 4)
        #expect(try test.read { try $0.counts() }.unread == 46)
        func markAll() throws -> Int { try test.write { try $0.setRead(try $0.hexIDs(.list(HexFilter(unread: true))).items) } }
        #expect(try markAll() == 46)
        #expect(try markAll() == 0)
        #expect(try test.read { try $0.counts() }.unread == 0)
        #expect(try test.write { try $0.setRead([3], false) } == 1)
        #expect(try test.read { try $0.counts() }.unread == 1)
        #expect(try test.countersAreRight())
    }

    @Test func aRangeHasWhatExistsInIt() throws {
        let (test, _, _, three) = try filled()
        try test.write { _ = try $0.delete([48, 52], at: start) }
        func ids(_ range: ClosedRange<Int64>, _ location: HexLocation?) throws -> [Int64] {
            try test.read { try $0.hexIDs(.ids(range, in: location)) }.items
        }
        #expect(try ids(47...57, nil) == [47, 49, 50, 51, 53, 54, 55, 56, 57])
        #expect(try ids(47...57, .inbox) == [47, 49, 50])
        #expect(try ids(47...54, .held) == [51, 53, 54])
        #expect(try ids(1...Int64.max, .mine) == [56, 57, 58])
        #expect(try ids(400...500, nil).isEmpty)
        #expect(try test.read { try $0.hexIDs(.list(HexFilter(location: .held, peer: three.id))) }.items == [55, 54, 53, 51])
    }

    @Test func aRangeAndAListGoOnWhereOneTransactionEnds() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        _ = try test.trust(peer)
        for batch in 0..<5 { try test.receive((1...500).map { hex(UInt64(batch * 500 + $0)) }, from: peer) }
        for group in [HexSet.ids(1...2_400, in: nil), .list(HexFilter())] {
            var (after, counts): (HexCursor?, [Int]) = (nil, [])
            repeat {
                let page = try test.read { [after] in try $0.hexIDs(group, after: after) }
                counts.append(page.items.count)
                after = page.next
            } while after != nil
            #expect(counts == (group == .list(HexFilter()) ? [1_000, 1_000, 500] : [1_000, 1_000, 400]))
        }
        #expect(try test.write { try $0.delete(try $0.hexIDs(.list(HexFilter())).items, at: start) } == 1_000)
        #expect(try test.countersAreRight())
    }

    @Test func whatHasNoDescriptionIsToldByItsFirstLink() throws {
        let test = try TestStore()
        for description in ["A", "", " \n\t\u{3000}"] { _ = try test.write { try $0.insertMine(content(description), at: start) } }
        #expect(try test.read { try $0.hexPage(HexFilter(location: .mine)) }.items.map(\.subject) == ["Link 0", "Link 0", "A"])
        #expect(try test.read { try $0.subjects(of: [1, 2, 9]) } == [1: "A", 2: "Link 0"])
        _ = try test.write { try $0.insertMine(content("", links: 0), at: start) }
        #expect(try test.read { try $0.subjects(of: [4]) } == [4: ""])
    }

    @Test func manyAreReadInTwoQueriesInTheOrderAsked() throws {
        let (test, _, _, _) = try filled()
        let details = try test.read { try $0.hexes([56, 3, 999, 51]) }
        #expect(details.map(\.summary.id) == [56, 3, 51])
        #expect(details.map(\.summary.description) == ["mine 1", "one 1", "A hex"])
        #expect(details.allSatisfy { $0.content.links.count == 2 && $0.content.string($0.content.links[1].url) == "https://example.com/1" })
        #expect(try test.read { try $0.hexes([3, 3]) }.map(\.content.links.count) == [2, 2])
        #expect(try test.read { try $0.hexes([]) }.isEmpty)
        #expect(try test.read { try $0.hex(999) } == nil)
    }

    @Test func deletingTakesLinksAndCounts() throws {
        let (test, one, _, _) = try filled()
        #expect(try test.write { try $0.delete(Array(1...100), at: start) } == 58)
        #expect(try test.read { try Int.fetchOne($0.db, sql: "SELECT count(*) FROM link") } == 0)
        #expect(try test.countersAreRight())
        // The next hex gets a new id: ids of deleted hexes are not used again.
        #expect(try test.receive([hex(200)], from: one) == [.stored])
    }

    @Test func unknownMembersAreKept() throws {
        let test = try TestStore()
        let id = try test.write { try $0.insertMine(content("a", extra: "{\"x\":[1,2,{\"y\":null}]}"), at: start) }
        let detail = try #require(try test.read { try $0.hex(id) })
        #expect(detail.content.string(detail.content.extra) == "{\"x\":[1,2,{\"y\":null}]}")
        #expect(detail.content.string(detail.content.links[0].extra) == "{\"x\":[1,2,{\"y\":null}]}")
        #expect(detail.content.links[1].extra.isEmpty)
        #expect(throws: HexlistError.self) { try test.write { try $0.insertMine(content(links: 5_001), at: start) } }
        #expect(try test.countersAreRight())
    }
}
