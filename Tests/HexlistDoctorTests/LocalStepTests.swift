import HexlistAPI
import Testing

@testable import HexlistDoctor

@Suite("Doctor's steps without a daemon", .timeLimit(.minutes(5)))
struct LocalStepTests {
    @Test(
        "the clock is right, unsynchronised, or obviously wrong",
        arguments: [
            (1_800_000_000, true, .ok), (1_800_000_000, false, .warning), (1_800_000_000, nil, .ok), (0, true, .failed),
            (1_700_000_000, true, .failed), (5_000_000_000, nil, .failed),
        ] as [(Int64, Bool?, DoctorStep.State)])
    func clock(seconds: Int64, isSynchronised: Bool?, expected: DoctorStep.State) {
        let step = LocalChecks.clock(seconds: seconds, isSynchronised: isSynchronised)
        #expect(step.state == expected)
        #expect(step.advice.isEmpty == (expected == .ok))
    }

    @Test(
        "the address of the D-Bus bus",
        arguments: [
            ("unix:path=/run/bus", "/run/bus"), ("unix:path=/a,guid=12;unix:path=/b", "/a"), ("unix:guid=1,path=/c", "/c"),
            ("tcp:host=x", nil), ("", nil),
        ] as [(String, String?)])
    func bus(address: String, path: String?) { #expect(LocalChecks.busPath(address) == path) }

    @Test("steps are ordered by dependency: machine, firewall, peer")
    func order() async {
        let daemon = DoctorStep("daemon", .ok, "x")
        let steps = [DoctorStep("store", .ok, "x"), DoctorStep("peer", .ok, "x"), DoctorStep("peer.dialBack", .ok, "x")]
        let report = await LocalDoctor(variables: [:]).report(daemon: daemon, steps: steps, port: 24_391, usesMulticast: false)
        #expect(report.steps.map(\.step) == ["daemon", "clock", "store", "firewall", "peer", "peer.dialBack"])
        // A peer that dialled back has reached the port, regardless of any filters.
        #expect(report.steps[3].state == .ok)
    }
}
