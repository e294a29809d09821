import Testing

/// Peers that impersonate others.
@Suite(
    "Names and pairings of others", .serialized, .rigLimit(long: 30),
    .ifBuilt)
struct HostilePeersTests {
    /// `Tests/Faults/names`: an impostor with a trusted peer's name is distinguishable, and gets no hex meant for that peer.
    @Test("a trusted Bob and a stranger Bob are distinguished everywhere, and the name means the trusted one", .ifRuns("names"))
    func names() async throws {
        try await Rig.run("names", long: [])
    }

    /// `Tests/Faults/pairing`: peers that give up once they know the digits, a machine in the middle that uses all tries of two users, and
    /// two users who name each other.
    @Test("repeated tries do not break a pairing", .ifRuns("pairing"))
    func pairing() async throws {
        try await Rig.run("pairing", long: ["--long", "--rounds", "200"])
    }
}
