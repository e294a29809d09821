import HexlistModel

/// A text in the form that is passed to the tokenizer of the search index. Letters that people treat as equal, but the tokenizer does not,
/// are replaced (`ß` by `ss`, `ø` by `o`, full-width letters by ASCII). In scripts without spaces between words, each
/// character becomes a word, so that a search finds it inside a longer text. After a change of these rules, increase
/// `SearchDocument.format`.
struct FoldedText {
    private(set) var bytes: [UInt8]
    /// For each byte of `bytes`, the offset of its character in the original text; `nil` if the texts are equal.
    private var offsets: [Int]?
    private let originalCount: Int

    init(_ text: [UInt8]) {
        originalCount = text.count
        bytes = text
        guard text.contains(where: { $0 >= 0x80 }) else { return }
        bytes = []
        bytes.reserveCapacity(text.count + text.count / 2)
        var offsets: [Int] = []
        offsets.reserveCapacity(bytes.capacity)
        var offset = 0
        for scalar in String(decoding: text, as: UTF8.self).unicodeScalars {
            if Self.isWord(scalar) {
                bytes.append(0x20)
                offsets.append(offset)
                append(scalar, offset, to: &offsets)
                bytes.append(0x20)
                offsets.append(offset + scalar.utf8.count)
            } else if let replacement = Self.replacement(scalar) {
                bytes += replacement.utf8
                offsets += repeatElement(offset, count: replacement.utf8.count)
            } else {
                append(scalar, offset, to: &offsets)
            }
            offset += scalar.utf8.count
        }
        self.offsets = offsets
    }

    private mutating func append(_ scalar: Unicode.Scalar, _ offset: Int, to offsets: inout [Int]) {
        for byte in scalar.utf8 {
            bytes.append(byte)
            offsets.append(offset)
        }
    }

    /// Converts a byte range of `bytes` to the byte range of the same characters in the original text.
    func original(_ range: Range<Int>) -> Range<Int> {
        guard let offsets else { return range }
        let start = range.lowerBound < offsets.count ? offsets[range.lowerBound] : originalCount
        let end = range.upperBound < offsets.count ? offsets[range.upperBound] : originalCount
        return start..<max(start, min(end, originalCount))
    }

    /// Whether a character is a word of its own: ideographs, kana, bopomofo, Hangul syllables, and letters of Thai, Lao, Myanmar and Khmer.
    private static func isWord(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x0E01...0x0EDF, 0x1000...0x109F, 0x1780...0x17FF, 0x2E80...0x2FDF, 0x3005...0x3007, 0x3041...0x312F, 0x31A0...0x31FF,
            0x3400...0x4DBF, 0x4E00...0x9FFF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFF66...0xFF9D, 0x20000...0x3FFFF:
            true
        default: false
        }
    }

    private static func replacement(_ scalar: Unicode.Scalar) -> String? {
        switch scalar.value {
        case 0xDF, 0x1E9E: "ss"
        case 0xC6, 0xE6: "ae"
        case 0x152, 0x153: "oe"
        case 0xD8, 0xF8: "o"
        case 0x110, 0x111, 0xD0, 0xF0: "d"
        case 0xDE, 0xFE: "th"
        case 0x141, 0x142: "l"
        case 0x130, 0x131: "i"
        case 0x17F: "s"
        case 0x3C2: "σ"
        case 0xFF01...0xFF5E: Unicode.Scalar(scalar.value - 0xFEE0).map { String($0) }
        default: nil
        }
    }
}
