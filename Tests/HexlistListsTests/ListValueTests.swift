import HexlistModel
import TestSupport
import Testing

@testable import HexlistLists

@Suite("Ids, versions and clocks of lists") struct ListValueTests {
    @Test("an id is a UUID of version 8 with time and kind, and 22 characters on the wire") func ids() throws {
        var generator = SeededGenerator(seed: 1)
        for kind in [ListNode.Kind.hex, .link, .sharedList, ListNode.Kind(rawValue: 15)] {
            let id = ListNode.ID(kind: kind, time: 1_795_615_200_123, using: &generator)
            #expect(id.kind == kind && id.time == 1_795_615_200_123)
            #expect(id.uuid.description.dropFirst(14).first == "8" && "89AB".contains(id.uuid.description.dropFirst(19).first ?? " "))
            #expect(id.description.utf8.count == 22 && ListNode.ID(base64url: id.description.utf8) == id)
        }
        #expect(ListNode.ID(try #require(UUIDBytes("018BCFE5-687B-7ABC-8000-000000000000"))) == nil)  // version 7
        #expect(ListNode.ID(try #require(UUIDBytes("018BCFE5-687B-8ABC-0000-000000000000"))) == nil)  // another variant than RFC 9562
        for text in ["", "AaMxK", "=", "0000000000000000000000", "AaMxK-hWgv-eB3qHFb02zw==", "AaMxK+hWgv/eB3qHFb02zw"] {
            #expect(ListNode.ID(base64url: text.utf8) == nil, "\(text)")
        }
    }

    @Test("versions are ordered by clock, then by replica") func versions() {
        let versions = [(1, 5), (2, 1), (2, 9), (3, 0)].map { ListVersion(clock: $0, replica: ReplicaNumber($1)) }
        #expect(versions.shuffled().sorted() == versions)
        #expect(ReplicaNumber(255).description == "00000000000000ff" && ReplicaNumber("00000000000000FF") == ReplicaNumber(255))
        #expect(ReplicaNumber("ff") == nil && ReplicaNumber("00000000000000fg") == nil)
    }

    @Test("a deletion on its own is greater than one with a hex, at the same version") func deletionMarks() {
        var generator = SeededGenerator(seed: 3)
        let ids = (0..<2).map { _ in ListNode.ID(kind: .hex, time: 1, using: &generator) }.sorted()
        let (first, second) = (ListVersion(clock: 1, replica: ReplicaNumber(1)), ListVersion(clock: 2, replica: ReplicaNumber(1)))
        let marks = [
            DeletionMark(version: first, with: ids[0]), DeletionMark(version: first, with: ids[1]), DeletionMark(version: first),
            DeletionMark(version: second, with: ids[0]),
        ]
        #expect(marks.shuffled().sorted() == marks)
    }

    @Test("the clock follows the time, exceeds every observed time, and cannot run out") func clock() {
        var clock = HybridClock()
        #expect(clock.next(now: 1_000) == 1_000 << 16)
        #expect(clock.next(now: 1_000) == 1_000 << 16 + 1)
        #expect(clock.next(now: 500) == 1_000 << 16 + 2)
        clock.observe(5_000 << 16 + 7)
        #expect(clock.next(now: 2_000) == 5_000 << 16 + 8)
        clock.observe(3_000 << 16)
        #expect(clock.next(now: 6_000) == 6_000 << 16)
        for time in [Int64.min, -1, 0, .max, .max - 1] {
            clock.observe(time)
            let next = clock.next(now: time)
            #expect(next > 0 && next < .max)
        }
        #expect(HybridClock.milliseconds(of: 7 << 16 + 3) == 7 && HybridClock.counter(of: 7 << 16 + 3) == 3)
    }
}
