import Testing

@testable import HexlistNode

@Suite("Dials that peers ask for")
struct DialBackTurnsTests {
    @Test("four run at once, of all peers; one that ended makes room")
    func bound() {
        var turns = DialBackLimits()
        #expect((0..<6).map { _ in turns.begin() } == [true, true, true, true, false, false])
        turns.ended()
        #expect([turns.begin(), turns.begin()] == [true, false])
    }
}
