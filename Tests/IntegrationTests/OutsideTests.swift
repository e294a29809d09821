import Testing

/// Hexlist as seen by other programs on the link, and by earlier versions.
@Suite(
    "Looks from outside", .serialized, .rigLimit(long: 30),
    .ifBuilt)
struct OutsideTests {
    /// `Tests/Faults/outside`: openssl, nmap, testssl and tshark. Programs that are not installed are skipped with a message.
    @Test("scanners find TLS 1.3 and nothing readable", .ifRuns("outside"))
    func outside() async throws {
        try await Rig.run("outside", long: ["--long"])
    }

    /// `Tests/Faults/hidden`: `announce: false`, seen from the link.
    @Test("a hidden machine is invisible on the link; trusted peers connect, strangers are refused", .ifRuns("hidden"))
    func hidden() async throws {
        try await Rig.run("hidden", long: ["--seconds", "60"])
    }

    /// `Tests/Faults/repository`: the apt repository and the documents of the package.
    @Test("apt verifies the repository of `make repo`; links in the packaged documents lead somewhere", .ifRuns("repository"))
    func repository() async throws {
        try await Rig.run("repository", long: [])
    }

    /// `Tests/Faults/older`: a tree of hexes passes through a version that does not know inner hexes.
    @Test("a tree of hexes is unchanged by an older daemon, and by an older store", .ifRuns("older"))
    func older() async throws {
        try await Rig.run("older", long: [])
    }
}
