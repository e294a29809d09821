import Glibc
import HexlistModel

/// One of the standard streams: whether a person looks at it, and what it can show.
struct Terminal {
    let isInteractive: Bool
    let hasColor: Bool
    /// Columns; `nil` where nobody looks.
    let width: Int?

    enum Style: String {
        case plain = ""
        case strong = "\u{1B}[1m"
        case faint = "\u{1B}[2m"
        case good = "\u{1B}[32m"
        case doubtful = "\u{1B}[33m"
        case failure = "\u{1B}[31m"
    }

    func styled(_ text: String, _ style: Style) -> String {
        hasColor && style != .plain ? "\(style.rawValue)\(text)\u{1B}[0m" : text
    }

    /// A line whose beginning stands out. Both parts are cleaned here, each by itself: the colour is not part of them.
    func line(_ beginning: String, _ style: Style, _ rest: String) -> String {
        styled(TerminalText.clean(beginning), style) + TerminalText.clean(rest)
    }

    /// Moves to the top left corner and clears the screen; nothing where nobody looks.
    var cleared: String { isInteractive ? "\u{1B}[H\u{1B}[2J" : "" }

    /// Asks on standard error and reads a line; only an explicit yes is one.
    /// - Throws: the end of the command for anything else.
    static func confirm(_ question: String) throws(Ending) {
        StandardError.note(question)
        guard let answer = readLine(), isYes(answer) else {
            StandardError.note("Nothing was changed.")
            throw Ending(status: .failed)
        }
    }

    static func isYes(_ answer: String) -> Bool {
        ["y", "yes"].contains(answer.split(whereSeparator: \.isWhitespace).joined(separator: " ").lowercased())
    }
}

extension Terminal {
    init(descriptor: CInt) {
        let isInteractive = isatty(descriptor) == 1
        let noColor = Environment.value("NO_COLOR").map { !$0.isEmpty } ?? false
        var size = winsize()
        self.init(
            isInteractive: isInteractive, hasColor: isInteractive && !noColor && Environment.value("TERM") != "dumb",
            width: isInteractive && ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0 ? Int(size.ws_col) : nil)
    }
}

/// How many columns a text takes.
enum TextWidth {
    /// - Parameter text: clean, so without control characters.
    static func of(_ text: String) -> Int { text.reduce(0) { $0 + of($1) } }

    /// The longest prefix of whole characters that fits, with `…` where something is missing.
    static func cut(_ text: String, columns: Int) -> String {
        guard of(text) > columns else { return text }
        var cut = ""
        var width = 0
        for character in text {
            width += of(character)
            guard width < columns else { break }
            cut.append(character)
        }
        return cut + "…"
    }

    private static func of(_ character: Character) -> Int {
        guard let first = character.unicodeScalars.first else { return 0 }
        if first.properties.isEmojiPresentation || character.unicodeScalars.contains("\u{FE0F}") { return 2 }
        switch first.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format: return 0
        default: return isWide(first) ? 2 : 1
        }
    }

    /// East Asian Wide and Fullwidth (Unicode Annex 11), by blocks.
    private static func isWide(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F,
            0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1F64F, 0x1F900...0x1F9FF, 0x20000...0x3FFFD:
            true
        default: false
        }
    }
}
