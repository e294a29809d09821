import HexlistModel
import Testing

@testable import HexlistEnvelope

@Suite("Cards") struct CardTests {
    private let ada: Peer

    init() throws { ada = try Peer(1) }

    @Test("a card has the identity's fingerprint, its serial and a valid signature") func new() throws {
        #expect(ada.card.bytes.count == 1_379 && ada.card.serial == 1 && ada.card.isSignatureValid)
        #expect(ada.card.fingerprint == Fingerprint.sha256(of: ada.signer.keyInfo))
        #expect(try Card(of: ada.signer, sealingKey: ada.key, serial: 0xFEDC_BA98).serial == 0xFEDC_BA98)
    }

    @Test("one flipped bit anywhere: no card, or an invalid signature") func bits() throws {
        for index in ada.card.bytes.indices {
            var bytes = ada.card.bytes
            bytes[index] ^= 1 << UInt8(index % 8)
            #expect(Card(bytes: bytes)?.isSignatureValid != true, "byte \(index)")
        }
    }

    @Test("other lengths are no card", arguments: [0, 4, 1_378, 1_380]) func lengths(_ length: Int) {
        #expect(Card(bytes: Array((ada.card.bytes + [0]).prefix(length))) == nil)
    }

    @Test("the text of a card is read again, and no other text") func text() throws {
        let text = ada.card.text
        #expect(text.hasPrefix("hexlist-card-1:") && text.utf8.count == 15 + 1_839)
        #expect(Card(text: text) == ada.card)
        for other in [
            "", "hexlist-card-1:", "hexlist-card-2:" + text.dropFirst(15), String(text.dropLast()), text + "A", text + "=", text + "\n",
            " " + text, text.replacing("-card", with: "-Card"), "hexlist-card-1:" + String(repeating: "A", count: 1 << 20),
            "hexlist-card-1:+" + text.dropFirst(16), "hexlist-card-1:é" + text.dropFirst(16),
        ] {
            #expect(Card(text: other) == nil, "\(other.prefix(40))")
        }
        #expect(Card(base64: ada.card.base64) == ada.card && ada.card.base64.utf8.count == ProtocolLimits.cardTextBytes)
        #expect(Card(base64: String(ada.card.base64.dropLast(2)) + "B=") == nil && Card(base64: text) == nil)
    }
}

@Suite("Names of envelope files") struct EnvelopeFileNameTests {
    @Test("a name is read again; names sort by time") func names() throws {
        let id = try #require(Envelope.ID("7c4b67f43775de5716026113ad33b17b"))
        let name = EnvelopeFileName(postedAt: 1_800_000_000_000, id: id)
        #expect(name.description == "01A3185C5000-7C4B67F43775DE5716026113AD33B17B.hxe")
        #expect(EnvelopeFileName(name.description) == name)
        #expect(
            [0, 1_800_000_000_000, .max].map { EnvelopeFileName(postedAt: $0, id: id).description }.sorted().map {
                EnvelopeFileName($0)?.postedAt
            } == [0, 1_800_000_000_000, 0xFFFF_FFFF_FFFF])
        #expect(EnvelopeFileName(postedAt: .min, id: id) == EnvelopeFileName(postedAt: 0, id: id))
    }

    @Test(
        "other names are not read",
        arguments: [
            "", "card.hxc", ".01A3185C5000-7C4B67F43775DE5716026113AD33B17B.hxe.tmp", "01a3185c5000-7C4B67F43775DE5716026113AD33B17B.hxe",
            "01A3185C5000-7C4B67F43775DE5716026113AD33B17B.hxc", "01A3185C50007-C4B67F43775DE5716026113AD33B17B.hxe",
            "01A3185C5000_7C4B67F43775DE5716026113AD33B17B.hxe", "01A3185C5000-7C4B67F43775DE5716026113AD33B17B.sync-conflict.hxe",
            "../A3185C5000-7C4B67F43775DE5716026113AD33B17.hxe", "01A3185C5000-7C4B67F43775DE5716026113AD33B1\u{0}\u{0}.hxe",
        ])
    func others(_ text: String) { #expect(EnvelopeFileName(text) == nil) }
}

@Suite("Padmé") struct PadmeTests {
    @Test(
        "known lengths",
        arguments: [
            (0, 0), (1, 1), (2, 2), (3, 3), (8, 8), (9, 10), (10, 10), (11, 12), (100, 104), (1_000, 1_024), (4_096, 4_096), (4_097, 4_352),
            (983_040, 983_040),
        ])
    func known(_ length: Int, _ padded: Int) { #expect(Padme.paddedLength(of: length) == padded) }

    @Test("a padded length is at most 12 % longer, never shorter, and its own padded length") func all() {
        var last = 0
        for length in 1...200_000 {
            let padded = Padme.paddedLength(of: length)
            #expect(padded >= length && padded * 100 <= length * 112 && padded >= last)
            #expect(Padme.paddedLength(of: padded) == padded)
            last = padded
        }
    }
}

@Suite("Boot numbers of a peer's letters") struct BootHistoryTests {
    @Test(
        "a conflict is a letter of the previous start signed after the present one began, in any order of arrival",
        arguments: [
            ([(1, 10), (1, 20), (2, 30), (2, 40)], []),
            ([(1, 10), (2, 30), (1, 20)], []),
            ([(1, 10), (2, 30), (1, 31)], [2]),
            ([(1, 10), (2, 30), (1, 30)], []),
            ([(1, 10), (2, 30), (1, 40), (2, 50), (1, 60)], [2, 3, 4]),
            ([(1, 10), (2, 30), (1, 40), (1, 50), (1, 60)], [2]),  // the other machine has a new identity
            ([(1, 10), (2, 30), (1, 40), (2, 35), (1, 20), (2, 35)], [2]),  // letters that are read late or again
            ([(1, 10), (2, 30), (1, 40), (2, 50), (2, 50), (1, 45), (1, 60)], [2, 3, 6]),
            ([(2, 30), (1, 10), (2, 25), (1, 28)], []),
            ([(1, 10), (2, 30), (3, 50), (1, 60)], []),
            ([(1, 10), (2, 30), (3, 50), (2, 60)], [3]),
            ([(1, 10), (2, 30), (2, 20), (1, 25)], [3]),
        ] as [([(UInt64, UInt64)], [Int])])
    func conflicts(_ letters: [(UInt64, UInt64)], _ expected: [Int]) throws {
        let first = try #require(letters.first)
        var history = BootHistory(present: BootNonce(first.0), since: first.1)
        let found = letters.indices.filter { history.record(BootNonce(letters[$0].0), signedAt: letters[$0].1) }
        #expect(found == expected)
    }
}
