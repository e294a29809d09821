import HexlistModel

/// Splits HTML and XML into tags and text. Tolerates malformed input, never fails, and runs in linear time. If a comment is not closed, it
/// ends at the next `>`; if a quotation mark in a tag is not closed, the tag ends at its first `>`.
struct MarkupScanner {
    enum Token {
        case text(ArraySlice<UInt8>)
        case open(Tag)
        /// An end tag, with the element's name in lower case.
        case close(String)
    }

    struct Tag {
        /// The element's name in lower case.
        var element: String
        var attributes: [(name: String, value: String)]
        var isClosed: Bool
        /// The offset of the tag's `<` in the file.
        var start: Int
        /// Whether the value of an attribute has no closing quotation mark. The attributes before it are available.
        var hasOpenQuote = false

        subscript(_ name: StaticString) -> String? { attributes.first { $0.name.utf8.elementsEqual(name.bytes) }?.value }
    }

    /// Maximum attributes of a tag. Further ones are ignored.
    private static let attributeLimit = 64

    private let bytes: [UInt8]
    private var position = 0
    /// Whether no end of a comment or of a CDATA section follows `position`. Then it is not searched again, which keeps the time linear.
    private var hasNoEnd = (comment: false, section: false)

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    mutating func next() -> Token? {
        while position < bytes.count {
            if bytes[position] != UInt8(ascii: "<") {
                let start = position
                position = bytes[start...].firstIndex(of: UInt8(ascii: "<")) ?? bytes.count
                return .text(bytes[start..<position])
            }
            if starts(with: "<!--"), let end = end("-->", from: position + 4, &hasNoEnd.comment) {
                position = end + 3
            } else if starts(with: "<![CDATA["), let end = end("]]>", from: position + 9, &hasNoEnd.section) {
                let start = position + 9
                position = end + 3
                return .text(bytes[start..<end])
            } else if starts(with: "<!") || starts(with: "<?") {
                skip(past: ">")
            } else if let token = tag() {
                return token
            } else {
                position += 1
                return .text(bytes[position - 1..<position])
            }
        }
        return nil
    }

    private func starts(with text: StaticString) -> Bool { bytes[position...].starts(with: text.bytes) }

    /// Returns the offset of the next occurrence of `text`. If there is none, returns `nil` and sets `hasNone`.
    private func end(_ text: StaticString, from start: Int, _ hasNone: inout Bool) -> Int? {
        var at = start
        while !hasNone, at < bytes.count {
            if bytes[at...].starts(with: text.bytes) { return at }
            at += 1
        }
        hasNone = true
        return nil
    }

    private mutating func skip(past byte: Unicode.Scalar) {
        position = bytes[position...].firstIndex(of: UInt8(ascii: byte)).map { $0 + 1 } ?? bytes.count
    }

    /// Reads a tag. If there is none, returns `nil` and consumes nothing.
    private mutating func tag() -> Token? {
        var at = position + 1
        let isClosing = at < bytes.count && bytes[at] == UInt8(ascii: "/")
        if isClosing { at += 1 }
        let start = at
        while at < bytes.count, Self.isName(bytes[at]) { at += 1 }
        guard at > start else { return nil }
        let name = Self.lowercased(bytes[start..<at])
        var tag = Tag(element: name, attributes: [], isClosed: false, start: position)
        position = at
        while let byte = nextInTag() {
            if byte == UInt8(ascii: ">") {
                position += 1
                break
            }
            if byte == UInt8(ascii: "/") {
                position += 1
                tag.isClosed = true
                continue
            }
            tag.isClosed = false
            guard let attribute = attribute() else {
                tag.hasOpenQuote = true
                skip(past: ">")
                break
            }
            if tag.attributes.count < Self.attributeLimit { tag.attributes.append(attribute) }
        }
        return isClosing ? .close(name) : .open(tag)
    }

    private mutating func nextInTag() -> UInt8? {
        while position < bytes.count, Self.isSpace(bytes[position]) { position += 1 }
        return position < bytes.count ? bytes[position] : nil
    }

    /// Reads an attribute, consuming at least one byte. Returns `nil` if its value has no closing quotation mark; `position` is then after
    /// the opening one. The next quotation mark closes the value only if white space or the end of the tag follows. Otherwise it probably
    /// opens the value of another attribute.
    private mutating func attribute() -> (name: String, value: String)? {
        let start = position
        position += 1
        while position < bytes.count, !Self.isSpace(bytes[position]), !Self.ends.contains(bytes[position]) { position += 1 }
        let name = Self.lowercased(bytes[start..<position])
        guard nextInTag() == UInt8(ascii: "=") else { return (name, "") }
        position += 1
        guard let quote = nextInTag() else { return (name, "") }
        guard quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else {
            let start = position
            while position < bytes.count, !Self.isSpace(bytes[position]), bytes[position] != UInt8(ascii: ">") { position += 1 }
            return (name, MarkupText.decoded(bytes[start..<position]))
        }
        position += 1
        guard let end = bytes[position...].firstIndex(of: quote) else { return nil }
        let next = end + 1 < bytes.count ? bytes[end + 1] : UInt8(ascii: ">")
        guard Self.isSpace(next) || next == UInt8(ascii: ">") || next == UInt8(ascii: "/") || next == UInt8(ascii: "?") else { return nil }
        defer { position = end + 1 }
        return (name, MarkupText.decoded(bytes[position..<end]))
    }

    private static let ends: [UInt8] = [UInt8(ascii: "="), UInt8(ascii: ">"), UInt8(ascii: "/")]

    private static func isName(_ byte: UInt8) -> Bool {
        ASCII.isDigit(byte) || (0x41...0x5A).contains(byte & 0xDF) && byte < 0x80 || byte == UInt8(ascii: "-") || byte == UInt8(ascii: ":")
            || byte == UInt8(ascii: "_")
    }

    static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }

    private static func lowercased(_ bytes: ArraySlice<UInt8>) -> String { String(decoding: bytes.map(ASCII.lowercased), as: UTF8.self) }
}

/// Escapes and decodes text of HTML and XML.
package enum MarkupText {
    /// Escapes text for use in an element or in a quoted attribute. Characters that are not displayable become U+FFFD.
    package static func escaped(_ text: String) -> String {
        var escaped = ""
        for scalar in TerminalText.clean(text).unicodeScalars {
            switch scalar {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            case "'": escaped += "&#39;"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }

    /// Whether a text remains unchanged if it is escaped, read again and trimmed.
    static func survives(_ text: String) -> Bool {
        guard TerminalText.clean(text).utf8.elementsEqual(text.utf8) else { return false }
        return !(text.utf8.first.map(MarkupScanner.isSpace) ?? false) && !(text.utf8.last.map(MarkupScanner.isSpace) ?? false)
    }

    static func decoded(_ bytes: some Collection<UInt8>) -> String {
        guard bytes.contains(UInt8(ascii: "&")) else { return String(decoding: bytes, as: UTF8.self) }
        var text: [UInt8] = []
        var rest = Array(bytes)[...]
        while let byte = rest.first {
            guard byte == UInt8(ascii: "&"), let end = rest.prefix(NamedCharacters.longest + 2).firstIndex(of: UInt8(ascii: ";")),
                let characters = characters(rest[(rest.startIndex + 1)..<end])
            else {
                text.append(byte)
                rest = rest.dropFirst()
                continue
            }
            text += characters.utf8
            rest = rest[(end + 1)...]
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Returns the characters for a reference such as `amp`, `#39` or `#x27`; `nil` if it is unknown.
    private static func characters(_ name: ArraySlice<UInt8>) -> String? {
        guard name.first == UInt8(ascii: "#") else { return NamedCharacters.text(name) }
        let digits = String(decoding: name.dropFirst(), as: UTF8.self)
        let isHexadecimal = digits.utf8.first.map { $0 | 0x20 == UInt8(ascii: "x") } ?? false
        guard let number = isHexadecimal ? UInt32(digits.dropFirst(), radix: 16) : UInt32(digits) else { return nil }
        // Browsers interpret the numbers 0x80 to 0x9F as Windows-1252.
        let scalar = (0x80...0x9F).contains(number) ? Windows1252.scalar(UInt8(number)) : Unicode.Scalar(number)
        return scalar.map { String($0) }
    }

    static func trimmed(_ text: String) -> String {
        let isTrimmed = !(text.utf8.first.map(MarkupScanner.isSpace) ?? false) && !(text.utf8.last.map(MarkupScanner.isSpace) ?? false)
        return isTrimmed ? text : String(decoding: trimmed(Array(text.utf8)[...]), as: UTF8.self)
    }

    static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let begun = bytes.drop(while: MarkupScanner.isSpace)
        guard let last = begun.lastIndex(where: { !MarkupScanner.isSpace($0) }) else { return begun }
        return begun[...last]
    }
}
