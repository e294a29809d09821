import Testing

/// `Tests/Faults/hostile`: attacks on one hexlistd while a trusted peer goes on sending to it. It prints what each attack
/// came to; here it runs small, and with HEXLIST_LONG_TESTS=1 with the figures of its `--long`.
///
/// Each of these programs has folders, ports and where it needs one a lab of its own, so suites run side by side: one test after the other
/// within each, about as long as the other suites of programs.
@Suite(
    "Hostile input", .serialized, .rigLimit(long: 30),
    .ifBuilt)
struct HostileInputTests {
    @Test("strangers, and a trusted peer gone bad, hurt nobody", .ifRuns("hostile"))
    func hostile() async throws {
        try await Rig.run("hostile", long: ["--long"])
    }

    /// `Tests/Faults/strangers`: in a network of its own, with an address for each who comes.
    @Test("what others leave behind is bounded, and what was acknowledged stays", .ifRuns("strangers"))
    func strangers() async throws {
        try await Rig.run("strangers", long: ["--long"])
    }

    /// `Tests/Faults/memory`: what trusted peers say, and what it becomes in memory, in the store, in lists and on the disk.
    @Test("what is small on the wire and large behind it ends nobody", .ifRuns("memory"))
    func memory() async throws {
        try await Rig.run("memory", long: ["--long"])
    }
}
