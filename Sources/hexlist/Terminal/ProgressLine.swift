import Glibc
import HexlistModel
import Synchronization

/// One line of standard error that says how far something is, written over the previous one; silent where that is no terminal.
final class ProgressLine: Sendable {
    private struct Line {
        var shownAt: ContinuousClock.Instant?
        var columns = 0
        /// Whether nothing is to be shown any more.
        var isOver = false
    }

    private let terminal = Terminal(descriptor: STDERR_FILENO)
    private let line = Mutex(Line())

    /// The columns there are.
    var columns: Int { max(20, (terminal.width ?? 80) - 1) }

    /// Shows a text, but not more than five a second.
    func update(_ text: @autoclosure () -> String) {
        guard terminal.isInteractive else { return }
        line.withLock { line in
            guard line.shownAt.map({ .now - $0 > .milliseconds(200) }) ?? true else { return }
            show(text(), &line)
        }
    }

    /// Runs `body`. When it takes longer than a second, and as long as nothing else is shown, the line has the text and the time since then.
    func during<Result>(_ text: String, _ body: () async throws -> Result) async rethrows -> Result {
        guard terminal.isInteractive else { return try await body() }
        line.withLock { $0.isOver = false }
        // It is cancelled with the end of the body, after which it shows nothing.
        let clock = Task.detached { [self] in
            var seconds = 0
            while (try? await Task.sleep(for: .seconds(1))) != nil {
                seconds += 1
                tick("\(text) \(seconds) s")
            }
        }
        defer {
            clock.cancel()
            end()
        }
        return try await body()
    }

    private func tick(_ text: String) {
        line.withLock { line in
            guard !line.isOver, line.shownAt.map({ .now - $0 > .milliseconds(900) }) ?? true else { return }
            show(text, &line)
        }
    }

    private func show(_ text: String, _ line: inout Line) {
        let shown = TextWidth.cut(TerminalText.clean(text), columns: columns)
        StandardError.write("\r" + shown + String(repeating: " ", count: max(0, line.columns - TextWidth.of(shown))))
        line.columns = TextWidth.of(shown)
        line.shownAt = .now
    }

    /// Takes the line away.
    func end() {
        line.withLock { line in
            line.isOver = true
            guard line.columns > 0 else { return }
            StandardError.write("\r" + String(repeating: " ", count: line.columns) + "\r")
            line.columns = 0
        }
    }
}
