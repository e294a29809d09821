import Testing

/// `Tests/Browser/page`: the page of `hexlist web` in the browsers of this machine, two of which hand each other hexes and files in a lab. What
/// `make test-browser` does besides (the extension, axe, 10 000 hexes) is left out here.
@Suite(
    "The page in real browsers", .timeLimit(.minutes(Rig.isLong ? 30 : Patience.test)),
    .enabled(if: Checkout.hasPrograms, "hexlistd and hexlist are not built"))
struct BrowserTests {
    private static let program = "../Browser/run"

    @Test("is used, hands over files, and answers no other page", .ifRuns(program))
    func page() async throws {
        try await Rig.run(Self.program, short: ["page", "--short"], long: ["page"])
    }
}
