import Glibc
import HexlistModel

/// One of the standard streams: whether it is a terminal, and what it can show.
struct Terminal {
    let isInteractive: Bool
    let hasColor: Bool
    /// The number of columns; `nil` if it is no terminal.
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

    /// A line whose beginning is emphasised. Both parts are cleaned separately, without the colour.
    func line(_ beginning: String, _ style: Style, _ rest: String) -> String {
        styled(TerminalText.clean(beginning), style) + TerminalText.clean(rest)
    }

    /// The sequence that clears the screen; empty if it is no terminal.
    var cleared: String { isInteractive ? "\u{1B}[H\u{1B}[2J" : "" }

    /// Asks on standard error and reads a line. Only an explicit yes counts.
    /// - Throws: the end of the command for any other answer.
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
    static let output = Terminal(descriptor: STDOUT_FILENO)

    init(descriptor: CInt) {
        let isInteractive = isatty(descriptor) == 1
        let noColor = Environment.value("NO_COLOR").map { !$0.isEmpty } ?? false
        var size = winsize()
        self.init(
            isInteractive: isInteractive, hasColor: isInteractive && !noColor && Environment.value("TERM") != "dumb",
            width: isInteractive && ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0 ? Int(size.ws_col) : nil)
    }
}
