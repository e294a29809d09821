import HexlistModel
import Testing

@testable import HexlistNode

@Suite("Lists of folders that peers wait for") struct ListTurnsTests {
    private static func peer(_ number: UInt64) -> PeerID { PeerID(UUIDBytes(high: 1, low: number)) }

    @Test("of each peer one step is under way, its lists in turn; another peer does not wait")
    func turns() {
        var turns = ListTurns<String>()
        #expect(turns.begin("a", of: Self.peer(1)))
        for list in ["b", "c"] { #expect(!turns.begin(list, of: Self.peer(1))) }
        #expect(turns.begin("x", of: Self.peer(2)))
        #expect(turns.next(of: Self.peer(1), unfinished: "a") == "b")
        #expect(turns.next(of: Self.peer(1), unfinished: "b") == "c")
        #expect(turns.next(of: Self.peer(2), unfinished: "x") == "x" && turns.next(of: Self.peer(2), unfinished: nil) == nil)
        #expect(turns.next(of: Self.peer(1), unfinished: nil) == "a" && turns.next(of: Self.peer(1), unfinished: nil) == "b")
        #expect(turns.next(of: Self.peer(1), unfinished: nil) == nil && turns.begin("d", of: Self.peer(1)))
    }
}
