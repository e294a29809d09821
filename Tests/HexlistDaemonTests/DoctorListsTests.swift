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

    private func hex(_ title: String, owned: Bool = true, _ peers: [SharedHexView.Peer]) -> SharedHexView {
        SharedHexView(list: "l", hex: 1, title: title, owned: owned, access: .write, hexes: 0, links: 1, peers: peers)
    }

    private func peer(_ state: SharedHexView.Peer.State, _ access: ShareAccess = .read, message: String? = nil) -> SharedHexView.Peer {
        SharedHexView.Peer(
            uuid: PeerID(UUIDBytes(high: 0x1A2B_3C4D_0000_8000, low: 0x8000_0000_0000_0003)), tag: nil, access: access, state: state,
            online: false, message: message)
    }

    @Test("a shared hex with which nothing is exchanged is a warning, except for members that have not joined")
    func sharedHexes() {
        #expect(Doctor.lists([], [hex("Reading", [peer(.joined, .none)])]) == nil)
        let good = Doctor.lists([], [hex("Reading", [peer(.joined), peer(.offered, message: "too old")])])
        #expect(good?.state == .ok && good?.message == "Shared hexes: 1, without a problem.")
        let bad = Doctor.lists([machine("desk", .inSync)], [hex("Rea\u{1B}ding", [peer(.joined, message: "The clocks differ.")])])
        #expect(bad?.state == .warning && bad?.advice.count == 1)
        #expect(bad?.message.hasSuffix("ding”: The clocks differ.") == true && bad?.message.contains("\u{1B}") == false)
        var full = hex("Full", [peer(.joined)])
        full.needsRenewal = true
        let renewal = Doctor.lists([], [full])
        #expect(renewal?.state == .warning && renewal?.message.contains("“Full”: It has nearly the maximum") == true)
        #expect(renewal?.advice.last?.contains("`hexlist mine share 1 --renew`") == true)
        let worse = Doctor.lists(
            [machine("desk", .differs)], [hex("Reading", owned: false, [peer(.offered, message: "The clocks differ.")])])
        #expect(worse?.state == .failed && worse?.message.contains("“Reading”: The clocks differ.") == true)
    }
}
