import Testing

/// `Tests/Faults/hostile`: attacks on one hexlistd while a trusted peer keeps sending to it. It prints the result of each attack. By
/// default it runs small; HEXLIST_LONG_TESTS=1 uses the figures of its `--long`.
///
/// Each of these programs has its own folders, ports and, if needed, lab, so suites run in parallel. Within each suite tests run one at a
/// time, and the suites take about equally long.
@Suite(
    "Hostile input", .serialized, .rigLimit(long: 30),
    .ifBuilt)
struct HostileInputTests {
    @Test("strangers and a malicious trusted peer do no harm", .ifRuns("hostile"))
    func hostile() async throws {
        try await Rig.run("hostile", long: ["--long"])
    }

    /// `Tests/Faults/strangers`, in a network of its own, with an address for each stranger.
    @Test("data left behind by strangers is bounded, and acknowledged hexes stay", .ifRuns("strangers"))
    func strangers() async throws {
        try await Rig.run("strangers", long: ["--long"])
    }

    /// `Tests/Faults/memory`: messages of trusted peers and their size in memory, in the store, in lists and on the disk.
    @Test("messages that are small on the wire and large in memory are bounded", .ifRuns("memory"))
    func memory() async throws {
        try await Rig.run("memory", long: ["--long"])
    }
}
