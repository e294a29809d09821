import HexlistAPI
import HexlistModel
import Testing

@testable import hexlist

@Suite("What doctor ends with")
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

    @Test("a summary counts")
    func summary() {
        #expect(DoctorText.summary(DoctorReport(steps: [DoctorStep("a", .ok, "x")])) == "All is well.")
        let steps = [DoctorStep("a", .failed, "x"), DoctorStep("b", .warning, "x"), DoctorStep("c", .warning, "x")]
        #expect(DoctorText.summary(DoctorReport(steps: steps)) == "1 failed, 2 warnings. What to do stands below each.")
    }
}
