import Dispatch
import Glibc
import Synchronization

/// Answers to questions that may become pointless before they are answered: one line of the terminal each, read on a
/// thread of its own.
final class AnswerReader: Sendable {
    private let thread = DispatchQueue(label: "answers")
    /// The question that waits for an answer; questions are counted.
    private let current = Mutex(0)
    /// Bytes of a line that can be an answer.
    private static let longest = 256

    /// Call before a question is shown: what was typed before it is no answer to it.
    func discard() { tcflush(STDIN_FILENO, TCIFLUSH) }

    /// Takes an answer to the next question, which is shown; the one before it is given up.
    /// - Parameter then: called with the line, or `nil` at the end of the input; not at all once the question is given up.
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
        /// `nil` at the end of the input.
        var text: String?
    }

    /// `nil` once the question is given up.
    private func read(_ question: Int) -> Line? {
        var bytes: [UInt8] = []
        while isCurrent(question) {
            var input = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
            // A question given up ends the wait within a tenth of a second.
            guard poll(&input, 1, 100) > 0 else { continue }
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
