import Testing

@testable import HexlistNode

@Suite struct FileTurnsTests {
    @Test("what comes meanwhile is the next turn of its lane; another lane does not wait")
    func lanes() {
        var turns = FileTurns<String, Int>()
        #expect(turns.begin(1, in: "a") && !turns.begin(2, in: "a") && !turns.begin(3, in: "a"))
        #expect(turns.begin(4, in: "b") && turns.next(in: "b") == [])
        #expect(turns.next(in: "a") == [2, 3] && !turns.begin(5, in: "a"))
        #expect(turns.next(in: "a") == [5] && turns.next(in: "a") == [])
        #expect(turns.begin(6, in: "a") && turns.begin(7, in: "b"))
    }
}
