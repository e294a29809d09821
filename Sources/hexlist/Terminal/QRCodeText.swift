import HexlistFormats

/// Draws a QR code on a terminal with half-block characters.
enum QRCodeText {
    /// Prints the QR code. If the text is too long or the terminal is too narrow, prints a note with the reason instead.
    static func write(_ text: String, _ output: Output) throws {
        guard let code = QRCode(text) else {
            return StandardError.note("This is too long for a QR code: \(text.utf8.count) bytes of at most \(QRCode.longestText).")
        }
        // With colours the code is black on white. Without, it is drawn in the text colour and assumes a dark background; most scanners
        // also read it on a light one.
        let lines =
            output.terminal.hasColor ? code.textLines().map { "\u{1B}[38;5;16;48;5;231m\($0)\u{1B}[0m" } : code.textLines(inverted: true)
        let columns = code.textLines()[0].count
        if let width = output.terminal.width, columns > width {
            return StandardError.note("The QR code needs \(columns) columns, and this terminal has \(width).")
        }
        // `output.line` would remove the colour sequences, as it does in texts of peers.
        for line in lines { try output.bytes(Array("\(line)\n".utf8)) }
    }
}
