import Testing

/// `Tests/Faults/hostile`: attacks on one hexlistd while a trusted peer goes on sending to it. It prints what each attack
/// came to; here it runs small, and with HEXLIST_LONG_TESTS=1 with the figures of its `--long`.
@Suite(
    "Hostile input", .serialized, .timeLimit(.minutes(Rig.isLong ? 30 : 5)),
    .enabled(if: Checkout.hasPrograms, "hexlistd and hexlist are not built"))
struct HostileInputTests {
    @Test(
        "strangers, and a trusted peer gone bad, hurt nobody",
        .enabled(if: Rig.obstacle("hostile") == nil, "\(Rig.obstacle("hostile") ?? "")"))
    func hostile() async throws {
        try await Rig.run("hostile", long: ["--long"])
    }
}
