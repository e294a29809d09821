import Testing

/// Programs of Tests/Faults: connections and networks that fail between busy daemons. Both choose at random, with a seed they print.
@Suite(
    "A network that falls apart", .serialized, .rigLimit(long: 60),
    .ifBuilt)
struct PartitionTests {
    @Test("three machines, links cut and healed, frames lost, repeated and delayed", .ifRuns("partitions"))
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
