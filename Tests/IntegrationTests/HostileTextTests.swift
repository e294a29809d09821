import Testing

/// `Tests/Faults/hostile-text`: peer text is shown by hexlist and in the log without controlling a terminal. Each new command of hexlist
/// needs a case there. Its two parts run in parallel.
@Suite(
    "Hostile texts", .rigLimit(long: 30),
    .ifBuilt)
struct HostileTextTests {
    @Test(
        "peer text in each command and in the log has its control characters replaced", .ifRuns("hostile-text"),
        arguments: ["reading", "changing"])
    func hostileText(part: String) async throws {
        try await Rig.run("hostile-text", ["--part", part], long: [])
    }
}
