import Foundation
import HexlistModel
import TestSupport
import Testing

@testable import HexlistEnvelope

@Suite("Envelopes", .timeLimit(.minutes(10))) struct EnvelopeTests {
    private static let day: UInt64 = 86_400_000

    private let ada: Peer
    private let bob: Peer

    init() throws {
        ada = try Peer(1)
        bob = try Peer(2)
    }

    @Test("a letter is opened by its recipient, with sender, time, boot nonce and frames")
    func roundTrip() throws {
        for frames in [[], [frame], [[1], Array(repeating: 2, count: 5_000), [3]]] {
            let envelope = try ada.letter(frames, to: bob)
            let letter = try bob.opener.open(envelope.bytes, now: Int64(start)) { $0 == ada.fingerprint ? .trusted : .stranger }
            #expect(letter == Letter(card: ada.card, signedAt: start, boot: BootNonce(7), frames: frames))
            #expect(letter.sender == ada.fingerprint)
        }
    }

    @Test("two envelopes of one letter have nothing in common but recipient and size")
    func fresh() throws {
        let (first, second) = (try ada.letter(to: bob), try ada.letter(to: bob))
        #expect(first.id != second.id && first.bytes.count == second.bytes.count)
        #expect(first.bytes.prefix(28) == second.bytes.prefix(28))
        #expect(zip(first.bytes, second.bytes).dropFirst(28).count { $0 == $1 } < 100)
        #expect(!Set(first.bytes.indices.map { Array(first.bytes[$0...].prefix(32)) }).contains(ada.fingerprint.bytes))
    }

    @Test("sizes: 4 KiB at least, then steps of Padmé, up to the longest payload")
    func sizes() throws {
        #expect(Letter.maximumPayloadBytes == 981_577 && Envelope.sizes == 5_260...984_204)
        for (payload, size) in [(0, 5_260), (2_633, 5_260), (2_634, 5_516), (100_000, 103_564), (981_577, 984_204)] {
            let frames = payload < 5 ? [] : [Array(repeating: UInt8(1), count: payload - 4)]
            #expect(try ada.letter(frames, to: bob).bytes.count == size, "\(payload)")
        }
        let long = Array(repeating: UInt8(1), count: Letter.maximumPayloadBytes - 3)
        #expect(throws: LetterTooLong.self) { try ada.letter([long], to: bob) }
    }

    @Test("one flipped bit anywhere: not opened") func bits() throws {
        let envelope = try ada.letter(to: bob).bytes
        for index in envelope.indices {
            // Each decryption takes about a millisecond, so only long runs alter every bit.
            let bits = LongTests.areWanted || index < 28 ? Array(0..<8) : [index % 8]
            for bit in bits where LongTests.areWanted || index < 64 || index % 16 == 0 || index > 5_200 {
                var altered = envelope
                altered[index] ^= 1 << UInt8(bit)
                let expected: EnvelopeFault.Reason = index < 4 ? .noEnvelope : index < 20 ? .notMine : index < 28 ? .otherKey : .damaged
                #expect(reason(altered, for: bob) == expected, "byte \(index), bit \(bit)")
            }
        }
    }

    @Test("a truncated, extended or empty envelope is not opened") func lengths() throws {
        let envelope = try ada.letter(to: bob).bytes
        for length in [0, 1, 4, 27, 28, 1_147, 1_148, 5_259] {
            #expect(reason(Array(envelope.prefix(length)), for: bob) == .noEnvelope)
        }
        #expect(reason(envelope + [0], for: bob) == .damaged)
        #expect(reason(envelope + Array(repeating: 0, count: 984_204), for: bob) == .noEnvelope)
        #expect(reason(Array(try ada.letter(to: bob).bytes.prefix(2_000) + envelope.dropFirst(2_000)), for: bob) == .damaged)
    }

    @Test("an envelope for another peer, or for another sealing key, is not opened") func recipients() throws {
        let eve = try Peer(3)
        #expect(reason(try ada.letter(to: eve).bytes, for: bob) == .notMine)
        let other = try Card(of: bob.signer, sealingKey: eve.key)
        let envelope = try Letter.seal([frame], at: start, boot: BootNonce(7), card: ada.card, signer: ada.signer, for: other)
        #expect(reason(envelope.bytes, for: bob) == .otherKey)
        // Eve is trusted. She opens Ada's letter and seals it again for Bob.
        let resealed = try Envelope(sealing: ada.plaintext(to: eve), for: bob.card)
        #expect(reason(resealed.bytes, for: bob) == .forged)
        // The envelope is encrypted for Eve's sealing key, and its header is Bob's.
        var readdressed = try ada.letter(to: eve).bytes
        readdressed.replaceSubrange(..<28, with: try ada.letter(to: bob).bytes.prefix(28))
        #expect(reason(readdressed, for: bob) == .damaged)
    }

    /// An alteration of a plaintext, and the fault it causes.
    private static let alterations: [(String, EnvelopeFault.Reason, @Sendable (inout [UInt8]) -> Void)] = [
        ("magic of the card", .malformed, { $0[3] ^= 1 }),
        ("kind of the identity key", .malformed, { $0[10] ^= 1 }),
        ("serial", .forged, { $0[98] ^= 1 }),
        ("sealing key", .forged, { $0[500] ^= 1 }),
        ("signature of the card", .forged, { $0[1_320] ^= 1 }),
        ("signature of the letter", .forged, { $0[1_380] ^= 1 }),
        ("signatures of zeros", .forged, { $0.replaceSubrange(1_315..<1_443, with: Array(repeating: 0, count: 128)) }),
        ("time", .forged, { $0[1_450] ^= 1 }),
        ("boot nonce", .forged, { $0[1_458] ^= 1 }),
        ("shorter length", .malformed, { $0[1_462] -= 1 }),
        ("longer length", .forged, { $0[1_462] += 1 }),
        ("length beyond the end", .malformed, { $0.replaceSubrange(1_459..<1_463, with: [0xFF, 0xFF, 0xFF, 0xFF]) }),
        ("payload", .forged, { $0[1_470] ^= 1 }),
        ("padding", .malformed, { $0[4_095] = 1 }),
        ("more padding", .malformed, { $0 += Array(repeating: 0, count: 128) }),
    ]

    @Test("a letter with an altered field is not opened", arguments: alterations.indices) func fields(_ index: Int) throws {
        let (name, expected, alter) = Self.alterations[index]
        var plaintext = try ada.plaintext(to: bob)
        #expect(reason(try Envelope(sealing: plaintext, for: bob.card).bytes, for: bob) == nil)
        alter(&plaintext)
        #expect(reason(try Envelope(sealing: plaintext, for: bob.card).bytes, for: bob) == expected, "\(name)")
    }

    @Test("the card of one peer with the signature of another is forged") func cards() throws {
        let eve = try Peer(3)
        var plaintext = try eve.plaintext(to: bob)
        plaintext.replaceSubrange(..<Card.byteCount, with: ada.card.bytes)
        #expect(reason(try Envelope(sealing: plaintext, for: bob.card).bytes, for: bob) == .forged)
    }

    @Test(
        "frames: a length of 0, a cut length and a length beyond the end are malformed",
        arguments: [
            [0, 0, 0, 0], [0, 0, 1], [0, 0, 0, 2, 1], [0, 0, 0, 1, 1, 0], [0xFF, 0xFF, 0xFF, 0xFF, 1], [0, 0, 0, 1],
        ] as [[UInt8]])
    func frames(_ payload: [UInt8]) throws {
        let plaintext = try ada.plaintext(to: bob, payload: payload)
        #expect(reason(try Envelope(sealing: plaintext, for: bob.card).bytes, for: bob) == .malformed)
    }

    @Test("trust is asked once, by fingerprint, before any signature is checked") func trust() throws {
        var plaintext = try ada.plaintext(to: bob)
        plaintext[1_380] ^= 1
        let forged = try Envelope(sealing: plaintext, for: bob.card).bytes
        for (trust, expected) in [(Trust.stranger, EnvelopeFault.Reason.stranger), (.blocked, .blocked), (.trusted, .forged)] {
            var asked: [Fingerprint] = []
            let fault = #expect(throws: EnvelopeFault.self) {
                try bob.opener.open(forged, now: Int64(start)) {
                    asked.append($0)
                    return trust
                }
            }
            #expect(fault == EnvelopeFault(expected, sender: ada.fingerprint) && asked == [ada.fingerprint])
        }
    }

    @Test("a letter to oneself is opened without trust; a forged one is not") func own() throws {
        let letter = try bob.opener.open(try bob.letter([], to: bob).bytes, now: Int64(start)) { _ in .blocked }
        #expect(letter.sender == bob.fingerprint)
        var plaintext = try bob.plaintext(to: bob)
        plaintext[1_380] ^= 1
        #expect(reason(try Envelope(sealing: plaintext, for: bob.card).bytes, for: bob, trust: .stranger) == .forged)
    }

    @Test("a letter that is too far ahead names its sender and the lead") func lead() throws {
        let letter = try ada.letter(to: bob, at: start + 2 * Self.day).bytes
        let fault = #expect(throws: EnvelopeFault.self) { try bob.opener.open(letter, now: Int64(start)) { _ in .trusted } }
        #expect(fault == EnvelopeFault(.early, sender: ada.fingerprint, lead: 2 * Self.day))
    }

    @Test("a letter may be a day ahead and 30 days old, to the millisecond") func times() throws {
        let now = start + 40 * Self.day
        for (time, expected) in [
            (now + Self.day, nil), (now + Self.day + 1, .early), (now - 30 * Self.day, nil), (now - 30 * Self.day - 1, .late),
            (0, .late), (.max, .early), (UInt64(Int64.max) + 1, .early),
        ] as [(UInt64, EnvelopeFault.Reason?)] {
            #expect(reason(try ada.letter(to: bob, at: time).bytes, for: bob, now: now) == expected, "\(time)")
        }
        // Clocks before 1970, and in the first 30 days after it.
        for now in [Int64.min, -1, 0, 5] {
            let letter = try bob.opener.open(try ada.letter(to: bob, at: 0).bytes, now: now) { _ in .trusted }
            #expect(letter.signedAt == 0)
        }
    }

    @Test("random bytes are not opened, and do not trap", .offPool) func noise() throws {
        var random = SeededGenerator(seed: 1)
        let header = try ada.letter(to: bob).bytes.prefix(28)
        for round in 0..<40 {
            var bytes = (0..<5_260).map { _ in UInt8.random(in: 0...255, using: &random) }
            if round % 2 == 0 { bytes.replaceSubrange(..<28, with: header) }
            #expect(reason(bytes, for: bob) == (round % 2 == 0 ? .damaged : .noEnvelope))
            // Parses random bytes as a decrypted letter. In every fourth round they begin with a valid card, so that more of them is read.
            if round % 4 == 0 { bytes.replaceSubrange(..<Card.byteCount, with: ada.card.bytes) }
            #expect(throws: EnvelopeFault.self) { try bob.opener.letter(bytes[...], now: Int64(start)) { _ in .trusted } }
        }
    }
}
