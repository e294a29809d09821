import Glibc
import HexlistModel

/// The capabilities of a standard stream, which may be a terminal.
struct Terminal {
    let isInteractive: Bool
    let hasColor: Bool
    /// The width in columns; `nil` if the stream is not a terminal.
    let width: Int?

    /// The set of colours that the terminal can show.
    var palette = Palette.few

    enum Palette { case few, indexed, all }

    struct Style: Equatable {
        fileprivate let sequence: String

        static let plain = Style(sequence: "")
        static let strong = Style(sequence: "\u{1B}[1m")
        static let faint = Style(sequence: "\u{1B}[2m")
        static let good = Style(sequence: "\u{1B}[32m")
        static let doubtful = Style(sequence: "\u{1B}[33m")
        static let failure = Style(sequence: "\u{1B}[31m")
    }

    /// Whether the terminal can show the colours of hexes.
    var hasSwatches: Bool { hasColor && palette != .few }

    /// Returns a style in the colour of a hex; `nil` if the terminal cannot show it, or if the text is not a colour.
    /// - Parameter color: `#RRGGBB` or `#RGB`. May come from a peer.
    func swatch(_ color: String) -> Style? {
        guard hasSwatches, let parts = Self.parts(of: color) else { return nil }
        if palette == .all { return Style(sequence: "\u{1B}[38;2;\(parts[0]);\(parts[1]);\(parts[2])m") }
        // The indexed palette contains a cube of 6 × 6 × 6 colours. Each component has one of the levels 0, 95, 135, 175, 215 and 255.
        let levels = parts.map { $0 < 48 ? 0 : $0 < 115 ? 1 : ($0 - 35) / 40 }
        return Style(sequence: "\u{1B}[38;5;\(16 + 36 * levels[0] + 6 * levels[1] + levels[2])m")
    }

    private static func parts(of color: String) -> [Int]? {
        var bytes = Array(color.utf8.prefix(8))
        guard bytes.first == UInt8(ascii: "#") else { return nil }
        bytes.removeFirst()
        let digits = bytes.compactMap { Hexadecimal.value(of: $0).map(Int.init) }
        guard digits.count == bytes.count else { return nil }
        switch digits.count {
        case 3: return digits.map { $0 * 17 }
        case 6: return stride(from: 0, to: 6, by: 2).map { digits[$0] * 16 + digits[$0 + 1] }
        default: return nil
        }
    }

    func styled(_ text: String, _ style: Style) -> String {
        hasColor && style != .plain ? "\(style.sequence)\(text)\u{1B}[0m" : text
    }

    /// Returns a line whose beginning is emphasised. Cleans both parts.
    func line(_ beginning: String, _ style: Style, _ rest: String) -> String {
        styled(TerminalText.clean(beginning), style) + TerminalText.clean(rest)
    }

    /// The escape sequence that clears the screen; empty if the stream is not a terminal.
    var cleared: String { isInteractive ? "\u{1B}[H\u{1B}[2J" : "" }

    /// Asks a question on standard error and reads one line. Only an explicit yes counts as consent.
    /// - Parameter refused: printed after any other answer.
    /// - Throws: `SilentExit` for any other answer.
    static func confirm(_ question: String, refused: String = "Nothing was changed.") throws(SilentExit) {
        guard ask(question) else {
            StandardError.wrapped(refused)
            throw SilentExit(status: .failed)
        }
    }

    /// Asks a question on standard error and reads one line.
    /// - Returns: whether the answer is an explicit yes.
    static func ask(_ question: String) -> Bool {
        StandardError.wrapped(question)
        return readLine().map(isYes) ?? false
    }

    static func isYes(_ answer: String) -> Bool {
        ["y", "yes"].contains(answer.split(whereSeparator: \.isWhitespace).joined(separator: " ").lowercased())
    }
}

extension Terminal {
    /// Returns the palette of a terminal.
    /// - Parameters:
    ///   - colorTerm: the value of `COLORTERM`.
    ///   - term: the value of `TERM`.
    static func palette(_ colorTerm: String, _ term: String) -> Palette {
        if ["truecolor", "24bit"].contains(colorTerm) || term.hasSuffix("-direct") { return .all }
        return term.contains("256color") ? .indexed : .few
    }

    static let output = Terminal(descriptor: STDOUT_FILENO)

    init(descriptor: CInt) {
        let isInteractive = isatty(descriptor) == 1
        let noColor = Environment.value("NO_COLOR").map { !$0.isEmpty } ?? false
        var size = winsize()
        self.init(
            isInteractive: isInteractive, hasColor: isInteractive && !noColor && Environment.value("TERM") != "dumb",
            width: isInteractive && ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0 ? Int(size.ws_col) : nil,
            palette: Self.palette(Environment.value("COLORTERM") ?? "", Environment.value("TERM") ?? ""))
    }
}
