import Testing

/// `Tests/Faults/hostile-text`: whatever a peer writes, hexlist and the log show it and a terminal obeys none of it. A new command of
/// hexlist has to be given a case there. Its two parts run side by side.
@Suite(
    "Hostile texts", .rigLimit(long: 30),
    .ifBuilt)
struct HostileTextTests {
    @Test(
        "texts of a peer are shown, never obeyed, by every command and in the log", .ifRuns("hostile-text"),
        arguments: ["reading", "changing"])
    func hostileText(part: String) async throws {
        try await Rig.run("hostile-text", ["--part", part], long: [])
    }
}
