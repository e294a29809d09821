import Glibc
import HexlistModel
import Synchronization

/// A line on standard error that is overwritten with each progress update. Prints nothing if standard error is not a terminal.
final class ProgressLine: Sendable {
    private struct Line {
        var shownAt: ContinuousClock.Instant?
        var columns = 0
        /// Whether `end()` was called, after which no delayed update may reappear.
        var isOver = false
    }

    private let terminal = Terminal(descriptor: STDERR_FILENO)
    private let line = Mutex(Line())

    /// The number of columns available for a text.
    var columns: Int { max(20, (terminal.width ?? 80) - 1) }

    /// Shows a text, at most five times per second. More frequent updates are skipped.
    func update(_ text: @autoclosure () -> String) {
        guard terminal.isInteractive else { return }
        line.withLock { line in
            guard line.shownAt.map({ .now - $0 > .milliseconds(200) }) ?? true else { return }
            show(text(), &line)
        }
    }

    /// Runs `body`. If that takes longer than a second, shows `text` with the elapsed seconds until another text is shown.
    func during<Result>(_ text: String, _ body: () async throws -> Result) async rethrows -> Result {
        guard terminal.isInteractive else { return try await body() }
        line.withLock { $0.isOver = false }
        // This task is cancelled when `body` returns.
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

    /// Erases the line and blocks delayed updates.
    func end() {
        line.withLock { line in
            line.isOver = true
            guard line.columns > 0 else { return }
            StandardError.write("\r" + String(repeating: " ", count: line.columns) + "\r")
            line.columns = 0
        }
    }
}
