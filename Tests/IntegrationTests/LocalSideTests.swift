import Testing

/// The effects of programs of this machine on hexlistd, tested by programs of Tests/Faults.
@Suite(
    "The local side", .serialized, .rigLimit(long: 60),
    .ifBuilt)
struct LocalSideTests {
    @Test("the local API bears what no client sends", .ifRuns("local-api"))
    func localAPI() async throws {
        try await Rig.run("local-api", long: ["--long"])
    }

    @Test("hexlistd is what Docs/openapi.yaml says of it", .ifRuns("schema"))
    func schema() async throws {
        try await Rig.run("schema", long: ["--long"])
    }

    @Test("remotes of rclone: lists, links, failures, cancelling, and that it ends with the daemon", .ifRuns("rclone"))
    func rclone() async throws {
        try await Rig.run("rclone", long: ["--links", "5000"])
    }

    @Test("hooks are told each hex, and hurt nobody", .ifRuns("hooks"))
    func hooks() async throws {
        try await Rig.run("hooks", long: ["--hexes", "200"])
    }

    @Test("another user, a state that is not as it should be, and links to open", .ifRuns("local-side"))
    func localSide() async throws {
        try await Rig.run("local-side", long: ["--rounds", "100"])
    }

    @Test("what the systemd unit asks of hexlistd", .ifRuns("unit"))
    func unit() async throws {
        try await Rig.run("unit", long: [])
    }

    @Test("the private key and what hexes say stay where they are", .ifRuns("private"))
    func secrets() async throws {
        try await Rig.run("private", long: ["--hexes", "1000"])
    }
}
