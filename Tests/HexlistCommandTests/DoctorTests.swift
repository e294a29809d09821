import HexlistAPI
import HexlistModel
import Testing

@testable import hexlist

@Suite("Result of `hexlist doctor`")
struct DoctorTests {
    @Test(
        "exit codes",
        arguments: [
            ([], .done),
            ([DoctorStep("a", .ok, "x"), DoctorStep("b", .warning, "x")], .done),
            ([DoctorStep("a", .ok, "x"), DoctorStep("b", .failed, "x")], .failed),
            ([DoctorStep("daemon", .failed, "x", code: "daemonUnreachable"), DoctorStep("b", .failed, "x")], .noDaemon),
            ([DoctorStep("b", .failed, "x"), DoctorStep("peer", .failed, "x", code: "notFound")], .notFound),
            ([DoctorStep("peer", .failed, "x", code: "ambiguous")], .notFound),
            ([DoctorStep("b", .failed, "x", code: "something newer")], .failed),
        ] as [([DoctorStep], HexlistAPI.ExitStatus)])
    func status(steps: [DoctorStep], expected: HexlistAPI.ExitStatus) { #expect(DoctorText.status(DoctorReport(steps: steps)) == expected) }

    private static let long = DoctorStep(
        "firewall", .warning, "ufw is active, and whether it lets port 24391 through can only be read by root.",
        advice: ["Run `sudo hexlist doctor`, or `sudo ufw allow 24391/tcp` where it does not."])

    @Test("a step is wrapped to the terminal's width, and unwrapped in a pipe", arguments: [20, 40, 55, 56, 80, 200])
    func layout(width: Int) {
        let layout = DoctorText.Layout(width)
        let message = layout.message(Self.long)
        let lines = ["warning" + message[0]] + message.dropFirst()
        #expect(lines.allSatisfy { TextWidth.of($0) <= width }, "\(lines)")
        let advice = layout.advice(Self.long.advice[0])
        #expect((["\(advice[0])\(advice[1])"] + advice.dropFirst(2)).allSatisfy { TextWidth.of($0) <= width }, "\(advice)")
        func words(_ lines: [String]) -> String { lines.flatMap { $0.split(separator: " ") }.joined(separator: " ") }
        if width > 20 { #expect(words(lines) == "warning firewall \(Self.long.message)") }
    }

    @Test("in a pipe a step is one line") func pipe() {
        let layout = DoctorText.Layout(nil)
        #expect(layout.message(Self.long) == ["  firewall       \(Self.long.message)"])
        #expect(layout.advice(Self.long.advice[0]) == ["         → ", Self.long.advice[0]])
    }

    @Test("the summary counts the steps")
    func summary() {
        #expect(DoctorText.summary(DoctorReport(steps: [DoctorStep("a", .ok, "x")])) == "Everything is fine.")
        let steps = [DoctorStep("a", .failed, "x"), DoctorStep("b", .warning, "x"), DoctorStep("c", .warning, "x")]
        #expect(DoctorText.summary(DoctorReport(steps: steps)) == "1 failed, 2 warnings. See → for what to do.")
    }
}
