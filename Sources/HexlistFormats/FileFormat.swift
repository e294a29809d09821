public import HexlistJSON
import HexlistModel

/// Formats of files to import and export.
public enum FileFormat: String, CaseIterable, Sendable {
    case json, ndjson, csv, markdown, html, opml
    /// Import only.
    case xbel
    /// One link per line. Import only.
    case list

    /// The formats for export.
    public static let written: [FileFormat] = [.json, .ndjson, .csv, .markdown, .html, .opml]

    /// Detects the format from the first bytes of a file or, if they are ambiguous, from its name.
    /// - Returns: `nil` for XML and HTML without outlines or links in the first 4 KiB.
    public static func of(_ bytes: [UInt8], name: String) -> FileFormat? {
        let start = bytes.starts(with: ByteOrderMark.utf8) ? 3 : 0
        let head = Array(bytes[start...].prefix(4_096).drop(while: MarkupScanner.isSpace).map(ASCII.lowercased))
        func contains(_ text: String) -> Bool {
            let text = Array(text.utf8)
            return head.indices.contains { head[$0...].starts(with: text) }
        }
        switch head.first {
        // A file that begins with `[` may also be Markdown that begins with a link.
        case UInt8(ascii: "[") where head.dropFirst().first { !MarkupScanner.isSpace($0) }.map("{[]\"".utf8.contains) ?? true: return .json
        case UInt8(ascii: "{"): return .ndjson
        case UInt8(ascii: "<"):
            if contains("<opml") { return .opml }
            if contains("<xbel") || contains("<!doctype xbel") { return .xbel }
            if contains("<!doctype html") || contains("<!doctype netscape") || contains("<html") || contains("<dl") || contains("<a ")
                || contains("<h1")
            {
                return .html
            }
        default: break
        }
        if BookmarkCSV.isHeader(head) { return .csv }
        let suffixes: [(String, FileFormat)] = [
            (".md", .markdown), (".markdown", .markdown), (".csv", .csv), (".html", .html), (".htm", .html), (".opml", .opml),
            (".xbel", .xbel),
        ]
        let lowercased = name.utf8.map(ASCII.lowercased)
        if let format = suffixes.first(where: { lowercased.suffix($0.0.utf8.count).elementsEqual($0.0.utf8) })?.1 { return format }
        return isXML(head) ? nil : .list
    }

    /// Whether a text begins with a tag or a declaration, not with an address in angle brackets.
    private static func isXML(_ head: [UInt8]) -> Bool {
        guard head.first == UInt8(ascii: "<"), let second = head.dropFirst().first else { return false }
        let name = head.dropFirst().prefix { $0 != UInt8(ascii: ">") && !MarkupScanner.isSpace($0) }
        return (second == UInt8(ascii: "?") || second == UInt8(ascii: "!") || LinkTextKind.isLetter(second))
            && !name.contains(UInt8(ascii: ":"))
    }

    /// Reads a file. JSON and NDJSON are read by `JSONFile` instead.
    /// - Parameter name: the description of the hex for links outside folders.
    /// - Returns: `nil` for CSV without a column for the URL.
    public func read(_ bytes: [UInt8], name: String) -> FileReading? {
        switch self {
        case .json, .ndjson: nil
        case .csv: BookmarkCSV.read(bytes, name: name)
        case .markdown: LinkMarkdown.read(bytes, name: name)
        case .html: BookmarkHTML.read(bytes, name: name)
        case .opml: OPML.read(bytes, name: name)
        case .xbel: XBEL.read(bytes, name: name)
        case .list: LinkList.read(bytes, name: name)
        }
    }

    /// - Parameters:
    ///   - lines: the hexes as HexJM, the JSON object of a hex.
    ///   - isMine: whether the hexes are from My Hexlist. Then a hex without a sender is the user's own.
    public func write(_ lines: [JSONValue], isMine: Bool = false) -> [UInt8] {
        switch self {
        case .ndjson, .list, .xbel: return lines.flatMap { $0.bytes + [0x0A] }
        case .json:
            var json = Array("[".utf8)
            for (number, line) in lines.enumerated() { json += (number == 0 ? "\n" : ",\n").utf8 + line.bytes }
            return json + Array("\n]\n".utf8)
        case .csv, .markdown, .html, .opml: break
        }
        var forest = HexTree()
        for line in lines { forest.append(line) }
        return switch self {
        case .csv: BookmarkCSV.write(forest)
        case .markdown: LinkMarkdown.write(forest, isMine: isMine)
        case .opml: OPML.write(forest)
        default: BookmarkHTML.write(forest, isMine: isMine)
        }
    }
}
