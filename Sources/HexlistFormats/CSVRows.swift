import HexlistModel

/// Rows of CSV (RFC 4180). If quotes in a row are unbalanced, it is read again to the end of its line with quotes as text (`loose`, then
/// `literal`); the reading whose cells match the number of columns is taken.
struct CSVRows {
    static let separators: [Unicode.Scalar] = [",", ";", "\t"]

    private enum Quotes {
        /// Quotes enclose a cell and are doubled inside it.
        case strict
        /// Quotes enclose a cell of one line and may be single inside it.
        case loose
        /// Quotes enclose a cell of one line and are doubled inside it; all others are text.
        case literal
    }

    private struct Row {
        var cells: [String] = []
        var end = 0
        /// Whether each quote is closed and followed by a separator or the end of the line.
        var isClean = true
        var hasLines = false
        /// The offset of the first quote without a closing one in its line.
        var unclosed = Int.max
    }

    /// The number of columns; `nil` if unknown.
    var columns: Int?
    /// The offset of the row that `next()` returned.
    private(set) var start = 0
    private let bytes: [UInt8]
    private let separator: UInt8
    private var position: Int
    /// The offset of the first quote without a closing one in the file. Bounds repeated scans for it.
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
                // A single quote at the start of a cell is no part of its text.
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

    /// The quoted cell that begins at an offset, and the offset after it; `nil` if the quote is text.
    private mutating func quoted(_ open: Int, _ quotes: inout Quotes, _ row: inout Row) -> (text: [UInt8], end: Int)? {
        // After a quote without an end no later cell has one, except a cell that begins at the second of two quotes.
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
        // No later quote of the line has an end either.
        case .loose: quotes = .literal
        case .literal: row.unclosed = min(row.unclosed, open)
        }
        return nil
    }

    private func ends(_ byte: UInt8) -> Bool { byte == separator || byte == 0x0A || byte == 0x0D }

    /// Quotes a cell unless it has only letters and digits, because readers choose different separators.
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
