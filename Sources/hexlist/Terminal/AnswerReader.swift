import Dispatch
import Glibc
import Synchronization

/// Reads answers of the user, one line each, on its own thread. A question can be cancelled before it is answered.
final class AnswerReader: Sendable {
    private let thread = DispatchQueue(label: "answers")
    /// The number of the current question; increased by each question and each cancellation.
    private let current = Mutex(0)
    /// Maximum number of bytes of an answer. The rest is ignored.
    private static let byteLimit = 256

    /// Discards input that the user typed before the question was shown.
    func discard() { tcflush(STDIN_FILENO, TCIFLUSH) }

    /// Cancels the previous question and reads the answer to a new one.
    /// - Parameter then: called with the line, or with `nil` at the end of the input. Not called if the question is cancelled.
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
        /// The typed line; `nil` at the end of the input.
        var text: String?
    }

    /// Reads a line. Returns `nil` if the question was cancelled.
    private func read(_ question: Int) -> Line? {
        var bytes: [UInt8] = []
        while isCurrent(question) {
            var input = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
            // The timeout limits how long a cancellation remains unnoticed.
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
