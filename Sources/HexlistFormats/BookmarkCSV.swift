import HexlistJSON
import HexlistModel

/// Reads and writes links as rows of CSV (RFC 4180). Columns are recognised by the names that Pocket, Raindrop and other services use.
///
/// An exported file has the columns `folder` (the path of the hex, outermost first, separated by ` / `), `color`, `title`, `url`,
/// `service`, `tags`, `created` and `note`. Consecutive rows with the same folder are one hex.
public enum BookmarkCSV {
    private enum Column {
        case url, title, folder, color, service, tags, created, note
        /// A column with an unknown name. Its values are kept as unknown members of this name.
        case other(String)

        func isSame(as other: Column) -> Bool {
            switch (self, other) {
            case (.url, .url), (.title, .title), (.folder, .folder), (.color, .color), (.service, .service), (.tags, .tags),
                (.created, .created), (.note, .note):
                true
            default: false
            }
        }
    }

    private static let names: [(StaticString, Column)] = [
        ("url", .url), ("link", .url), ("href", .url), ("title", .title), ("name", .title), ("folder", .folder), ("collection", .folder),
        ("color", .color), ("service", .service), ("tags", .tags), ("document tags", .tags), ("created", .created),
        ("time_added", .created),
        ("add_date", .created), ("date", .created), ("timestamp", .created), ("created_at", .created), ("createdat", .created),
        ("date_added", .created), ("saved date", .created), ("added", .created), ("note", .note), ("notes", .note), ("description", .note),
    ]

    /// Columns of Raindrop and Pocket that are not imported: internal numbers (`id`, `cursor`) and images (`cover`).
    private static let useless = ["id", "cover", "cursor"]

    // MARK: Reading

    /// Whether a line is a header with a column for the URL.
    public static func isHeader(_ line: [UInt8]) -> Bool { header(line) != nil }

    private struct Header {
        var columns: [Column]
        var isOwn: Bool
        /// Whether tags may contain spaces. True for Pocket, which separates tags with `|`, and for Raindrop and Hexlist, which use commas.
        var hasTagsWithSpaces = false
        /// The rows after the header.
        var rows: CSVRows
    }

    /// Parses the header, which is the first row that is not blank. Tries all separators until one gives a column for the URL; `nil` if
    /// none does.
    private static func header(_ bytes: [UInt8]) -> Header? {
        for separator in CSVRows.separators {
            var (cells, rows) = firstRow(bytes, separator)
            guard rows.next() != nil else { continue }
            let names = cells.map { MarkupText.trimmed($0).lowercased() }
            var columns: [Column] = []
            for name in names {
                let known = Self.names.first { name.utf8.elementsEqual($0.0.bytes) }?.1
                // If two columns have the same meaning, the second one is kept as an unknown member.
                let isFirst = known.map { known in !columns.contains { $0.isSame(as: known) } } ?? false
                columns.append(isFirst ? known ?? .other(name) : .other(PeerName.cut(name, bytes: 64)))
            }
            guard columns.contains(where: { $0.isSame(as: .url) }) else { continue }
            rows.columns = columns.count
            let isOwn = names == written
            let hasTagsWithSpaces = isOwn || names.contains { ["time_added", "cursor", "cover"].contains($0) }
            return Header(columns: columns, isOwn: isOwn, hasTagsWithSpaces: hasTagsWithSpaces, rows: rows)
        }
        return nil
    }

    /// Handles a file without a header, whose rows are `url,title`. Returns `nil` unless the first cell is a web address.
    private static func withoutHeader(_ bytes: [UInt8]) -> Header? {
        var found: Header?
        for separator in CSVRows.separators {
            let (row, rows) = firstRow(bytes, separator)
            guard let url = row.first.map(MarkupText.trimmed), LinkAddress.fault(url) == nil else { continue }
            let scheme = url.utf8.prefix { $0 != UInt8(ascii: ":") }.map(ASCII.lowercased)
            guard ["http", "https"].contains(where: { $0.utf8.elementsEqual(scheme) }) else { continue }
            if found == nil || row.count > 1 { found = Header(columns: [.url, .title], isOwn: false, rows: rows) }
            if row.count > 1 { break }
        }
        return found
    }

    /// Returns the cells of the first row that is not blank, and the rows beginning with that row. There are no cells if all rows are
    /// blank.
    private static func firstRow(_ bytes: [UInt8], _ separator: Unicode.Scalar) -> (cells: [String], rows: CSVRows) {
        var rows = CSVRows(bytes, separator: separator)
        var rest = rows
        while let row = rest.next() {
            if !isBlank(row), !isDirective(row) { return (row, rows) }
            rows = rest
        }
        return ([], rows)
    }

    /// Returns the cells of the first row that is not blank, split at the separator that gives the most cells.
    public static func firstCells(_ bytes: [UInt8]) -> [String] {
        var most: [String] = []
        for separator in CSVRows.separators {
            let cells = firstRow(bytes, separator).cells
            if cells.count > most.count { most = cells }
        }
        return most.map { MarkupText.trimmed($0) }
    }

    /// Names of the column for the URL.
    public static let urlNames = ["url", "link", "href"]

    private static func isBlank(_ row: [String]) -> Bool { row.allSatisfy { MarkupText.trimmed($0).isEmpty } }

    /// Whether a row is `sep=;`, which sets the separator for Excel.
    private static func isDirective(_ row: [String]) -> Bool { row.first?.lowercased().hasPrefix("sep=") ?? false }

    private static let written = ["folder", "color", "title", "url", "service", "tags", "created", "note"]

    /// - Parameter name: the description of the hex for links without a folder.
    /// - Returns: `nil` if the file has no column for the URL.
    public static func read(_ bytes: [UInt8], name: String) -> FileReading? {
        guard let header = header(bytes) ?? withoutHeader(bytes) else { return nil }
        let (columns, isOwn) = (header.columns, header.isOwn)
        var rows = header.rows
        let splitsAtSpaces = splitsTagsAtSpaces(header)
        var reading = FileReading()
        var lines = LineNumbers(bytes)
        var folders = FolderIndex()
        var last: (folder: String, color: String, hex: Int)?
        while let row = rows.next() {
            if isBlank(row) { continue }
            var link = HexTree.Link(url: "")
            var (folder, color) = ("", "")
            for (column, text) in zip(columns, row) where !text.isEmpty {
                let text = isOwn ? SpreadsheetText.read(text) : text
                switch column {
                case .url: link.url = MarkupText.trimmed(text)
                case .title: link.title = isOwn ? text : MarkupText.trimmed(text)
                case .folder: folder = text
                case .color: color = text
                case .service: link.service = text
                case .created: link.extra.append(BookmarkDate.member(text, as: "addDate", otherwise: "created"))
                case .note: link.extra.append(.init("note", text))
                case .tags: link.extra.append(.init("tags", TagList.json(ofCell: text, splitsAtSpaces: splitsAtSpaces)))
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
            // Hexlist exports a hex without links as a row without a link.
            if link.url.isEmpty, link.title.isEmpty, isOwn { continue }
            reading.add(link, to: last.hex, isOwn: isOwn, line: lines.number(at: rows.start))
            if let cell = row.dropFirst(columns.count).first(where: { !MarkupText.trimmed($0).isEmpty }) {
                reading.skip(.moreCells, cell, line: lines.number(at: rows.start))
            }
        }
        return reading
    }

    /// Whether spaces separate the tags of the file: true if no cell of the column for tags contains `,`, `|` or `[`. False if
    /// `hasTagsWithSpaces` is set or there is no such column.
    private static func splitsTagsAtSpaces(_ header: Header) -> Bool {
        guard !header.hasTagsWithSpaces, let column = header.columns.firstIndex(where: { $0.isSame(as: .tags) }) else { return false }
        var rows = header.rows
        while let row = rows.next() {
            if column < row.count, row[column].utf8.contains(where: { ",|[".utf8.contains($0) }) { return false }
        }
        return true
    }

    // MARK: Writing

    public static func write(_ forest: HexTree) -> [UInt8] {
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
            func add(_ link: HexTree.Link) {
                let tags = link.extra.value("tags").flatMap { $0.elements }?.compactMap(\.string).joined(separator: ",") ?? ""
                let cells = [
                    folder, hex.color, link.title, link.url, link.service, tags, link.extra.value("addDate")?.string ?? "",
                    link.extra.value("note")?.string ?? "",
                ]
                lines += cells.map { CSVRows.cell(SpreadsheetText.written(TerminalText.clean($0))) }.joined(separator: ",") + "\n"
            }
            for link in hex.links { add(link) }
            if hex.links.isEmpty, lists[index].isEmpty { add(HexTree.Link(url: "")) }
            stack.append((folder + FolderPath.separator, lists[index][...]))
        }
        return Array(lines.utf8)
    }
}

/// Formats and parses the path of a hex, `outer / inner`. A slash in a name is escaped as `\/`.
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

    /// Returns the names in a path, outermost first.
    /// - Parameter isEscaped: whether slashes in names are escaped, as in files that Hexlist exported.
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

/// Finds the hex for a folder path.
private struct FolderIndex {
    private struct FolderKey: Hashable {
        var parent: Int?
        var name: [UInt8]
    }

    private var known: [FolderKey: Int] = [:]

    /// Returns the index of the hex for a path and appends missing hexes. In files that Hexlist exported, the last name of the path always
    /// gets a new hex, because different hexes can have the same path.
    mutating func hex(_ names: [String], color: String, isOwn: Bool, in forest: inout HexTree) -> Int {
        var hex = 0
        var parent: Int?
        for (depth, name) in names.enumerated() {
            let isEnd = depth == names.count - 1
            let key = FolderKey(parent: parent, name: Array(name.utf8))
            if let found = known[key], !(isEnd && isOwn) {
                hex = found
            } else {
                hex = forest.hexes.count
                known[key] = hex
                forest.hexes.append(HexTree.Hex(parent: parent, description: name, color: isEnd ? color : ""))
            }
            parent = hex
        }
        return hex
    }
}

/// Protects the user from formula injection: text of a peer that a spreadsheet would execute as a formula. Inserts `'` if the text, or a
/// part of it after `;`, begins like a formula. In locales with a decimal comma, `;` separates cells even inside quotes.
enum SpreadsheetText {
    /// The first characters of formulas, also in their full-width and small forms.
    private static let starts = "=+-@\u{FF1D}\u{FF0B}\u{FF0D}\u{FF20}\u{FE66}\u{FE62}\u{FE63}\u{FE6B}\u{2212}".unicodeScalars

    static func written(_ text: String) -> String { parts(text) { isDangerous($0) ? "'\(Substring($0))" : String($0) } }

    static func read(_ text: String) -> String {
        parts(text) { $0.first == "'" && isDangerous($0) ? String($0.dropFirst()) : String($0) }
    }

    private static func parts(_ text: String, _ change: (Substring.UnicodeScalarView) -> String) -> String {
        guard text.unicodeScalars.contains(where: { $0 == ";" || starts.contains($0) }) else { return text }
        return text.unicodeScalars.split(separator: ";", omittingEmptySubsequences: false).map(change).joined(separator: ";")
    }

    /// Whether a text begins like a formula, ignoring white space and quotation marks before it.
    private static func isDangerous(_ part: Substring.UnicodeScalarView) -> Bool {
        part.first { $0 != "'" && $0 != "\"" && !$0.properties.isWhitespace }.map(starts.contains) ?? false
    }
}
