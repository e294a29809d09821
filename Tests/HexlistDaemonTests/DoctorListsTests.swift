import HexlistAPI
import HexlistModel
import Testing

@testable import HexlistDaemon

@Suite("The step `lists` of doctor") struct DoctorListsTests {
    private func machine(_ name: String, _ state: OwnMachineView.State, message: String? = nil) -> OwnMachineView {
        OwnMachineView(
            uuid: PeerID(UUIDBytes(high: 0x1A2B_3C4D_0000_8000, low: 0x8000_0000_0000_0002)),
            tag: PeerSummary(name: name, alias: name, trust: .trusted), state: state, message: message, addedAt: Timestamp(milliseconds: 0))
    }

    @Test("the worst state decides; each problem has advice")
    func states() {
        #expect(Doctor.lists([]) == nil)
        let good = Doctor.lists([machine("desk", .inSync), machine("lap", .away)])
        #expect(good?.state == .ok && good?.message == "My Hexlist: in sync with desk. lap is away." && good?.advice.isEmpty == true)
        let waiting = Doctor.lists([machine("desk", .inSync), machine("lap", .waiting)])
        #expect(waiting?.state == .warning && waiting?.advice == ["Run `hexlist own add` for this machine on lap."])
        let stuck = Doctor.lists([machine("lap", .waiting), machine("desk", .clock, message: "The clock of desk is wrong.")])
        #expect(stuck?.state == .failed && stuck?.message.hasSuffix("The clock of desk is wrong.") == true && stuck?.advice.count == 2)
        for state in OwnMachineView.State.allCases { #expect(Doctor.lists([machine("lap", state)])?.message.contains("lap") == true) }
    }
}
