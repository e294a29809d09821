import HexlistAPI
import HexlistModel
import Testing

@testable import hexlist

@Suite struct DeviceTrustTextTests {
    private static let low = fingerprint([0x05] + [UInt8](repeating: 0x7F, count: 31))
    private static let high = fingerprint([0xC2] + [UInt8](repeating: 0xBD, count: 31))

    private static func fingerprint(_ bytes: [UInt8]) -> Fingerprint {
        guard let fingerprint = Fingerprint(bytes: bytes) else { preconditionFailure("not 32 bytes") }
        return fingerprint
    }

    private func lines(_ device: Fingerprint, own: Fingerprint, version: String?, isFull: Bool = false) -> [String] {
        let view = PeerView(
            uuid: device.peerID, kind: .localsend, name: "Pixel 9", state: .verified, trust: .stranger, fingerprint: device,
            version: version)
        return DeviceTrustText.lines(of: view, device, own: own, name: "ada", isFull: isFull)
    }

    @Test("the smaller fingerprint is first, as the app joins them") func order() {
        let expected = "  057F7F7F…7F7F7F7F C2BDBDBD…BDBDBDBD"
        #expect(lines(Self.high, own: Self.low, version: "2.2").contains(expected))
        #expect(lines(Self.low, own: Self.high, version: "2.2").contains(expected))
        let full = lines(Self.high, own: Self.low, version: "2.2", isFull: true)
        #expect(full.suffix(2).map(\.count) == [66, 66] && full[full.count - 2].hasPrefix("  057F"))
    }

    @Test("versions without the page Verify", arguments: [("2.1", false), ("2.0", false), ("2.2", true), ("3.0", true), ("x", false)])
    func versions(version: String, hasPage: Bool) {
        #expect(lines(Self.high, own: Self.low, version: version).contains { $0.contains("nothing to compare") } != hasPage)
    }
}
