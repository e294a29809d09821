import HexlistModel
import Testing

@testable import HexlistFormats

@Suite("Encodings of files") struct DecodedTextTests {
    private static let text = "https://a.example/ Größe 日本 👩‍👩‍👧\r\nŁódź\n"

    private static func utf16(_ text: String, isBigEndian: Bool, hasMark: Bool) -> [UInt8] {
        ((hasMark ? [0xFEFF] : []) + Array(text.utf16)).flatMap { unit in
            let (high, low) = (UInt8(unit >> 8), UInt8(unit & 0xFF))
            return isBigEndian ? [high, low] : [low, high]
        }
    }

    @Test("UTF-8 and UTF-16, with and without byte order mark")
    func unicode() throws {
        #expect(try DecodedText(Array(Self.text.utf8)).encoding == nil)
        #expect(try DecodedText([0xEF, 0xBB, 0xBF] + Array(Self.text.utf8)).bytes == Array(Self.text.utf8))
        for isBigEndian in [false, true] {
            for hasMark in [false, true] {
                let text = try DecodedText(Self.utf16(Self.text, isBigEndian: isBigEndian, hasMark: hasMark))
                #expect(text.bytes == Array(Self.text.utf8) && text.encoding == "UTF-16")
            }
        }
    }

    @Test("Windows-1252 is read if the file declares it")
    func latin() throws {
        for name in ["ISO-8859-1", "windows-1252", "Latin1"] {
            let file =
                Array("<META CONTENT=\"text/html; charset=\(name)\"><A HREF=a:b>caf".utf8) + [0xE9, 0x61, 0x80, 0x96] + Array("</A>".utf8)
            let text = try DecodedText(file)
            #expect(text.encoding == "windows-1252" && String(decoding: text.bytes, as: UTF8.self).hasSuffix("caféa€–</A>"))
        }
    }

    @Test("other files are refused with their format")
    func faults() {
        func fault(_ bytes: [UInt8]) -> DecodedText.Fault? { #expect(throws: DecodedText.Fault.self) { try DecodedText(bytes) } }
        #expect(fault([0x89] + Array("PNG\r\n".utf8) + [0x1A, 0x0A, 0, 0, 0, 0x0D]) == .binary)
        #expect(fault(Array("https://a.example/\n\0x".utf8)) == .binary && fault([0]) == .binary)
        #expect(fault([0xFF, 0xFE, 0, 0, 0x61, 0, 0, 0]) == .encoding("UTF-32"))
        #expect(fault([0xFE, 0xFF, 0xD8, 0x00]) == .encoding("UTF-16") && fault([0xFF, 0xFE, 0x61]) == .encoding("UTF-16"))
        #expect(fault(Array("<?xml encoding='Shift_JIS'?>".utf8) + [0x93, 0xFA]) == .encoding("shift_jis"))
        let broken = Array("日本\nb\nx".utf8) + [0xE9, 0x0D, 0x0A] + Array("Łódź\n".utf8) + [0xFF]
        guard case .lines(let lines, hasUTF8: true) = fault(broken) else {
            Issue.record("lines")
            return
        }
        #expect(lines.count == 2 && lines.items.map(\.line) == [3, 5])
        guard case .lines(let all, hasUTF8: false) = fault([0x61, 0xE9, 0x0A, 0xE9]) else {
            Issue.record("lines")
            return
        }
        #expect(all.count == 2)
    }

    @Test("lines and line numbers agree", arguments: ["", "a", "\r", "\n", "\r\n", "a\rb\nc\r\nd", "\r\r\n\n", "\n\r", "  \r\n x "])
    func lines(text: String) {
        let bytes = Array(text.utf8)
        var numbers = LineNumbers(bytes)
        for line in TextLines(bytes) { #expect(line.number == numbers.number(at: line.text.startIndex)) }
        #expect(numbers.number(at: 0) == 1)
    }
}
