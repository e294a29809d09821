import Testing

/// Peers that would be taken for others.
@Suite(
    "Names and pairings of others", .serialized, .rigLimit(long: 30),
    .ifBuilt)
struct HostilePeersTests {
    /// `Tests/Faults/names`: whoever calls himself as a trusted peer does is told apart from it, and gets nothing that is meant for it.
    @Test("a trusted Bob and a stranger Bob are told apart everywhere, and a name goes to the one that was trusted by it", .ifRuns("names"))
    func names() async throws {
        try await Rig.run("names", long: [])
    }

    /// `Tests/Faults/pairing`: peers that give up when they know the digits, a machine in the middle with all tries of two people, and two
    /// people who name each other.
    @Test("a pairing is not won by trying again", .ifRuns("pairing"))
    func pairing() async throws {
        try await Rig.run("pairing", long: ["--long", "--rounds", "200"])
    }
}
