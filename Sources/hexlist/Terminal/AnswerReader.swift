import Dispatch
import Glibc
import Synchronization

/// Reads answers to questions that may become pointless before they are answered: one line of the terminal each, on a thread of its own.
final class AnswerReader: Sendable {
    private let thread = DispatchQueue(label: "answers")
    /// The number of the question that waits for an answer.
    private let current = Mutex(0)
    /// The most bytes of a line that can be an answer.
    private static let longest = 256

    /// Drops what was typed before a question is shown, which is no answer to it.
    func discard() { tcflush(STDIN_FILENO, TCIFLUSH) }

    /// Reads an answer to the question that is now shown; the previous question is given up.
    /// - Parameter then: called with the line, or `nil` at the end of the input; not called once the question is given up.
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

    func giveUp() { current.withLock { $0 += 1 } }

    private func isCurrent(_ question: Int) -> Bool { current.withLock { $0 == question } }

    private struct Line {
        /// The line; `nil` at the end of the input.
        var text: String?
    }

    /// Reads a line; `nil` once the question is given up.
    private func read(_ question: Int) -> Line? {
        var bytes: [UInt8] = []
        while isCurrent(question) {
            var input = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
            // After a question is given up the wait ends within a tenth of a second.
            guard poll(&input, 1, 100) > 0, isCurrent(question) else { continue }
            var byte: UInt8 = 0
            let count = Glibc.read(STDIN_FILENO, &byte, 1)
            if count < 0, errno == EINTR || errno == EAGAIN { continue }
            guard count > 0 else { return Line(text: nil) }
            guard byte != UInt8(ascii: "\n") else { return Line(text: String(decoding: bytes, as: UTF8.self)) }
            if bytes.count <= Self.longest { bytes.append(byte) }
        }
        return nil
    }
}
