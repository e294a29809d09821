import Dispatch
import Glibc
import Synchronization

/// Reads answers, one line each, on a thread of its own. Questions can be cancelled before they are answered.
final class AnswerReader: Sendable {
    private let thread = DispatchQueue(label: "answers")
    /// The number of the current question.
    private let current = Mutex(0)
    /// Maximum bytes kept of an answer.
    private static let byteLimit = 256

    /// Drops input typed before the question was shown.
    func discard() { tcflush(STDIN_FILENO, TCIFLUSH) }

    /// Reads the answer to a new question; cancels the previous one.
    /// - Parameter then: called with the line, or `nil` at the end of the input; not called after a cancellation.
    func ask(_ then: @escaping @Sendable (String?) -> Void) {
        let question = current.withLock { current in
            current += 1
            return current
        }
        thread.async { [self] in
            guard let line = read(question), isCurrent(question) else { return }
            then(line.text)
        }
    }

    func cancel() { current.withLock { $0 += 1 } }

    private func isCurrent(_ question: Int) -> Bool { current.withLock { $0 == question } }

    private struct Line {
        /// The line; `nil` at the end of the input.
        var text: String?
    }

    /// Reads a line; `nil` if the question was cancelled.
    private func read(_ question: Int) -> Line? {
        var bytes: [UInt8] = []
        while isCurrent(question) {
            var input = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
            // The timeout bounds the delay after a cancellation.
            guard poll(&input, 1, 100) > 0, isCurrent(question) else { continue }
            var byte: UInt8 = 0
            let count = Glibc.read(STDIN_FILENO, &byte, 1)
            if count < 0, errno == EINTR || errno == EAGAIN { continue }
            guard count > 0 else { return Line(text: nil) }
            guard byte != UInt8(ascii: "\n") else { return Line(text: String(decoding: bytes, as: UTF8.self)) }
            if bytes.count <= Self.byteLimit { bytes.append(byte) }
        }
        return nil
    }
}
