import Testing

@testable import HexlistSession

struct StrangerSessionsTests {
    @Test(
        "over the limit, the network with the most sessions loses its oldest",
        arguments: [
            ([], 2, nil), (["a", "b"], 2, nil),
            // The oldest session of the newcomer's network ends, if no other network has more sessions.
            (["a", "b", "a"], 2, 0), (["a", "b", "b"], 2, 1), (["a", "b", "c"], 2, 0),
            // A network's only session stays, however old it is.
            (["guest", "x", "x", "y", "y", "y"], 5, 3), (["guest", "x"], 0, 0), (["guest"], 0, nil),
        ] as [([String], Int, Int?)])
    func surplus(_ networks: [String], _ limit: Int, _ index: Int?) {
        #expect(StrangerSessionRules.surplus(networks, limit: limit) == index)
    }

    @Test("few strangers each get the full read rate; many share a common one")
    func rate() {
        #expect(StrangerSessionRules.rate(each: 20, together: 200, sessions: 0) == 20)
        #expect(StrangerSessionRules.rate(each: 20, together: 200, sessions: 10) == 20)
        #expect(StrangerSessionRules.rate(each: 20, together: 200, sessions: 100) == 2)
    }
}
