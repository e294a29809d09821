import HexlistModel
import TestSupport
import Testing

@testable import HexlistWire

/// The digits that two people compare. The values come from an independent program, Python's hashlib, for fingerprints and nonces of 32
/// equal bytes (asker's key, asked one's key, asker's nonce, asked one's nonce):
///
///     H = lambda *parts: hashlib.sha256(b"".join(parts)).digest()
///     commitment = base64.b64encode(H(b"hexlist-pair-1", nonceA, keyA, keyB))
///     digits = "%06d" % (int.from_bytes(H(b"hexlist-sas-1", keyA, keyB, nonceA, nonceB)[:8], "big") % 1000000)
@Suite("Pairing: commitment and digits")
struct PairingCodeTests {
    @Test(
        "equal those of an independent program",
        arguments: [
            ([1, 2, 3, 4], "dzxNRkEIm9SUOS2rf5DpVyi3T5IRYpQ3js0UQ2C9rYA=", "040660"),
            ([255, 0, 0, 255], "kKQyoMrhn2i2SrHXX1QHJWL5JXiJvcrfxZ/E9Wd43G4=", "498960"),
            ([17, 34, 51, 68], "mPT6m8id4HghslgywAD6It0GuCQbbqZ5RiymDyohuHk=", "298496"),
            ([200, 100, 9, 210], "Eb9IQYfGv1VnjHm1fIF37/t8BBWUTNStaEHD9yLfzB0=", "077913"),
            ([1, 2, 233, 4], "JqI8Y0PsYQ0Sq5qCbbdw1MNixno4rPr/LLRrQkzhyMg=", "002674"),
        ] as [([UInt8], String, String)])
    func vectors(bytes: [UInt8], commitment: String, digits: String) {
        let (asker, asked) = (SessionFixture.key(bytes[0]), SessionFixture.key(bytes[1]))
        let (one, other) = (PairingNonce.of(bytes[2]), PairingNonce.of(bytes[3]))
        #expect(Base64.encode(PairingCode.commitment(nonce: one, asker: asker, asked: asked)) == commitment)
        #expect(PairingCode.digits(asker: asker, asked: asked, askerNonce: one, askedNonce: other) == digits)
        // Each input matters, and so does the order of the roles.
        #expect(PairingCode.digits(asker: asked, asked: asker, askerNonce: one, askedNonce: other) != digits)
        #expect(PairingCode.digits(asker: asker, asked: asked, askerNonce: other, askedNonce: one) != digits)
    }

    @Test("base64 of exactly 32 bytes")
    func base64() {
        var random = SeededGenerator(seed: 1)
        for _ in 0..<1_000 {
            let nonce = PairingNonce(using: &random)
            #expect(PairingNonce(base64: nonce.base64) == nonce)
        }
        let text = PairingNonce.of(7).base64
        #expect(text == "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=")
        let (tail, head) = (String(text.dropFirst()), String(text.dropLast(2)))
        let others: [String] = [
            "", "=", String(text.dropLast()), text + "=", text + "\n", " " + text, String(text.dropFirst(4)), text + text,
            "-\(tail)", "_\(tail)", "\u{0}\(tail)", "é\(tail.dropFirst())", "\(head)==",
            "\(head)d=",  // bits after the last byte
            String(repeating: "A", count: 44), String(repeating: "=", count: 44),
        ]
        for other in others { #expect(PairingNonce(base64: other) == nil, "\(other)") }
    }

    @Test("bytes are compared at every position")
    func equality() {
        let bytes = [UInt8](repeating: 0x5A, count: 32)
        #expect(PairingCode.areEqual(bytes, bytes))
        #expect(!PairingCode.areEqual(bytes, Array(bytes.dropLast())))
        for position in 0..<32 {
            for bit in 0..<8 {
                var other = bytes
                other[position] ^= 1 << bit
                #expect(!PairingCode.areEqual(bytes, other))
            }
        }
    }
}

extension PairingNonce {
    /// 32 equal bytes.
    static func of(_ byte: UInt8) -> PairingNonce {
        guard let nonce = PairingNonce(base64: Base64.encode([UInt8](repeating: byte, count: 32))) else {
            fatalError("32 bytes are a nonce")
        }
        return nonce
    }
}
