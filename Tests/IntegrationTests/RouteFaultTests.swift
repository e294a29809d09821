import Testing

/// The programs of Tests/Faults for routes: see `CrashTests`.
@Suite("Routes between machines that are never online together", .serialized, .rigLimit(long: 60), .ifBuilt)
struct RouteFaultTests {
    @Test("peers that are never online together, through a folder and mosquitto", .ifRuns("away"))
    func away() async throws {
        try await Rig.run("away", long: ["--rounds", "20", "--hexes", "2000"])
    }

    @Test("wrong clocks, a restored backup, two machines with one identity, on routes", .ifRuns("away", "--only", "identity"))
    func awayIdentity() async throws {
        try await Rig.run("away", ["--only", "identity"], long: [])
    }

    @Test("a folder that is carried by mail", .ifRuns("away", "--only", "mail"))
    func awayMail() async throws {
        try await Rig.run("away", ["--only", "mail"], long: ["--rounds", "10", "--hexes", "500"])
    }

    @Test("envelopes of a second implementation, in both directions", .ifRuns("envelopes"))
    func foreignEnvelopes() async throws {
        try await Rig.run("envelopes", long: ["--peers", "100", "--rounds", "10"])
    }
}
