import Glibc
import HexlistModel

/// One line of standard error that says how far something is, written over the previous one; silent where that is no terminal.
final class ProgressLine {
    private let terminal = Terminal(descriptor: STDERR_FILENO)
    private var shownAt: ContinuousClock.Instant?
    private var columns = 0

    /// Shows a text, but not more than five a second.
    func update(_ text: @autoclosure () -> String) {
        guard terminal.isInteractive, shownAt.map({ .now - $0 > .milliseconds(200) }) ?? true else { return }
        let shown = TextWidth.cut(TerminalText.clean(text()), columns: max(20, (terminal.width ?? 80) - 1))
        StandardError.write("\r" + shown + String(repeating: " ", count: max(0, columns - TextWidth.of(shown))))
        columns = TextWidth.of(shown)
        shownAt = .now
    }

    /// Takes the line away.
    func end() {
        guard columns > 0 else { return }
        StandardError.write("\r" + String(repeating: " ", count: columns) + "\r")
        columns = 0
    }
}
