import HexlistModel
import Testing

@testable import HexlistNode

@Suite("Lists of folders that peers wait for") struct ListTurnsTests {
    private static func peer(_ number: UInt64) -> PeerID { PeerID(UUIDBytes(high: 1, low: number)) }

    @Test("of each peer one step is under way, its lists in turn; another peer does not wait")
    func turns() {
        var turns = ListTurns<String>()
        let (a, b) = (Self.peer(1), Self.peer(2))
        let begun = ["a", "b", "c"].map { turns.begin($0, of: a) } + [turns.begin("x", of: b)]
        #expect(begun == [true, false, false, true])
        let ofA = ["a", "b"].map { turns.next(of: a, unfinished: $0) }
        #expect(ofA == ["b", "c"])
        let ofB = ["x", nil].map { turns.next(of: b, unfinished: $0) }
        #expect(ofB == ["x", nil])
        let rest = (0..<3).map { _ in turns.next(of: a, unfinished: nil) }
        #expect(rest == ["a", "b", nil])
        let isFree = turns.begin("d", of: a)
        #expect(isFree)
    }
}
