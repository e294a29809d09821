import HexlistModel
import Testing

@testable import HexlistTransfers

@Suite("Scheduling of folder lists") struct ListSchedulerTests {
    private static func peer(_ number: UInt64) -> PeerID { PeerID(UUIDBytes(high: 1, low: number)) }

    @Test("each peer has one step in progress, its lists alternate, and other peers do not wait")
    func steps() {
        var steps = ListScheduler<String>()
        let (a, b) = (Self.peer(1), Self.peer(2))
        let begun = ["a", "b", "c"].map { steps.begin($0, of: a) } + [steps.begin("x", of: b)]
        #expect(begun == [true, false, false, true])
        let ofA = ["a", "b"].map { steps.next(of: a, unfinished: $0) }
        #expect(ofA == ["b", "c"])
        let ofB = ["x", nil].map { steps.next(of: b, unfinished: $0) }
        #expect(ofB == ["x", nil])
        let rest = (0..<3).map { _ in steps.next(of: a, unfinished: nil) }
        #expect(rest == ["a", "b", nil])
        let isFree = steps.begin("d", of: a)
        #expect(isFree)
    }
}
