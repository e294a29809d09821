import Testing

/// `Tests/Faults/file-attacks`: attacks on the connections for files, from both sides.
@Suite(
    "Hostile owners and fetchers of files", .serialized, .rigLimit(long: 30),
    .ifBuilt)
struct HostileFilesTests {
    @Test("an unauthorised peer fetches no file, and a lying owner can deliver only the announced bytes", .ifRuns("file-attacks"))
    func fileAttacks() async throws {
        try await Rig.run("file-attacks", long: ["--patient"])
    }
}
