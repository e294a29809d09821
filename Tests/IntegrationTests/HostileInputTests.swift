import Testing

/// `Tests/Faults/hostile`: attacks on one hexlistd while a trusted peer goes on sending to it. It prints what each attack
/// came to; here it runs small, and with HEXLIST_LONG_TESTS=1 with the figures of its `--long`.
@Suite(
    "Hostile input", .serialized, .timeLimit(.minutes(Rig.isLong ? 30 : Patience.test)),
    .enabled(if: Checkout.hasPrograms, "hexlistd and hexlist are not built"))
struct HostileInputTests {
    @Test(
        "strangers, and a trusted peer gone bad, hurt nobody",
        .enabled(if: Rig.obstacle("hostile") == nil, "\(Rig.obstacle("hostile") ?? "")"))
    func hostile() async throws {
        try await Rig.run("hostile", long: ["--long"])
    }

    /// `Tests/Faults/strangers`: in a network of its own, with an address for each who comes.
    @Test(
        "what others leave behind is bounded, and what was acknowledged stays",
        .enabled(if: Rig.obstacle("strangers") == nil, "\(Rig.obstacle("strangers") ?? "")"))
    func strangers() async throws {
        try await Rig.run("strangers", long: ["--long"])
    }

    /// `Tests/Faults/file-attacks`: on the connections on which files are fetched, from both sides.
    @Test(
        "who may not fetch a file does not, and an owner that lies hands over nothing but what was announced",
        .enabled(if: Rig.obstacle("file-attacks") == nil, "\(Rig.obstacle("file-attacks") ?? "")"))
    func fileAttacks() async throws {
        try await Rig.run("file-attacks", long: ["--patient"])
    }

    /// `Tests/Faults/memory`: what trusted peers say, and what it becomes in memory, in the store, in lists and on the disk.
    @Test(
        "what is small on the wire and large behind it ends nobody",
        .enabled(if: Rig.obstacle("memory") == nil, "\(Rig.obstacle("memory") ?? "")"))
    func memory() async throws {
        try await Rig.run("memory", long: ["--long"])
    }

    /// `Tests/Faults/outside`: openssl, nmap, testssl and tshark. What is not installed is skipped by name, in what it prints.
    @Test(
        "tools of others see TLS 1.3 and nothing to read",
        .enabled(if: Rig.obstacle("outside") == nil, "\(Rig.obstacle("outside") ?? "")"))
    func outside() async throws {
        try await Rig.run("outside", long: ["--long"])
    }

    /// `Tests/Faults/hidden`: `announce: false`, seen from the link.
    @Test(
        "the link shows nothing of a machine that hides; trusted peers meet it, strangers are sent away",
        .enabled(if: Rig.obstacle("hidden") == nil, "\(Rig.obstacle("hidden") ?? "")"))
    func hidden() async throws {
        try await Rig.run("hidden", long: ["--seconds", "60"])
    }

    /// `Tests/Faults/older`: a tree of hexes through a program that does not know them.
    @Test(
        "a tree of hexes is the same behind an older daemon, and out of an older store",
        .enabled(if: Rig.obstacle("older") == nil, "\(Rig.obstacle("older") ?? "")"))
    func older() async throws {
        try await Rig.run("older", long: [])
    }

    /// `Tests/Faults/hostile-text`: whatever a peer writes, hexlist and the log show it and a terminal obeys none of it. A new
    /// command of hexlist has to be given a case there.
    @Test(
        "texts of a peer are shown, never obeyed, by every command and in the log",
        .enabled(if: Rig.obstacle("hostile-text") == nil, "\(Rig.obstacle("hostile-text") ?? "")"))
    func hostileText() async throws {
        try await Rig.run("hostile-text", long: [])
    }

    /// `Tests/Faults/names`: whoever calls himself as a trusted peer does is told apart from it, and gets nothing that is meant for it.
    @Test(
        "a trusted Bob and a stranger Bob are told apart everywhere, and a name goes to the one that was trusted by it",
        .enabled(if: Rig.obstacle("names") == nil, "\(Rig.obstacle("names") ?? "")"))
    func names() async throws {
        try await Rig.run("names", long: [])
    }

    /// `Tests/Faults/pairing`: peers that give up when they know the digits, a machine in the middle with all tries of two people, and two
    /// people who name each other.
    @Test(
        "a pairing is not won by trying again",
        .enabled(if: Rig.obstacle("pairing") == nil, "\(Rig.obstacle("pairing") ?? "")"))
    func pairing() async throws {
        try await Rig.run("pairing", long: ["--long", "--rounds", "200"])
    }
}
