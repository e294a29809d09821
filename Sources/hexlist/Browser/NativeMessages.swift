import Dispatch
import Glibc
import HexlistJSON
import HexlistModel
import HexlistSystem
import Synchronization

/// Decodes the native messages between a browser and a program that it started (Docs/API.md, "Messages of the browser"):
///
///     | length: UInt32 in the machine's byte order, 4 bytes | body: 1...maximumBytes bytes of JSON |
struct NativeMessageDecoder {
    /// Maximum bytes of a message from the browser: the same limit as for a hex in the local API.
    static let maximumBytes = 1 << 20
    /// Maximum bytes of a message to the browser. Browsers accept 1 MiB.
    static let replyBytes = 512 << 10

    private var pending: [UInt8] = []

    /// Adds received bytes.
    /// - Returns: the messages that are complete.
    /// - Throws: `HexlistError` if a length is invalid. The rest of the stream is then unusable.
    mutating func feed(_ bytes: some Sequence<UInt8>) throws(HexlistError) -> [[UInt8]] {
        pending += bytes
        var messages: [[UInt8]] = []
        var start = 0
        while pending.count - start >= 4 {
            let length = pending.withUnsafeBytes { Int($0.loadUnaligned(fromByteOffset: start, as: UInt32.self)) }
            guard (1...Self.maximumBytes).contains(length) else {
                throw HexlistError(
                    .tooLarge, "A message has \(length) bytes; the limit is \(Self.maximumBytes).",
                    hint: "Send fewer links at once.")
            }
            guard pending.count - start >= 4 + length else { break }
            messages.append(Array(pending[start + 4..<start + 4 + length]))
            start += 4 + length
        }
        pending.removeFirst(start)
        return messages
    }

    /// Checks that the stream did not end inside a message.
    /// - Throws: `HexlistError` if it did.
    func finish() throws(HexlistError) {
        guard pending.isEmpty else { throw HexlistError(.badRequest, "The input ended in the middle of a message.") }
    }

    static func framed(_ body: [UInt8]) -> [UInt8] { withUnsafeBytes(of: UInt32(body.count)) { Array($0) } + body }
}

/// Reads messages from standard input on its own thread, because a read blocks until the next message.
final class NativeMessageReader: Sendable {
    private struct State {
        var decoder = NativeMessageDecoder()
        var ready: ArraySlice<[UInt8]> = []
    }

    private let thread = DispatchQueue(label: "browser")
    private let state = Mutex(State())

    /// Returns the next message; `nil` at the end of the input. Only one caller may wait at a time.
    func next() async throws -> [UInt8]? {
        try await withCheckedThrowingContinuation { continuation in
            thread.async { continuation.resume(with: Result { try self.read() }) }
        }
    }

    private func read() throws -> [UInt8]? {
        while true {
            if let message = state.withLock({ $0.ready.popFirst() }) { return message }
            let piece = try InputFile.piece(STDIN_FILENO, bytes: 64 << 10, path: "-")
            guard !piece.isEmpty else {
                try state.withLock(\.decoder).finish()
                return nil
            }
            try state.withLock { $0.ready = try $0.decoder.feed(piece)[...] }
        }
    }
}

/// Writes messages to standard output. Ignores errors, because the end of standard input already shows that the browser has exited.
final class NativeMessageWriter: Sendable {
    private let lock = Mutex(())

    func send(_ body: [UInt8]) {
        lock.withLock { _ in try? BlockingWrite.write(NativeMessageDecoder.framed(body), to: STDOUT_FILENO) }
    }
}
