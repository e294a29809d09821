import HexlistModel

/// Reads HTML and XML as tags and the text between them, tolerantly: it never fails, and never looks at a byte twice but for what was begun
/// and not ended.
struct MarkupScanner {
    enum Token {
        case text(ArraySlice<UInt8>)
        case open(Tag)
        /// The name in lower case.
        case close(String)
    }

    struct Tag {
        /// Its name, in ASCII and lower case.
        var element: String
        var attributes: [(name: String, value: String)]
        var isClosed: Bool

        subscript(_ name: StaticString) -> String? { attributes.first { $0.name.utf8.elementsEqual(name.bytes) }?.value }
    }

    /// The most attributes of a tag that are read; others are passed over.
    private static let attributeLimit = 64

    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    mutating func next() -> Token? {
        while position < bytes.count {
            if bytes[position] != UInt8(ascii: "<") {
                let start = position
                position = bytes[start...].firstIndex(of: UInt8(ascii: "<")) ?? bytes.count
                return .text(bytes[start..<position])
            }
            if starts(with: "<!--") {
                skip(past: "-->")
            } else if starts(with: "<![CDATA[") {
                let start = position + 9
                skip(past: "]]>")
                return .text(bytes[min(start, position)..<max(min(start, position), position - 3)])
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

    private mutating func skip(past text: StaticString) {
        while position < bytes.count, !starts(with: text) { position += 1 }
        position = min(bytes.count, position + text.utf8CodeUnitCount)
    }

    /// A tag from `<` on; `nil` if it is none, and then nothing is passed over.
    private mutating func tag() -> Token? {
        var at = position + 1
        let isClosing = at < bytes.count && bytes[at] == UInt8(ascii: "/")
        if isClosing { at += 1 }
        let start = at
        while at < bytes.count, Self.isName(bytes[at]) { at += 1 }
        guard at > start else { return nil }
        let name = Self.lowercased(bytes[start..<at])
        position = at
        var tag = Tag(element: name, attributes: [], isClosed: false)
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
            let attribute = attribute()
            if tag.attributes.count < Self.attributeLimit { tag.attributes.append(attribute) }
        }
        return isClosing ? .close(name) : .open(tag)
    }

    private mutating func nextInTag() -> UInt8? {
        while position < bytes.count, Self.isSpace(bytes[position]) { position += 1 }
        return position < bytes.count ? bytes[position] : nil
    }

    /// An attribute. Passes over one byte at least.
    private mutating func attribute() -> (name: String, value: String) {
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
        let value = position + 1
        position = bytes[value...].firstIndex(of: quote) ?? bytes.count
        defer { position = min(bytes.count, position + 1) }
        return (name, MarkupText.decoded(bytes[value..<position]))
    }

    private static let ends: [UInt8] = [UInt8(ascii: "="), UInt8(ascii: ">"), UInt8(ascii: "/")]

    private static func isName(_ byte: UInt8) -> Bool {
        ASCII.isDigit(byte) || (0x41...0x5A).contains(byte & 0xDF) && byte < 0x80 || byte == UInt8(ascii: "-") || byte == UInt8(ascii: ":")
            || byte == UInt8(ascii: "_")
    }

    static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }

    private static func lowercased(_ bytes: ArraySlice<UInt8>) -> String { String(decoding: bytes.map(ASCII.lowercased), as: UTF8.self) }
}

/// Texts in HTML and XML.
enum MarkupText {
    /// A text for a place between tags or in quotes: what is not shown becomes U+FFFD, and what is markup a character reference.
    static func escaped(_ text: String) -> String {
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

    /// Whether a text is the same once it was escaped, written, read and trimmed.
    static func survives(_ text: String) -> Bool {
        guard TerminalText.clean(text).utf8.elementsEqual(text.utf8) else { return false }
        return !(text.utf8.first.map(MarkupScanner.isSpace) ?? false) && !(text.utf8.last.map(MarkupScanner.isSpace) ?? false)
    }

    static func decoded(_ bytes: some Collection<UInt8>) -> String {
        guard bytes.contains(UInt8(ascii: "&")) else { return String(decoding: bytes, as: UTF8.self) }
        var text: [UInt8] = []
        var rest = Array(bytes)[...]
        while let byte = rest.first {
            guard byte == UInt8(ascii: "&"), let end = rest.prefix(12).firstIndex(of: UInt8(ascii: ";")),
                let scalar = scalar(rest[(rest.startIndex + 1)..<end])
            else {
                text.append(byte)
                rest = rest.dropFirst()
                continue
            }
            text += Array(String(scalar).utf8)
            rest = rest[(end + 1)...]
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// The character that `amp`, `#39` or `#x27` stands for; `nil` for what is none.
    private static func scalar(_ name: ArraySlice<UInt8>) -> Unicode.Scalar? {
        if name.first == UInt8(ascii: "#") {
            let digits = String(decoding: name.dropFirst(), as: UTF8.self)
            let isHexadecimal = digits.utf8.first.map { $0 | 0x20 == UInt8(ascii: "x") } ?? false
            let number = isHexadecimal ? UInt32(digits.dropFirst(), radix: 16) : UInt32(digits)
            return number.flatMap(Unicode.Scalar.init)
        }
        return names.first { name.elementsEqual($0.0.bytes) }?.1
    }

    private static let names: [(StaticString, Unicode.Scalar)] = [
        ("amp", "&"), ("lt", "<"), ("gt", ">"), ("quot", "\""), ("apos", "'"), ("nbsp", "\u{A0}"),
    ]

    static func trimmed(_ text: String) -> String {
        let bytes = Array(text.utf8)
        let start = bytes.firstIndex { !MarkupScanner.isSpace($0) } ?? bytes.count
        let end = bytes.lastIndex { !MarkupScanner.isSpace($0) } ?? -1
        return start <= end ? String(decoding: bytes[start...end], as: UTF8.self) : ""
    }
}
