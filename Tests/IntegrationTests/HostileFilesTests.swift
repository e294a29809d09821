import Testing

/// `Tests/Faults/file-attacks`: on the connections on which files are fetched, from both sides.
@Suite(
    "Hostile owners and fetchers of files", .serialized, .rigLimit(long: 30),
    .ifBuilt)
struct HostileFilesTests {
    @Test("who may not fetch a file does not, and an owner that lies hands over nothing but what was announced", .ifRuns("file-attacks"))
    func fileAttacks() async throws {
        try await Rig.run("file-attacks", long: ["--patient"])
    }
}
