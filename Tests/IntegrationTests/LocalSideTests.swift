import Testing

/// The effects of programs of this machine on hexlistd, tested by programs of Tests/Faults.
@Suite(
    "The local side", .serialized, .rigLimit(long: 60),
    .ifBuilt)
struct LocalSideTests {
    @Test("the local API withstands malformed requests", .ifRuns("local-api"))
    func localAPI() async throws {
        try await Rig.run("local-api", long: ["--long"])
    }

    @Test("hexlistd conforms to Docs/openapi.yaml", .ifRuns("schema"))
    func schema() async throws {
        try await Rig.run("schema", long: ["--long"])
    }

    @Test("rclone remotes: lists, links, failures, cancelling, and its end with the daemon", .ifRuns("rclone"))
    func rclone() async throws {
        try await Rig.run("rclone", long: ["--links", "5000"])
    }

    @Test("hooks get each hex, and cannot disturb the daemon", .ifRuns("hooks"))
    func hooks() async throws {
        try await Rig.run("hooks", long: ["--hexes", "200"])
    }

    @Test("other users, unusual state folders, and links to open", .ifRuns("local-side"))
    func localSide() async throws {
        try await Rig.run("local-side", long: ["--rounds", "100"])
    }

    @Test("drop tokens: other programs, hostile requests, and kills while requests are repeated", .ifRuns("drops"))
    func drops() async throws {
        try await Rig.run("drops", long: ["--rounds", "200"])
    }

    @Test("imports, changes and the conversion of My Hexlist are complete or absent after a kill", .ifRuns("history"))
    func history() async throws {
        try await Rig.run("history", long: ["--rounds", "60"])
    }

    @Test("one My Hexlist on two machines, with cuts and kills", .ifRuns("own"))
    func own() async throws {
        try await Rig.run("own", long: ["--rounds", "300"])
    }

    @Test("a shared hex on four machines, with cuts and kills", .ifRuns("lists"))
    func lists() async throws {
        try await Rig.run("lists", long: ["--rounds", "300"])
    }

    @Test("the bridge to KDE Connect", .ifRuns("kdeconnect"))
    func kdeConnect() async throws {
        try await Rig.run("kdeconnect", long: [])
    }

    @Test("requirements of the systemd unit", .ifRuns("unit"))
    func unit() async throws {
        try await Rig.run("unit", long: [])
    }

    @Test("the private key and hex contents do not leak", .ifRuns("private"))
    func secrets() async throws {
        try await Rig.run("private", long: ["--hexes", "1000"])
    }
}
