import Testing

/// Connections and networks that fail between daemons that have a lot to say: programs of Tests/Faults. Both choose at random, from a
/// seed they print.
@Suite(
    "A network that falls apart", .serialized, .rigLimit(long: 60),
    .ifBuilt)
struct PartitionTests {
    @Test("three machines, links that are cut and healed, frames that are lost, repeated and late", .ifRuns("partitions"))
    func partitions() async throws {
        try await Rig.run("partitions", long: ["--rounds", "60", "--longest", "60"])
    }

    @Test("two daemons dial each other at the same moment", .ifRuns("both-open"))
    func bothOpen() async throws {
        try await Rig.run("both-open", long: ["--rounds", "500"])
    }

    @Test("peers that restart on another port are listed with that one", .ifRuns("restart-port"))
    func restartPort() async throws {
        try await Rig.run("restart-port", long: ["--rounds", "200", "--within", "5"])
    }

    @Test("of two machines with one identity at most the first gets hexes", .ifRuns("copied-identity"))
    func copiedIdentity() async throws {
        try await Rig.run("copied-identity", long: ["--rounds", "60"])
    }
}
