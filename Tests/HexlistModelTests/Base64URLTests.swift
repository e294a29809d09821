import HexlistModel
import TestSupport
import Testing

@Suite("Base64url") struct Base64URLTests {
    @Test("every value has one text, without padding") func roundTrip() {
        var generator = SeededGenerator(seed: 2)
        for count in 0..<40 {
            let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
            let text = Base64URL.encode(bytes)
            #expect(text.utf8.count == (count * 4 + 2) / 3 && Base64URL.decode(text.utf8) == bytes)
        }
        #expect(Base64URL.encode([0xFB, 0xFF]) == "-_8")
    }

    @Test("other texts are refused", arguments: ["A", "AAAAA", "-_9", "AA==", "+_8", "-/8", "A A", "é"]) func refused(text: String) {
        #expect(Base64URL.decode(text.utf8) == nil)
    }
}
