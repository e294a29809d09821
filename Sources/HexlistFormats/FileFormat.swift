public import HexlistJSON
import HexlistModel

/// The formats of files that hexes are exported to and imported from.
public enum FileFormat: String, CaseIterable, Sendable {
    case json, ndjson, csv, markdown, html, opml
    /// One link a line; only read.
    case list

    /// The formats that can be written.
    public static let written: [FileFormat] = [.json, .ndjson, .csv, .markdown, .html, .opml]

    /// The format of a file, by what it begins with, and where that says nothing by its name.
    public static func of(_ bytes: [UInt8], name: String) -> FileFormat {
        let start = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
        let head = Array(bytes[start...].prefix(4_096).drop(while: MarkupScanner.isSpace).map(ASCII.lowercased))
        func contains(_ text: String) -> Bool {
            let text = Array(text.utf8)
            return head.indices.contains { head[$0...].starts(with: text) }
        }
        switch head.first {
        case UInt8(ascii: "["): return .json
        case UInt8(ascii: "{"): return .ndjson
        case UInt8(ascii: "<"):
            if contains("<opml") { return .opml }
            if contains("<!doctype") || contains("<html") || contains("<dl") || contains("<a ") || contains("<h1") { return .html }
        default: break
        }
        if BookmarkCSV.isHeader(Array(bytes[start...].prefix { $0 != 0x0A })) { return .csv }
        let suffixes: [(String, FileFormat)] = [
            (".md", .markdown), (".markdown", .markdown), (".csv", .csv), (".html", .html), (".htm", .html), (".opml", .opml),
        ]
        let lowercased = name.utf8.map(ASCII.lowercased)
        return suffixes.first { lowercased.suffix($0.0.utf8.count).elementsEqual($0.0.utf8) }?.1 ?? .list
    }

    /// Reads a file that is neither JSON nor NDJSON, which are taken as they are.
    /// - Parameter name: what a hex of links that are in no folder is called.
    /// - Returns: `nil` for a file that is not of this format at all.
    public func read(_ bytes: [UInt8], name: String) -> FileReading? {
        switch self {
        case .json, .ndjson: nil
        case .csv: BookmarkCSV.read(bytes, name: name)
        case .markdown: LinkMarkdown.read(bytes, name: name)
        case .html: BookmarkHTML.read(bytes, name: name)
        case .opml: OPML.read(bytes, name: name)
        case .list: LinkList.read(bytes, name: name)
        }
    }

    /// - Parameters:
    ///   - lines: hexes as HexJM.
    ///   - isMine: whether they are of My Hexlist, so that those without a sender are the user's own.
    public func write(_ lines: [JSONValue], isMine: Bool = false) -> [UInt8] {
        switch self {
        case .ndjson, .list: return lines.flatMap { $0.bytes + [0x0A] }
        case .json:
            var json = Array("[".utf8)
            for (number, line) in lines.enumerated() { json += (number == 0 ? "\n" : ",\n").utf8 + line.bytes }
            return json + Array("\n]\n".utf8)
        case .csv, .markdown, .html, .opml: break
        }
        var forest = HexForest()
        for line in lines { forest.append(line) }
        return switch self {
        case .csv: BookmarkCSV.write(forest)
        case .markdown: LinkMarkdown.write(forest, isMine: isMine)
        case .opml: OPML.write(forest)
        default: BookmarkHTML.write(forest, isMine: isMine)
        }
    }
}
