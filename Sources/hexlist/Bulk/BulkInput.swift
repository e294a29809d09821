import Dispatch
import Glibc
import HexlistAPI
import HexlistModel
import HexlistSystem
import HexlistWire
import NIOCore
import Synchronization

/// The lines of a bulk send, read from a file, a pipe or a terminal. Reads on demand and on its own thread, because reading a pipe can
/// block. `stop()` ends the sequence at the end of a line.
final class BulkInput: AsyncSequence, Sendable {
    typealias Element = ByteBuffer

    /// Maximum bytes of one read.
    private static let pieceBytes = 64 << 10

    /// The progress of reading.
    struct Position: Sendable {
        /// Number of lines passed on to the consumer.
        var lines = 0
        /// Number of bytes passed on to the consumer.
        var bytes: Int64 = 0
        /// Total size in bytes if the input is a file; `nil` for a pipe or terminal.
        var size: Int64?
        var isAtEnd = false
        /// The kind of the first line; `nil` before the first read.
        var firstLine: InputKindCheck?
    }

    private struct State {
        var position = Position()
        var isStopped = false
        var failure: HexlistError?
        /// The caller that waits for the reading thread.
        var waiting: CheckedContinuation<Void, Never>?
    }

    private let name: String
    private let path: String
    private let thread = DispatchQueue(label: "input")
    private let state = Mutex(State())
    /// The descriptor and the buffered incomplete line. Only used on the reading thread.
    private let source = Mutex(Source())

    private struct Source {
        var descriptor: CInt = -1
        var whole = LineAlignedStream(limit: BulkLineDecoder.lineBytes)
    }

    /// - Parameter path: a file, or `-` for standard input.
    init(path: String) {
        self.path = path
        name = InputFile.name(path)
    }

    var position: Position { state.withLock(\.position) }

    /// The error that ended the input early; `nil` if there was none.
    var failure: HexlistError? { state.withLock(\.failure) }

    /// Opens the input. Opening a named pipe waits for its writer.
    /// - Throws: `HexlistError` if the input cannot be opened.
    func open() async throws {
        try await onThread { [self] in
            let descriptor = path == "-" ? STDIN_FILENO : Glibc.open(path, O_RDONLY | O_CLOEXEC)
            guard descriptor >= 0 else { throw InputFile.unreadable(path) }
            source.withLock { $0.descriptor = descriptor }
            var status = stat()
            guard fstat(descriptor, &status) == 0 else { throw InputFile.unreadable(path) }
            switch status.st_mode & S_IFMT {
            case S_IFDIR: throw HexlistError(.badRequest, "\(name) is a folder.", hint: "Give a file with one hex per line (JSON).")
            case S_IFREG:
                // The offset of standard input may be in the middle of the file.
                let left = Int64(status.st_size) - Int64(lseek(descriptor, 0, SEEK_CUR))
                state.withLock { $0.position.size = Swift.max(0, left) }
            default: break
            }
        }
    }

    /// Ends the input, and resumes a caller that waits for the reading thread.
    func stop() {
        let waiting = state.withLock { state in
            state.isStopped = true
            defer { state.waiting = nil }
            return state.waiting
        }
        waiting?.resume()
    }

    func makeAsyncIterator() -> Iterator { Iterator(input: self) }

    struct Iterator: AsyncIteratorProtocol {
        let input: BulkInput

        /// Returns the next chunk; `nil` at the end of the input, after `stop()`, and after an error.
        func next() async -> ByteBuffer? {
            await withTaskCancellationHandler {
                await input.next()
            } onCancel: {
                input.stop()
            }
        }
    }

    private func next() async -> ByteBuffer? {
        let isOver = state.withLock { $0.isStopped || $0.position.isAtEnd }
        guard !isOver else { return nil }
        do {
            return try await onThread { [self] in try read() }
        } catch {
            state.withLock { $0.failure = error as? HexlistError }
            return nil
        }
    }

    /// Runs `body` on the reading thread and waits until it returns or the input is stopped.
    /// - Returns: the result of `body`; `nil` if the input was stopped before.
    @discardableResult
    private func onThread<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result?) async throws -> Result? {
        let outcome = Outcome<Result>()
        await withCheckedContinuation { continuation in
            let waits = state.withLock { state in
                guard !state.isStopped else { return false }
                state.waiting = continuation
                return true
            }
            guard waits else { return continuation.resume() }
            thread.async { [self] in
                let result = Swift.Result { try body() }
                let waiting = state.withLock { state in
                    if !state.isStopped { outcome.result.withLock { $0 = result } }
                    defer { state.waiting = nil }
                    return state.waiting
                }
                waiting?.resume()
            }
        }
        return try outcome.result.withLock { $0 }?.get()
    }

    private final class Outcome<Value: Sendable>: Sendable {
        let result = Mutex<Swift.Result<Value?, any Error>?>(nil)
    }

    // MARK: On the thread

    private func noteFirstLine(_ piece: [UInt8]) {
        guard !piece.isEmpty, position.firstLine == nil else { return }
        let firstLine = InputKindCheck(piece)
        state.withLock { $0.position.firstLine = firstLine }
    }

    /// Reads the next complete lines; `nil` at the end of the input.
    private func read() throws -> ByteBuffer? {
        try source.withLock { source in
            while true {
                let piece = try InputFile.piece(source.descriptor, bytes: Self.pieceBytes, path: path)
                let bytes = piece.isEmpty ? source.whole.finish() : source.whole.feed(piece)
                noteFirstLine(piece)
                let isStopped = state.withLock { state in
                    state.position.isAtEnd = piece.isEmpty
                    if !state.isStopped {
                        state.position.lines = source.whole.lines
                        state.position.bytes += Int64(bytes.count)
                    }
                    return state.isStopped
                }
                if isStopped || bytes.isEmpty && piece.isEmpty { return nil }
                if !bytes.isEmpty { return ByteBuffer(bytes: bytes) }
            }
        }
    }
}

// MARK: Checks before sending

extension BulkInput {
    /// Validates the whole input and rewinds it. Input that cannot be rewound is copied to an unlinked temporary file.
    /// - Parameter onRefused: called on the reading thread for each line that the daemon would refuse.
    /// - Returns: the number of lines that are not blank.
    func check(allowsEmpty: Bool, onRefused: @escaping @Sendable (BulkRefusal) -> Void) async throws -> Int {
        let lines = try await onThread { [self] in
            try source.withLock { source in
                let isFile = state.withLock { $0.position.size != nil }
                let start = isFile ? lseek(source.descriptor, 0, SEEK_CUR) : 0
                let spool = isFile ? -1 : try Self.spool()
                var decoder = BulkLineDecoder(allowsEmpty: allowsEmpty)
                var splitter = LineSplitter(limit: BulkLineDecoder.lineBytes)
                var lines = 0
                let take = { (number: Int, line: [UInt8]?) in
                    switch decoder.decode(line) {
                    case .blank: return
                    case .hex: break
                    case .refused(let code, let message): onRefused(BulkRefusal(line: number, code: code, message: message))
                    }
                    lines += 1
                }
                var size: Int64 = 0
                while !state.withLock(\.isStopped) {
                    let piece = try InputFile.piece(source.descriptor, bytes: Self.pieceBytes, path: path)
                    guard !piece.isEmpty else { break }
                    size += Int64(piece.count)
                    noteFirstLine(piece)
                    splitter.feed(piece, take)
                    if spool >= 0 { try Self.write(piece, to: spool) }
                }
                splitter.finish(take)
                if spool >= 0 { source.descriptor = spool }
                guard lseek(source.descriptor, start, SEEK_SET) >= 0 else { throw InputFile.unreadable(path) }
                state.withLock { $0.position.size = size }
                return lines
            }
        }
        return lines ?? 0
    }

    var isStopped: Bool { state.withLock(\.isStopped) }

    private static func spool() throws -> CInt {
        let folder = Environment.temporaryFolder
        var path = Array("\(folder)/hexlist-XXXXXX".utf8CString)
        let descriptor = mkstemp(&path)  // no child process is started that could inherit it
        guard descriptor >= 0 else { throw unspooled(.last) }
        unlink(path)
        return descriptor
    }

    private static func write(_ piece: [UInt8], to descriptor: CInt) throws {
        do { try BlockingWrite.write(piece, to: descriptor) } catch { throw unspooled(error) }
    }

    private static func unspooled(_ error: SystemError) -> HexlistError {
        HexlistError(
            .badRequest, "Cannot buffer standard input in \(TerminalText.clean(Environment.temporaryFolder)) (\(error)).",
            hint: "Set TMPDIR to a folder with enough space, or give a file.")
    }
}
