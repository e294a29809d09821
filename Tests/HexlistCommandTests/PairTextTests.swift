import HexlistAPI
import HexlistModel
import Testing

@testable import hexlist

@Suite("Texts of pairing")
struct PairTextTests {
    @Test(
        "answers to the prompt",
        arguments: [
            ("y", .yes), (" Yes ", .yes), ("040660", .yes), ("040 660", .yes), ("040-660\r", .yes), ("040661", .otherDigits),
            ("04066", .otherDigits), ("0406600", .otherDigits), ("1", .no), ("", .no), ("n", .no), ("maybe", .no), ("yess", .no),
            ("040660 yes", .no), ("123456789", .no), ("٠٤٠٦٦٠", .no),
        ] as [(String, PairText.Answer)])
    func answer(line: String, expected: PairText.Answer) { #expect(PairText.answer(line, digits: "040660") == expected) }

    private static func ended(_ triesLeft: Int?) -> PairingView {
        PairingView(
            id: 1, peer: PeerID(UUIDBytes(high: 0x1A2B_3C4D_0000_8000, low: 0x8000_0000_0000_0002)), name: "cyd", isOwn: false,
            state: .ended,
            reason: .rejected,
            message: "You said no.", triesLeft: triesLeft)
    }

    @Test("the command for the other machine is named, unless the caller has printed another one") func asking() {
        #expect(
            PairText.asking(Self.ended(nil), namesCommand: true)
                == "Asking cyd 1A2B3C4D (stranger) for two minutes. On cyd 1A2B3C4D, run `hexlist pair`.")
        #expect(PairText.asking(Self.ended(nil), namesCommand: false) == "Asking cyd 1A2B3C4D (stranger) for two minutes.")
    }

    @Test("the attempt limit is announced in advance")
    func limit() {
        #expect(PairText.ended(Self.ended(2)) == "Not paired with cyd 1A2B3C4D (stranger): You said no.")
        #expect(PairText.ended(Self.ended(nil)) == PairText.ended(Self.ended(2)))
        #expect(PairText.ended(Self.ended(1)).hasSuffix("You said no. One more attempt is left in these ten minutes."))
        #expect(PairText.ended(Self.ended(0)).contains("the last of three attempts"))
        let until = Timestamp(milliseconds: 1_800_000_000_000)
        #expect(!PairText.stillOpen(until, triesLeft: 2).contains("One more"))
        #expect(PairText.stillOpen(until, triesLeft: 1).hasSuffix("Ctrl-C stops. One more failed attempt stops it."))
    }
}
