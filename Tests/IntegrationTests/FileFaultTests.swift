import Testing

/// The programs of Tests/Faults for files: see `CrashTests`.
@Suite("Kills and faults while files are fetched", .serialized, .rigLimit(long: 60), .ifBuilt)
struct FileFaultTests {
    @Test("SIGKILL at random instants of fetching files, on either side", .ifRuns("files"))
    func files() async throws {
        try await Rig.run("files", long: ["--rounds", "200", "--largest", "400"])
    }

    @Test("files of all kinds, with changes and faults during transfers", .ifRuns("file-troubles"))
    func fileTroubles() async throws {
        let long = ["--large", "5120", "--folders", "50", "--shared", "200", "--silence", "60"]
        try await Rig.run("file-troubles", Lab.isAvailable ? ["--hosts"] : [], long: long)
    }
}
