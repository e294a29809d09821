import HexlistJSON
import HexlistModel

/// Links as rows of CSV (RFC 4180). What the columns are called says what they are, so that what Pocket and Raindrop write is read too.
///
/// Written are `folder` (the descriptions of the hexes a link is in, the outermost first, ` / ` between them), `color`, `title`, `url`,
/// `service`, `tags`, `created` and `note`. Rows of the same folder that stand together are one hex.
public enum BookmarkCSV {
    private enum Column {
        case url, title, folder, color, service, tags, created, note
        /// Kept as a member of this name.
        case other(String)
    }

    private static let names: [(StaticString, Column)] = [
        ("url", .url), ("link", .url), ("href", .url), ("title", .title), ("name", .title), ("folder", .folder), ("collection", .folder),
        ("color", .color), ("service", .service), ("tags", .tags), ("created", .created), ("time_added", .created), ("add_date", .created),
        ("date", .created), ("note", .note), ("notes", .note), ("description", .note),
    ]

    /// Columns of Raindrop and Pocket that say nothing of the link.
    private static let useless = ["id", "cover", "highlights", "cursor"]
    /// The most columns that are read.
    private static let columnLimit = 64

    // MARK: Reading

    /// Whether a line has the names of columns of which one is that of the link.
    public static func isHeader(_ line: [UInt8]) -> Bool {
        header(line)?.columns.contains { if case .url = $0 { true } else { false } } ?? false
    }

    private static func header(_ bytes: [UInt8]) -> (columns: [Column], isOwn: Bool)? {
        var rows = CSVRows(bytes)
        guard let names = rows.next()?.prefix(columnLimit).map({ MarkupText.trimmed($0).lowercased() }) else { return nil }
        let columns = names.map { name in
            Self.names.first { name.utf8.elementsEqual($0.0.bytes) }?.1 ?? .other(PeerName.cut(name, bytes: 64))
        }
        return (columns, names == written)
    }

    private static let written = ["folder", "color", "title", "url", "service", "tags", "created", "note"]

    /// - Parameter name: what a hex of links without a folder is called.
    /// - Returns: `nil` for a file whose first line has no column for the link.
    public static func read(_ bytes: [UInt8], name: String) -> FileReading? {
        guard isHeader(bytes), let (columns, isOwn) = header(bytes) else { return nil }
        var reading = FileReading()
        var rows = CSVRows(bytes)
        _ = rows.next()
        var folders = Folders()
        var last: (folder: String, color: String, hex: Int)?
        while let row = rows.next() {
            if row.count == 1, row[0].isEmpty { continue }
            var link = HexForest.Link(url: "")
            var (folder, color) = ("", "")
            for (column, text) in zip(columns, row) where !text.isEmpty {
                let text = isOwn ? SpreadsheetText.read(text) : text
                switch column {
                case .url: link.url = MarkupText.trimmed(text)
                case .title: link.title = text
                case .folder: folder = text
                case .color: color = text
                case .service: link.service = text
                case .created: link.extra.append(.init("addDate", text))
                case .note: link.extra.append(.init("note", text))
                // Pocket separates tags by |, all others by commas.
                case .tags:
                    link.extra.append(.init("tags", TagList.json(text, separator: text.utf8.contains(UInt8(ascii: "|")) ? "|" : ",")))
                case .other(let name) where !useless.contains(name) && !name.isEmpty: link.extra.append(.init(name, text))
                case .other: break
                }
            }
            if link.title.utf8.elementsEqual(link.url.utf8) { link.title = "" }
            let isSame = last.map { $0.folder.utf8.elementsEqual(folder.utf8) && $0.color.utf8.elementsEqual(color.utf8) } ?? false
            if !isSame {
                let names = folder.isEmpty && !isOwn ? [name] : FolderPath.names(folder, isEscaped: isOwn)
                last = (folder, color, folders.hex(names, color: color, isOwn: isOwn, in: &reading.forest))
            }
            guard let last else { continue }
            // A row without a link is a hex without links.
            if link.url.isEmpty, link.title.isEmpty, isOwn { continue }
            reading.add(link, to: last.hex)
        }
        return reading
    }

    // MARK: Writing

    public static func write(_ forest: HexForest) -> [UInt8] {
        var lines = written.joined(separator: ",") + "\n"
        let lists = forest.childLists()
        var stack = [(path: "", rest: lists[forest.hexes.count][...])]
        while let (path, rest) = stack.last {
            guard let index = rest.first else {
                stack.removeLast()
                continue
            }
            stack[stack.count - 1].rest = rest.dropFirst()
            let hex = forest.hexes[index]
            let folder = path + FolderPath.escaped(hex.description)
            func add(_ link: HexForest.Link) {
                let tags = link.extra.value("tags").flatMap { $0.elements }?.compactMap(\.string).joined(separator: ",") ?? ""
                let cells = [
                    folder, hex.color, link.title, link.url, link.service, tags, link.extra.value("addDate")?.string ?? "",
                    link.extra.value("note")?.string ?? "",
                ]
                lines += cells.map { CSVRows.cell(SpreadsheetText.written(TerminalText.clean($0))) }.joined(separator: ",") + "\n"
            }
            for link in hex.links { add(link) }
            if hex.links.isEmpty, lists[index].isEmpty { add(HexForest.Link(url: "")) }
            stack.append((folder + FolderPath.separator, lists[index][...]))
        }
        return Array(lines.utf8)
    }
}

/// The names of hexes inside hexes in one text. A slash within a name is `\/`.
enum FolderPath {
    static let separator = " / "

    static func escaped(_ name: String) -> String {
        var escaped = ""
        for scalar in name.unicodeScalars {
            if scalar == "\\" || scalar == "/" { escaped += "\\" }
            escaped.unicodeScalars.append(scalar)
        }
        return escaped
    }

    /// - Parameter isEscaped: whether `escaped` was used, as in files of hexlist.
    static func names(_ path: String, isEscaped: Bool) -> [String] {
        var names: [String] = []
        var name: [UInt8] = []
        var rest = Array(path.utf8)[...]
        while let byte = rest.first {
            if rest.starts(with: separator.utf8) {
                names.append(String(decoding: name, as: UTF8.self))
                name = []
                rest = rest.dropFirst(separator.utf8.count)
            } else {
                let isQuoted = isEscaped && byte == UInt8(ascii: "\\") && rest.count > 1
                name.append(isQuoted ? rest[rest.startIndex + 1] : byte)
                rest = rest.dropFirst(isQuoted ? 2 : 1)
            }
        }
        return names + [String(decoding: name, as: UTF8.self)]
    }
}

/// The hexes of the folders so far.
private struct Folders {
    private struct Place: Hashable {
        var parent: Int?
        var name: [UInt8]
    }

    private var known: [Place: Int] = [:]

    /// Finds or makes the hexes of a path, and at its end one for links: in files of hexlist a new one.
    mutating func hex(_ names: [String], color: String, isOwn: Bool, in forest: inout HexForest) -> Int {
        var hex = 0
        var parent: Int?
        for (depth, name) in names.enumerated() {
            let isEnd = depth == names.count - 1
            let place = Place(parent: parent, name: Array(name.utf8))
            if let found = known[place], !(isEnd && isOwn) {
                hex = found
            } else {
                hex = forest.hexes.count
                known[place] = hex
                forest.hexes.append(HexForest.Hex(parent: parent, description: name, color: isEnd ? color : ""))
            }
            parent = hex
        }
        return hex
    }
}

/// Cells that a spreadsheet would take for a formula, as which it may fetch or run something: a text of a peer is none. A `'` before what
/// would be one makes it text, also after each `;`, which separates cells where the comma is the decimal sign, whatever is quoted.
enum SpreadsheetText {
    /// As they are, full-width and small.
    private static let starts = "=+-@\u{FF1D}\u{FF0B}\u{FF0D}\u{FF20}\u{FE66}\u{FE62}\u{FE63}\u{FE6B}\u{2212}".unicodeScalars

    static func written(_ text: String) -> String { parts(text) { isDangerous($0) ? "'\(Substring($0))" : String($0) } }

    static func read(_ text: String) -> String {
        parts(text) { $0.first == "'" && isDangerous($0) ? String($0.dropFirst()) : String($0) }
    }

    private static func parts(_ text: String, _ change: (Substring.UnicodeScalarView) -> String) -> String {
        guard text.unicodeScalars.contains(where: { $0 == ";" || starts.contains($0) }) else { return text }
        return text.unicodeScalars.split(separator: ";", omittingEmptySubsequences: false).map(change).joined(separator: ";")
    }

    /// Whether the first that is neither space nor a quotation mark begins a formula.
    private static func isDangerous(_ part: Substring.UnicodeScalarView) -> Bool {
        part.first { $0 != "'" && $0 != "\"" && !$0.properties.isWhitespace }.map(starts.contains) ?? false
    }
}

/// Rows of CSV: commas, and quotes around what has more than letters and digits in it.
struct CSVRows {
    private let bytes: [UInt8]
    private var position: Int

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
        position = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
    }

    mutating func next() -> [String]? {
        guard position < bytes.count else { return nil }
        var row: [String] = []
        while true {
            row.append(cell())
            guard position < bytes.count else { return row }
            let end = bytes[position]
            position += 1
            if end == UInt8(ascii: ",") { continue }
            if end == 0x0D, position < bytes.count, bytes[position] == 0x0A { position += 1 }
            return row
        }
    }

    private mutating func cell() -> String {
        var text: [UInt8] = []
        if position < bytes.count, bytes[position] == UInt8(ascii: "\"") {
            position += 1
            while position < bytes.count {
                let byte = bytes[position]
                position += 1
                guard byte == UInt8(ascii: "\"") else {
                    text.append(byte)
                    continue
                }
                guard position < bytes.count, bytes[position] == byte else { break }
                text.append(byte)
                position += 1
            }
        }
        while position < bytes.count, ![UInt8(ascii: ","), 0x0A, 0x0D].contains(bytes[position]) {
            text.append(bytes[position])
            position += 1
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// All but letters and digits are quoted: what separates cells is for the program that reads to say.
    static func cell(_ text: String) -> String {
        guard !text.utf8.allSatisfy({ ASCII.isLowercase(ASCII.lowercased($0)) || ASCII.isDigit($0) }) else { return text }
        var quoted = "\""
        for scalar in text.unicodeScalars {
            if scalar == "\"" { quoted += "\"" }
            quoted.unicodeScalars.append(scalar)
        }
        return quoted + "\""
    }
}
