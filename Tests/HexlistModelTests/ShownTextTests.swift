import HexlistJSON
import HexlistModel
import HostileTexts
import Testing

/// Hostile texts as text and as JSON for display. Scanned by scalar, because a character may hide scalars.
@Suite("Text for display")
struct ShownTextTests {
    /// An independent check: by general categories, and by Unicode names for invisible scalars.
    private static func isPrintable(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x20...0x7E, 0x200C, 0x200D, 0xFE00...0xFE0F, 0xE0100...0xE01EF: return true
        case 0x00...0x1F, 0x7F...0x9F, 0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B...0x180F, 0x200B...0x200F,
            0x2028...0x202E,
            0x2060...0x206F, 0x3164, 0xFEFF, 0xFFA0, 0xFFF0...0xFFFB, 0xE000...0xF8FF, 0x1BCA0...0x1BCA3, 0x1D173...0x1D17A,
            0xE0000...0xE0FFF, 0xF0000...0x10FFFF:
            return false
        default: return scalar.value & 0xFFFE != 0xFFFE
        }
    }

    @Test("the list is present and hostile") func list() {
        #expect(HostileTexts.all.count >= 800 && HostileTexts.inContext.count > 2_000)
        #expect(HostileTexts.all.count { !$0.unicodeScalars.allSatisfy(Self.isPrintable) } > 300)
    }

    @Test("a cleaned text is one printable line") func clean() {
        for text in HostileTexts.inContext {
            let shown = TerminalText.clean(text)
            #expect(shown.unicodeScalars.allSatisfy(Self.isPrintable), "\(text.debugDescription)")
            // Scalars are replaced one for one, so that none disappears unnoticed.
            #expect(shown.unicodeScalars.count == text.unicodeScalars.count)
            #expect(TerminalText.clean(text, columns: 20).unicodeScalars.allSatisfy(Self.isPrintable))
            for (before, after) in zip(text.unicodeScalars, shown.unicodeScalars) where Self.isPrintable(before) {
                #expect(before == after || after == "\u{FFFD}")
            }
        }
    }

    @Test(
        "ordinary text is unchanged", arguments: ["", "a b", "Zoë", "日本語", "👩‍👩‍👧", "❤️", "می‌خواهم", "🇨🇭", "e\u{301}", "\u{A0}", "~", "葛󠄀"])
    func kept(text: String) {
        #expect(TerminalText.clean(text).utf8.elementsEqual(text.utf8))
        #expect(String(decoding: text.jsonBytes, as: UTF8.self).utf8.elementsEqual("\"\(text)\"".utf8))
    }

    @Test("JSON for display is printable and decodes to the text") func json() throws {
        for text in HostileTexts.inContext {
            let json = text.jsonBytes
            #expect(String(decoding: json, as: UTF8.self).unicodeScalars.allSatisfy(Self.isPrintable), "\(text.debugDescription)")
            #expect(try #require(JSONValue(parsing: json).string).utf8.elementsEqual(text.utf8))
        }
    }

    @Test("JSON for the wire has only required escapes and decodes to the text") func minimal() throws {
        for text in HostileTexts.inContext {
            for padding in [0, 1, 15, 16, 17] {
                let padded = String(repeating: "x", count: padding) + text + String(repeating: "y", count: padding)
                var json: [UInt8] = []
                JSONText.append(padded, to: &json)
                #expect(json.allSatisfy { $0 >= 0x20 })
                #expect(try #require(JSONValue(parsing: json).string).utf8.elementsEqual(padded.utf8))
            }
        }
        var json: [UInt8] = []
        JSONText.append("\u{0}\u{1F}\"\\/\u{8}\u{9}\u{A}\u{C}\u{D}\u{7F}\u{9B}\u{202E}é", to: &json)
        #expect(String(decoding: json, as: UTF8.self) == #""\u0000\u001f\"\\/\b\t\n\f\r"# + "\u{7F}\u{9B}\u{202E}é\"")
    }

    @Test(
        "existing JSON is made printable, on one line",
        arguments: [
            ("{\"a\" :\n[1,\r\n\t2]}", #"{"a" : [1,   2]}"#), ("\"\u{7F}\u{9B}\u{202E}\"", #""\u007f\u009b\u202e""#),
            ("\"\u{E0041}\u{1F600}\"", "\"\\udb40\\udc41\u{1F600}\""), (#""\u202e\\""#, #""\u202e\\""#),
            ("{\"\u{200B}\":0}", #"{"\u200b":0}"#),
            ("[]", "[]"),
        ])
    func printable(json: String, expected: String) {
        var bytes = Array(json.utf8)
        JSONText.makePrintable(&bytes)
        #expect(String(decoding: bytes, as: UTF8.self) == expected)
        // With a start offset, the bytes before it are unchanged.
        var later = Array("\u{9B}".utf8) + Array(json.utf8)
        JSONText.makePrintable(&later, from: 2)
        #expect(String(decoding: later, as: UTF8.self) == "\u{9B}" + expected)
    }

    @Test("an object of texts") func object() {
        #expect(JSONText.object([]) == "{}")
        #expect(JSONText.object([("a", nil), ("b", "\"\u{1B}")]) == #"{"b":"\"\u001b"}"#)
        #expect(JSONText.object([("a", "1"), ("b", nil), ("c", "")]) == #"{"a":"1","c":""}"#)
    }
}
