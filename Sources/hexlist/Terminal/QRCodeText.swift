import HexlistFormats

/// A QR code drawn with half blocks on a terminal.
enum QRCodeText {
    /// Prints the code, or a note with the reason if the text is too long for one or the terminal too narrow.
    static func write(_ text: String, _ output: Output) throws {
        guard let code = QRCode(text) else {
            return StandardError.note("This is too long for a QR code: \(text.utf8.count) bytes of at most \(QRCode.longestText).")
        }
        // Black on white if the terminal has colours; else light on dark, which most scanners read both ways.
        let lines =
            output.terminal.hasColor ? code.textLines().map { "\u{1B}[38;5;16;48;5;231m\($0)\u{1B}[0m" } : code.textLines(inverted: true)
        let columns = code.textLines()[0].count
        if let width = output.terminal.width, columns > width {
            return StandardError.note("The QR code needs \(columns) columns, and this terminal has \(width).")
        }
        for line in lines { try output.line(line) }
    }
}
