public import HexlistModel

/// Finds the title of a web page in the beginning of its HTML. Performs no IO: the caller adds the bytes as they arrive.
///
/// UTF-8, UTF-16 and Windows-1252 (Latin-1) are supported, as the byte order mark, the header or the page declares. Without a declaration,
/// bytes that are not UTF-8 are read as Windows-1252, as browsers do. A title in another encoding is used only if it is valid UTF-8.
public struct PageTitle: Sendable {
    /// Maximum bytes of a page that are kept. A title after them is not found.
    public static let pageBytes = 512 << 10
    /// Maximum bytes of a title in UTF-8. A longer one is cut.
    public static let titleBytes = 1 << 10
    /// Bytes in which the page may declare its encoding, as in browsers.
    private static let declarationBytes = 1 << 10

    private enum Encoding { case utf8, utf16(isBigEndian: Bool), latin, unknown }

    private var bytes: [UInt8] = []
    /// The number of bytes that were searched for an end tag.
    private var searched = 0
    /// The number of bytes from which the page is scanned again. It grows with the page, so that all scans together take linear time.
    private var nextScan = 0
    /// The encoding that the header declares, in lower case.
    private let declared: String?

    /// - Parameter contentType: the header `Content-Type`; `nil` if there is none.
    /// - Returns: `nil` if the content is not HTML.
    public init?(contentType: String?) {
        let parts = (contentType ?? "text/html").utf8.prefix(1_024).split(separator: UInt8(ascii: ";"))
        let type = parts.first.map { String(decoding: MarkupText.trimmed(Array($0)[...]).map(ASCII.lowercased), as: UTF8.self) }
        guard let type, ["text/html", "application/xhtml+xml"].contains(type) else { return nil }
        declared = parts.dropFirst().lazy.compactMap { Self.charset(in: Array($0)[...]) }.first
    }

    /// Adds the next bytes of the page.
    /// - Returns: whether more bytes may change the title.
    public mutating func append(_ new: some Collection<UInt8>) -> Bool {
        bytes += new.prefix(Self.pageBytes - bytes.count)
        defer { searched = bytes.count }
        let start = max(0, searched - 8)
        guard bytes.count < Self.pageBytes else { return false }
        // The tag may be inside a comment or a script, so a scan decides.
        guard bytes.count >= nextScan, ["</title", "<body"].contains(where: { Self.first($0, in: bytes[start...]) != nil }) else {
            return true
        }
        if case .open = Self.scan(bytes) {
            nextScan = bytes.count + bytes.count / 4
            return true
        }
        return false
    }

    /// The title as one line of printable text, without white space at its ends; `nil` if the page has none.
    public var text: String? {
        guard let page = decoded, let raw = Self.scan(page).title else { return nil }
        var words: [String.UnicodeScalarView] = [.init()]
        for scalar in MarkupText.decoded(raw).unicodeScalars {
            if scalar.properties.isWhitespace || scalar.value == 0 {
                if words.last?.isEmpty == false { words.append(.init()) }
            } else if TerminalText.isShown(scalar), scalar != "\u{FFFD}" {
                words[words.count - 1].append(scalar)
            }
        }
        let title = PeerName.cut(words.filter { !$0.isEmpty }.map(String.init).joined(separator: " "), bytes: Self.titleBytes)
        let hasEnd = title.utf8.last == 0x20
        return title.isEmpty ? nil : hasEnd ? String(title.dropLast()) : title
    }

    // MARK: Encoding

    private var decoded: [UInt8]? {
        if bytes.starts(with: ByteOrderMark.utf8) { return Array(bytes.dropFirst(3)) }
        if bytes.starts(with: [0xFE, 0xFF]) { return Self.utf8(bytes.dropFirst(2), isBigEndian: true) }
        if bytes.starts(with: [0xFF, 0xFE]) { return Self.utf8(bytes.dropFirst(2), isBigEndian: false) }
        switch encoding {
        case .utf8: return bytes
        case .utf16(let isBigEndian): return Self.utf8(bytes[...], isBigEndian: isBigEndian)
        case .latin: return Array(String(String.UnicodeScalarView(bytes.map(Windows1252.scalar))).utf8)
        case .unknown: return isUTF8 ? bytes : nil
        }
    }

    private var encoding: Encoding {
        guard let name = declared ?? Self.charset(in: bytes.prefix(Self.declarationBytes)) else { return isUTF8 ? .utf8 : .latin }
        return switch name {
        case "utf-8", "utf8": .utf8
        // A page that declares UTF-16 in ASCII characters is not UTF-16.
        case "utf-16", "utf-16le": declared == nil ? .utf8 : .utf16(isBigEndian: false)
        case "utf-16be": declared == nil ? .utf8 : .utf16(isBigEndian: true)
        case "iso-8859-1", "windows-1252", "latin1", "latin-1", "l1", "cp1252", "us-ascii", "ascii": .latin
        default: .unknown
        }
    }

    /// Whether the title is valid UTF-8, apart from a character at its end if the page was cut there.
    private var isUTF8: Bool {
        switch Self.scan(bytes) {
        case .closed(let title): return String(validating: title, as: UTF8.self) != nil
        case .open(let title): return (0...3).contains { String(validating: (title ?? []).dropLast($0), as: UTF8.self) != nil }
        case .none: return true
        }
    }

    /// Returns the value of the first `charset=` in lower case.
    private static func charset(in bytes: ArraySlice<UInt8>) -> String? {
        guard let mark = first("charset", in: bytes) else { return nil }
        let rest = MarkupText.trimmed(bytes[(mark + 7)...])
        guard rest.first == UInt8(ascii: "=") else { return nil }
        let value = MarkupText.trimmed(rest.dropFirst()).drop { $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "'") }
            .prefix { ASCII.isAlphanumeric($0) || "-_.:".utf8.contains($0) }
        return value.isEmpty ? nil : String(decoding: value.map(ASCII.lowercased), as: UTF8.self)
    }

    /// Converts UTF-16 to UTF-8. Invalid parts become U+FFFD.
    private static func utf8(_ bytes: ArraySlice<UInt8>, isBigEndian: Bool) -> [UInt8] {
        Array(String(decoding: DecodedText.units(of: bytes, isBigEndian: isBigEndian), as: UTF16.self).utf8)
    }

    // MARK: Markup

    /// Elements whose inner `<title>` is not the title of the page.
    private static let skipped: [StaticString] = ["script", "style", "noscript", "template", "svg"]

    private enum Scan {
        /// The content of the first element `title`, before character references are decoded.
        case closed(ArraySlice<UInt8>)
        /// More bytes of the page may change the result. The value is the title so far, or the beginning of a very long one; `nil` if it
        /// has not begun.
        case open(ArraySlice<UInt8>?)
        /// The page has no title before its `<body>`.
        case none

        var title: ArraySlice<UInt8>? {
            switch self {
            case .closed(let title): title
            case .open(let title): title
            case .none: nil
            }
        }
    }

    /// Searches a page for its title, in linear time.
    private static func scan(_ page: [UInt8]) -> Scan {
        var at = page.startIndex
        while let open = page[at...].firstIndex(of: UInt8(ascii: "<")) {
            at = open + 1
            if page[at...].starts(with: "!--".utf8) {
                guard let end = first("-->", in: page[(at + 1)...]) else { return .open(nil) }
                at = end + 3
            } else if let element = skipped.first(where: { isTag($0, page[at...]) }) {
                guard let end = first("</\(element)", in: page[at...]) else { return .open(nil) }
                at = end + 2
            } else if isTag("body", page[at...]) {
                return .none
            } else if isTag("title", page[at...]) {
                guard let start = page[at...].firstIndex(of: UInt8(ascii: ">")) else { return .open(nil) }
                let rest = page[(start + 1)...].prefix(64 * titleBytes)
                return first("</title", in: rest).map { .closed(rest[..<$0]) } ?? .open(rest)
            }
        }
        return .open(nil)
    }

    /// Whether the bytes, after `<`, begin with a tag of this element.
    private static func isTag(_ element: StaticString, _ bytes: ArraySlice<UInt8>) -> Bool {
        let count = element.utf8CodeUnitCount
        guard bytes.count > count, bytes.prefix(count).elementsEqual(element.bytes, by: { ASCII.lowercased($0) == $1 }) else {
            return false
        }
        let next = bytes[bytes.startIndex + count]
        return MarkupScanner.isSpace(next) || next == UInt8(ascii: ">") || next == UInt8(ascii: "/")
    }

    /// Returns the index of the first occurrence of a text. Ignores the case of ASCII letters in the bytes; `text` must be in lower case.
    private static func first(_ text: String, in bytes: ArraySlice<UInt8>) -> Int? {
        let text = Array(text.utf8)
        guard bytes.count >= text.count else { return nil }
        return (bytes.startIndex...(bytes.endIndex - text.count)).first { start in
            ASCII.lowercased(bytes[start]) == text[0] && text.indices.allSatisfy { ASCII.lowercased(bytes[start + $0]) == text[$0] }
        }
    }
}
