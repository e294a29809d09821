import Testing

@testable import HexlistNode

@Suite("Limits of requested dials")
struct DialBackLimitsTests {
    @Test("four run at once over all peers; an end makes room for the next")
    func bound() {
        var turns = DialBackLimits()
        #expect((0..<6).map { _ in turns.begin() } == [true, true, true, true, false, false])
        turns.ended()
        #expect([turns.begin(), turns.begin()] == [true, false])
    }
}
