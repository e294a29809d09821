import HexlistModel

/// A table with aligned columns. In a pipe all cells are printed in full. On a terminal the table is fitted to the width: first, cells with
/// a `minimum` are cut; if that is not enough, the last column is wrapped; on a very narrow terminal each row becomes running text.
struct Table {
    struct Cell {
        let text: String
        let style: Terminal.Style
        let columns: Int
        let minimum: Int?
        /// Whether the cell is a number that means nothing without the header of its column.
        var isCount = false

        /// - Parameters:
        ///   - text: may be untrusted; it is cleaned here.
        ///   - columns: maximum width on a terminal, and maximum width for padding in a pipe.
        ///   - minimum: minimum width if the cell is cut on a narrow terminal; `nil` if it must not be cut.
        init(_ text: String, _ style: Terminal.Style = .plain, columns: Int = 60, minimum: Int? = nil) {
            self.text = TerminalText.clean(text)
            self.style = style
            self.columns = columns
            self.minimum = minimum
        }

        /// Creates a cell with a count. Zero is shown as `none`.
        init(count: Int, _ style: Terminal.Style = .plain, none: String = "0") {
            self.init(count == 0 ? none : String(count), style)
            isCount = true
        }

        /// Returns the text cut for a terminal. Also limits the bytes, because a malicious text may have thousands of combining marks on
        /// one letter.
        func shown(columns: Int) -> String {
            let columns = min(columns, self.columns)
            return TextWidth.cut(PeerName.cut(text, bytes: columns * 16), columns: columns)
        }
    }

    private var header: [String]
    private var rows: [[Cell]] = []

    /// - Parameter header: the headers of the columns; empty for a list of names and values.
    init(_ header: [String] = []) { self.header = header }

    mutating func add(_ cells: [Cell]) { rows.append(cells) }

    mutating func add(_ name: String, _ value: String, _ style: Terminal.Style = .plain) {
        rows.append([Cell(name, .faint), Cell(value, style, columns: 400)])
    }

    /// Adds a name with a value of several lines, one row per line.
    mutating func add(_ name: String, lines: [String]) {
        for (number, line) in lines.enumerated() { add(number == 0 ? name : "", line) }
    }

    var isEmpty: Bool { rows.isEmpty }

    func lines(_ terminal: Terminal) -> [String] {
        let all = (header.isEmpty ? [] : [header.map { Cell($0, .faint) }]) + rows
        let sizes = all.map { $0.map { min($0.columns, TextWidth.of($0.text)) } }
        var widths: [Int] = []
        for row in sizes { widths = Self.widest(widths, row) }
        guard let width = terminal.width.map({ max(20, $0) }) else {
            return all.map { Self.line($0.map(\.text), $0, widths, terminal) }
        }
        let lastColumn = widths.count - 1
        var least: [Int] = []
        for (row, sizes) in zip(all, sizes) {
            let minimums = row.indices.map { column in
                min(sizes[column], row[column].minimum ?? (column == lastColumn ? Self.valueMinimum : sizes[column]))
            }
            least = Self.widest(least, minimums)
        }
        // Reduces the widest column first. The last column may be reduced too, because its cells are wrapped unless they have a minimum.
        let ends = Self.ends(sizes)
        while !Self.isFitting(widths, ends, width),
            let widest = widths.indices.filter({ widths[$0] > least[$0] }).max(by: { widths[$0] < widths[$1] })
        {
            widths[widest] -= 1
        }
        guard Self.isFitting(widths, ends, width) else { return rows.flatMap { flowed($0, width, terminal) } }
        return all.flatMap { Self.wrapped($0, widths, width, terminal) }
    }

    /// Number of spaces between two columns.
    private static let gap = 2
    /// Minimum width at which a wrapped value is still readable.
    private static let valueMinimum = 24

    private static func widest(_ widths: [Int], _ row: [Int]) -> [Int] {
        (0..<max(widths.count, row.count)).map { max($0 < widths.count ? widths[$0] : 0, $0 < row.count ? row[$0] : 0) }
    }

    /// Returns, for each column, the width of its widest cell that is the last non-empty cell of a row.
    /// - Parameter sizes: the widths of the cells of each row.
    private static func ends(_ sizes: [[Int]]) -> [Int: Int] {
        Dictionary(sizes.compactMap { row in row.lastIndex { $0 > 0 }.map { ($0, row[$0]) } }, uniquingKeysWith: max)
    }

    private static func isFitting(_ widths: [Int], _ ends: [Int: Int], _ width: Int) -> Bool {
        ends.allSatisfy { column, size in widths[..<column].reduce(0) { $0 + $1 + gap } + min(widths[column], size) <= width }
    }

    /// Returns a row with its cells padded to the widths of the columns. The last cell is not padded.
    /// - Parameter texts: the texts of the cells.
    private static func line(_ texts: [String], _ row: [Cell], _ widths: [Int], _ terminal: Terminal) -> String {
        let count = (texts.lastIndex { !$0.isEmpty } ?? -1) + 1
        var line = ""
        for column in 0..<count {
            line += terminal.styled(texts[column], row[column].style)
            if column < count - 1 {
                line += String(repeating: " ", count: max(0, widths[column] - TextWidth.of(texts[column])) + gap)
            }
        }
        return line
    }

    /// Returns a row whose last cell is wrapped within its column. If a word is too long for that, such as a UUID that must stay whole for
    /// copying, the last cell is placed on separate lines.
    private static func wrapped(_ row: [Cell], _ widths: [Int], _ width: Int, _ terminal: Terminal) -> [String] {
        let texts = zip(row, widths).map { $0.shown(columns: $1) }
        guard row.count == widths.count, let last = row.last, last.minimum == nil else { return [line(texts, row, widths, terminal)] }
        let text = last.shown(columns: last.columns)
        let indent = widths.dropLast().reduce(0) { $0 + $1 + gap }
        guard text.split(separator: " ").allSatisfy({ TextWidth.of(String($0)) <= width - indent }) else {
            return [line(texts.dropLast() + [""], row, widths, terminal)]
                + TextWidth.lines(text, columns: width - gap).map { String(repeating: " ", count: gap) + terminal.styled($0, last.style) }
        }
        let parts = TextWidth.lines(text, columns: width - indent)
        return [line(texts.dropLast() + [parts[0]], row, widths, terminal)]
            + parts.dropFirst().map { String(repeating: " ", count: indent) + terminal.styled($0, last.style) }
    }

    /// Returns the cells of a row as running text. Puts the header before each count, and leaves out cells with only a dash.
    private func flowed(_ row: [Cell], _ width: Int, _ terminal: Terminal) -> [String] {
        var lines: [String] = []
        var (line, used) = ("", 0)
        for (column, cell) in row.enumerated() where !cell.text.isEmpty && !cell.text.utf8.elementsEqual("–".utf8) {
            let isNamed = cell.isCount && column < header.count
            let text = (isNamed ? header[column].lowercased() + " " : "") + cell.shown(columns: cell.columns)
            if used > 0, used + Self.gap + TextWidth.of(text) <= width {
                line += String(repeating: " ", count: Self.gap) + terminal.styled(text, cell.style)
                used += Self.gap + TextWidth.of(text)
                continue
            }
            if used > 0 { lines.append(line) }
            for (number, part) in TextWidth.lines(text, columns: width - Self.gap, first: lines.isEmpty ? width : nil).enumerated() {
                if number > 0 { lines.append(line) }
                let indent = lines.isEmpty ? 0 : Self.gap
                line = String(repeating: " ", count: indent) + terminal.styled(part, cell.style)
                used = indent + TextWidth.of(part)
            }
        }
        return used > 0 ? lines + [line] : lines
    }
}
