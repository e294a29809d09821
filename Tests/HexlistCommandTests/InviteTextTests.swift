import HexlistAPI
import HexlistModel
import Testing

@testable import hexlist

@Suite("Texts about invitations") struct InviteTextTests {
    @Test(
        "an invitation lasts 1 minute to 24 hours",
        arguments: [
            ("10m", 600), ("60", 60), ("1m", 60), ("24h", 86_400), ("1d", 86_400), ("59s", nil), ("25h", nil), ("0", nil), ("x", nil),
            ("", nil),
        ] as [(String, Int?)])
    func durations(_ text: String, _ seconds: Int?) { #expect(InviteText.seconds(text) == seconds) }

    @Test("text of guests is cleaned, and `(guest)` is never cut off") func lines() {
        let at = Timestamp(milliseconds: 0)
        let name = "\"\u{1B}[31mAn\nna\" 10.0.0.7"
        let hex = { InvitationHex(hex: 41, peer: PeerID(.nil), name: $0, files: $1, size: 12_000_000, at: at) }
        #expect(
            InviteText.received(hex("\"Anna\" 10.0.0.7", 3)).hasSuffix("received hex 41 from \"Anna\" 10.0.0.7 (guest): 3 files, 11.4 MiB"))
        #expect(InviteText.received(hex("10.0.0.7", 0)).hasSuffix("received hex 41 from 10.0.0.7 (guest)"))
        let hostile = InviteText.received(hex(name, 1))
        #expect(!hostile.unicodeScalars.contains { $0.value < 0x20 } && hostile.contains("(guest)"))
        #expect(InviteText.received(hex(String(repeating: "W", count: 4_000), 0)).hasSuffix("(guest)"))
        #expect(InviteText.opened(InvitationGuest(address: "10.0.0.7", device: "iPhone", at: at)).hasSuffix("opened on 10.0.0.7 (iPhone)"))
        #expect(InviteText.opened(InvitationGuest(address: "10.0.0.7", device: nil, at: at)).hasSuffix("opened on 10.0.0.7"))
    }
}
