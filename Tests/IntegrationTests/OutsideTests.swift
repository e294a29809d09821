import Testing

/// Hexlist as programs of others see it on the link, and as earlier versions do.
@Suite(
    "Looks from outside", .serialized, .rigLimit(long: 30),
    .ifBuilt)
struct OutsideTests {
    /// `Tests/Faults/outside`: openssl, nmap, testssl and tshark. What is not installed is skipped by name, in what it prints.
    @Test("tools of others see TLS 1.3 and nothing to read", .ifRuns("outside"))
    func outside() async throws {
        try await Rig.run("outside", long: ["--long"])
    }

    /// `Tests/Faults/hidden`: `announce: false`, seen from the link.
    @Test("the link shows nothing of a machine that hides; trusted peers meet it, strangers are sent away", .ifRuns("hidden"))
    func hidden() async throws {
        try await Rig.run("hidden", long: ["--seconds", "60"])
    }

    /// `Tests/Faults/older`: a tree of hexes through a program that does not know them.
    @Test("a tree of hexes is the same behind an older daemon, and out of an older store", .ifRuns("older"))
    func older() async throws {
        try await Rig.run("older", long: [])
    }
}
