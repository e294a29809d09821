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

    @Test(
        "the clock is right, unwatched, or plainly wrong",
        arguments: [
            (1_800_000_000, true, .ok), (1_800_000_000, false, .warning), (1_800_000_000, nil, .ok), (0, true, .failed),
            (1_700_000_000, true, .failed), (5_000_000_000, nil, .failed),
        ] as [(Int64, Bool?, DoctorStep.State)])
    func clock(seconds: Int64, isSynchronised: Bool?, expected: DoctorStep.State) {
        let step = LocalSteps.clock(seconds: seconds, isSynchronised: isSynchronised)
        #expect(step.state == expected)
        #expect(step.advice.isEmpty == (expected == .ok))
    }

    @Test(
        "the bus's address",
        arguments: [
            ("unix:path=/run/bus", "/run/bus"), ("unix:path=/a,guid=12;unix:path=/b", "/a"), ("unix:guid=1,path=/c", "/c"),
            ("tcp:host=x", nil), ("", nil),
        ] as [(String, String?)])
    func bus(address: String, path: String?) { #expect(LocalSteps.busPath(address) == path) }
}
