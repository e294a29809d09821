import HexlistModel

/// Rows with aligned columns, for people.
struct Table {
    struct Cell {
        var text: String
        var style: Terminal.Style

        /// - Parameters:
        ///   - text: of anyone; it is cleaned here.
        ///   - columns: the most it may take.
        init(_ text: String, _ style: Terminal.Style = .plain, columns: Int = 60) {
            // Bounded before it is measured: hostile text may hold thousands of marks in one character.
            self.text = TextWidth.cut(TerminalText.clean(PeerName.cut(text, bytes: columns * 16)), columns: columns)
            self.style = style
        }
    }

    private var header: [String]
    private var rows: [[Cell]] = []

    /// - Parameter header: empty for a list of names and values.
    init(_ header: [String] = []) { self.header = header }

    mutating func add(_ cells: [Cell]) { rows.append(cells) }

    /// A name and its value.
    mutating func add(_ name: String, _ value: String, _ style: Terminal.Style = .plain) {
        rows.append([Cell(name, .faint), Cell(value, style, columns: 400)])
    }

    /// A name and the lines of its value.
    mutating func add(_ name: String, lines: [String]) {
        for (number, line) in lines.enumerated() { add(number == 0 ? name : "", line) }
    }

    var isEmpty: Bool { rows.isEmpty }

    func lines(_ terminal: Terminal) -> [String] {
        let head = header.isEmpty ? [] : [header.map { Cell($0, .faint) }]
        let all = head + rows
        var widths: [Int] = []
        for row in all {
            for (column, cell) in row.enumerated() {
                let width = TextWidth.of(cell.text)
                if column < widths.count { widths[column] = max(widths[column], width) } else { widths.append(width) }
            }
        }
        return all.map { row in
            let shown = row.prefix((row.lastIndex { !$0.text.isEmpty } ?? -1) + 1)
            var line = ""
            for (column, cell) in shown.enumerated() {
                line += terminal.styled(cell.text, cell.style)
                if column < shown.count - 1 { line += String(repeating: " ", count: widths[column] - TextWidth.of(cell.text) + 2) }
            }
            return line
        }
    }
}
