import HexlistModel

/// Parses a line `URL description`. Each further address after white space begins another link.
public enum LinkLine {
    public struct Part: Sendable, Equatable {
        public var url: String
        public var description: String
    }

    /// - Parameter line: the text; line breaks in it count as spaces.
    /// - Returns: a part for the first word, even if it is not an address, and one for each later address; empty if the line is blank. An
    ///   address that is repeated as its own title is one part.
    public static func parts(_ line: some StringProtocol) -> [Part] {
        var parts: [Part] = []
        /// The range of the latest part's description in the line.
        var (start, end) = (line.startIndex, line.startIndex)
        func close() { if !parts.isEmpty { parts[parts.count - 1].description = String(line[start..<end]) } }
        for word in line.split(whereSeparator: \.isWhitespace) {
            if parts.isEmpty || isAddress(word) {
                close()
                let url = String(word)
                let isSame = parts.last.map { $0.description.isEmpty && $0.url.utf8.elementsEqual(url.utf8) } ?? false
                if !isSame { parts.append(Part(url: url, description: "")) }
                (start, end) = (word.endIndex, word.endIndex)
            } else {
                if start == end { start = word.startIndex }
                end = word.endIndex
            }
        }
        close()
        return parts
    }

    /// Whether a word is `scheme://` followed by at least one character.
    private static func isAddress(_ word: some StringProtocol) -> Bool {
        guard let colon = word.utf8.firstIndex(of: UInt8(ascii: ":")) else { return false }
        let rest = word.utf8[colon...].dropFirst()
        return rest.starts(with: "//".utf8) && rest.count > 2 && LinkTextKind(String(word)) == .link
    }
}

/// Finds addresses in Markdown that are not enclosed in brackets.
enum TextURL {
    /// Returns the end of the address `scheme://…` that begins at `start`; `nil` if there is none. White space, quotation marks, `<`, `>`
    /// and backticks end an address. Trailing punctuation and unopened brackets are not part of it.
    static func end(_ text: ArraySlice<UInt8>, from start: Int) -> Int? {
        let schemeEnd = text[start...].firstIndex { !isScheme($0) } ?? text.endIndex
        guard schemeEnd > start + 1, text[schemeEnd...].starts(with: "://".utf8), LinkTextKind.isLetter(text[start]) else { return nil }
        let body = schemeEnd + 3
        var end = text[body...].firstIndex { $0 <= 0x20 || $0 == 0x7F || "<>\"`".utf8.contains($0) } ?? text.endIndex
        var open = (round: 0, square: 0)
        for byte in text[body..<end] { count(byte, 1, &open) }
        while end > body {
            let last = text[end - 1]
            let isExtra = last == UInt8(ascii: ")") && open.round < 0 || last == UInt8(ascii: "]") && open.square < 0
            guard isExtra || ".,;:!?'*_~|\\".utf8.contains(last) else { break }
            count(last, -1, &open)
            end -= 1
        }
        return end > body ? end : nil
    }

    /// Whether a byte may be part of a scheme.
    static func isScheme(_ byte: UInt8) -> Bool { ASCII.isAlphanumeric(byte) || "+-.".utf8.contains(byte) }

    private static func count(_ byte: UInt8, _ by: Int, _ open: inout (round: Int, square: Int)) {
        switch byte {
        case UInt8(ascii: "("): open.round += by
        case UInt8(ascii: ")"): open.round -= by
        case UInt8(ascii: "["): open.square += by
        case UInt8(ascii: "]"): open.square -= by
        default: break
        }
    }
}
