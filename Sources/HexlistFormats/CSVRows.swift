import HexlistModel

/// Parses CSV (RFC 4180) row by row. Lenient about wrong quoting: if a row has unbalanced quotes, or if a quoted cell spans several lines
/// and the number of cells is wrong, the row is parsed again as a single line, first with `loose` and then with `literal` quotes.
struct CSVRows {
    static let separators: [Unicode.Scalar] = [",", ";", "\t"]

    private enum Quotes {
        /// A cell in quotes may span several lines. A quote inside it must be doubled.
        case strict
        /// A cell in quotes must end in the same line. Quotes inside it may be doubled or single.
        case loose
        /// A cell in quotes must end in the same line, and a quote inside it must be doubled. All other quotes are text.
        case literal
    }

    private struct Row {
        var cells: [String] = []
        var end = 0
        /// Whether every opening quote has a closing quote that is followed by a separator or by the end of the line.
        var isClean = true
        /// Whether a quoted cell of the row contains a line break.
        var hasLines = false
        /// The offset of the first quote that has no closing quote in its line; `Int.max` if there is none.
        var unclosed = Int.max
    }

    /// The expected number of cells in a row; `nil` if unknown.
    var columns: Int?
    /// The offset in the file of the row that `next()` returned last.
    private(set) var start = 0
    private let bytes: [UInt8]
    private let separator: UInt8
    private var position: Int
    /// The offset of the first quote that has no closing quote in the rest of the file. Later quotes need not be searched again, which
    /// keeps the time linear.
    private var unclosed = Int.max

    init(_ bytes: [UInt8], separator: Unicode.Scalar = ",") {
        self.bytes = bytes
        self.separator = UInt8(truncatingIfNeeded: separator.value)
        position = bytes.starts(with: ByteOrderMark.utf8) ? 3 : 0
    }

    mutating func next() -> [String]? {
        guard position < bytes.count else { return nil }
        start = position
        let strict = row(.strict)
        var best = strict
        if !strict.isClean || strict.hasLines, !isWhole(strict) {
            let loose = row(.loose)
            let literal = isWhole(loose) ? loose : row(.literal)
            if isWhole(literal) || !strict.isClean { best = literal }
        }
        position = best.end
        return best.cells
    }

    private func isWhole(_ row: Row) -> Bool { row.isClean && columns.map { $0 == row.cells.count } ?? true }

    private mutating func row(_ quotes: Quotes) -> Row {
        var row = Row()
        var quotes = quotes
        var at = position
        while true {
            let text: [UInt8]
            if at < bytes.count, bytes[at] == UInt8(ascii: "\""), let (cell, end) = quoted(at, &quotes, &row) {
                (text, at) = (cell, end)
            } else {
                let end = bytes[at...].firstIndex(where: ends) ?? bytes.count
                let cell = bytes[at..<end]
                // An opening quote without any other quote in its cell is not part of the text.
                let isOpen = cell.first == UInt8(ascii: "\"") && !cell.dropFirst().contains(UInt8(ascii: "\""))
                text = Array(cell.dropFirst(isOpen ? 1 : 0))
                at = end
            }
            row.cells.append(String(decoding: text, as: UTF8.self))
            guard row.isClean, at < bytes.count else { break }
            let end = bytes[at]
            at += 1
            if end == separator { continue }
            if end == 0x0D, at < bytes.count, bytes[at] == 0x0A { at += 1 }
            break
        }
        row.end = at
        return row
    }

    /// Parses the quoted cell that begins at offset `open`. Returns its text and the offset after it, or `nil` if the quote is to be read
    /// as text.
    private mutating func quoted(_ open: Int, _ quotes: inout Quotes, _ row: inout Row) -> (text: [UInt8], end: Int)? {
        // If an earlier quote has no closing quote in the file, this one has none either, unless it is directly followed by another quote.
        let isDoubled = open + 1 < bytes.count && bytes[open + 1] == UInt8(ascii: "\"")
        if quotes == .strict, open > unclosed, !isDoubled { row.isClean = false }
        guard row.isClean, quotes != .literal || open < row.unclosed || isDoubled else { return nil }
        var text: [UInt8] = []
        var at = open + 1
        var hasLines = false
        while at < bytes.count {
            let byte = bytes[at]
            let isEnd = at + 1 == bytes.count || ends(bytes[at + 1])
            if byte == UInt8(ascii: "\"") {
                if isEnd {
                    row.hasLines = row.hasLines || hasLines
                    return (text, at + 1)
                }
                let isDoubled = bytes[at + 1] == byte
                if !isDoubled, quotes != .loose {
                    row.isClean = quotes == .literal
                    return nil
                }
                text.append(byte)
                at += isDoubled ? 2 : 1
                continue
            }
            let isLineEnd = byte == 0x0A || byte == 0x0D
            hasLines = hasLines || isLineEnd
            if isLineEnd, quotes != .strict { break }
            text.append(byte)
            at += 1
        }
        switch quotes {
        case .strict:
            row.isClean = false
            if at >= bytes.count { unclosed = min(unclosed, open) }
        // This quote has no closing quote, so no later quote of the line has one: further quotes are literal.
        case .loose: quotes = .literal
        case .literal: row.unclosed = min(row.unclosed, open)
        }
        return nil
    }

    private func ends(_ byte: UInt8) -> Bool { byte == separator || byte == 0x0A || byte == 0x0D }

    /// Formats a cell. Quotes it unless it has only letters and digits, because some programs use separators other than the comma.
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
