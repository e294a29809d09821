import Testing

@testable import HexlistSession

struct StrangerSessionsTests {
    @Test(
        "one too many: the oldest of the network with the most goes",
        arguments: [
            ([], 2, nil), (["a", "b"], 2, nil),
            // The newcomer's own, if it has as many as any; of equals the one that is longest there.
            (["a", "b", "a"], 2, 0), (["a", "b", "b"], 2, 1), (["a", "b", "c"], 2, 0),
            // A single guest stays, however long it is there.
            (["guest", "x", "x", "y", "y", "y"], 5, 3), (["guest", "x"], 0, 0), (["guest"], 0, nil),
        ] as [([String], Int, Int?)])
    func surplus(_ networks: [String], _ limit: Int, _ index: Int?) {
        #expect(StrangerSessions.surplus(networks, limit: limit) == index)
    }

    @Test("few strangers are read at the rate of one; many share what all of them get")
    func rate() {
        #expect(StrangerSessions.rate(each: 20, together: 200, sessions: 0) == 20)
        #expect(StrangerSessions.rate(each: 20, together: 200, sessions: 10) == 20)
        #expect(StrangerSessions.rate(each: 20, together: 200, sessions: 100) == 2)
    }
}
