import HexlistAPI
import HexlistModel
import HexlistNode
import HexlistStore
import HexlistWire
import Hummingbird
import NIOCore
import Synchronization

/// The input side of a bulk send. One task reads, decodes and encodes lines (`read`), a second one puts the hexes into the outbox
/// (`accept`), and a bounded queue connects the two. A third task writes the reply from `progress` and `take()`.
final class BulkIntake: Sendable {
    /// The progress of reading and storing the input.
    struct Progress: Sendable {
        var lines = 0
        var invalid = 0
        /// Number of refused lines that are not in the reply, because `refusalLimit` was reached.
        var untold = 0
        /// Whether the input has ended, and each line is in the outbox or refused.
        var isAccepted = false
        /// The error that aborted the stream.
        var error: HexlistError?
    }

    private struct State: Sendable {
        var progress = Progress()
        var refusals: [BulkRefusal] = []
        var warnings: [BulkWarning] = []
    }

    /// Maximum number of refusals buffered for the reply. Further refused lines are only counted.
    private static let refusalLimit = 20_000

    private let node: Node
    private let bulk: OutgoingSend
    private let allowsEmpty: Bool
    /// Maximum seconds to wait for space in the outbox.
    private let timeout: Double
    private let queue = BulkQueue()
    private let state = Mutex(State())
    private let changed: @Sendable () -> Void

    /// - Parameter changed: called after each change of the progress, the refusals or the warnings.
    init(node: Node, bulk: OutgoingSend, options: BulkResponder.Options, changed: @escaping @Sendable () -> Void) {
        self.node = node
        self.bulk = bulk
        allowsEmpty = options.allowsEmpty
        timeout = options.seconds
        self.changed = changed
    }

    var progress: Progress { state.withLock(\.progress) }

    /// Removes and returns the refusals and warnings added since the last call.
    func take() -> (refusals: [BulkRefusal], warnings: [BulkWarning]) {
        state.withLock { state in
            defer { (state.refusals, state.warnings) = ([], []) }
            return (state.refusals, state.warnings)
        }
    }

    /// Cancels the queue, so that both tasks end.
    func cancel() { queue.cancel() }

    /// Reads all lines of the body, and puts their hexes into the queue.
    func read(_ body: RequestBody) async {
        defer { queue.end() }
        do {
            var preparer = try await node.outbox.preparer()
            var decoder = BulkLineDecoder(allowsEmpty: allowsEmpty)
            var splitter = LineSplitter(limit: BulkLineDecoder.lineBytes)
            var hints = BulkLineHints()
            var prepared = PreparedHexes()
            var full: [PreparedHexes] = []
            let take = { [self] (number: Int, line: [UInt8]?) in
                switch decoder.decode(line) {
                case .blank: return
                case .refused(let code, let message): return refuse(BulkRefusal(line: number, code: code, message: message))
                case .hex(let hex):
                    for hint in hints.hints(of: hex.content) { warn(BulkWarning(line: number, warning: hint)) }
                    do throws(HexlistError) {
                        if prepared.isFull {
                            full.append(prepared)
                            prepared = PreparedHexes()
                        }
                        try preparer.prepare(
                            hex.content, key: hex.key, line: number, at: Timestamp.now.milliseconds, into: &prepared)
                    } catch {
                        return refuse(BulkRefusal(line: number, code: error.code.rawValue, message: error.message))
                    }
                }
                state.withLock { $0.progress.lines += 1 }
            }
            for try await buffer in body {
                prepared = PreparedHexes(room: buffer.readableBytes + buffer.readableBytes / 4)  // the sender's name is added to each hex
                buffer.withUnsafeReadableBytes { splitter.feed($0, take) }
                for hexes in full { await queue.put(hexes) }
                full = []
                if !prepared.isEmpty { await queue.put(prepared) }
                prepared = PreparedHexes()
            }
            guard !Task.isCancelled else { return }
            splitter.finish(take)
            await queue.put(prepared)
        } catch {
            // The caller disconnected: an incomplete line is ignored.
            state.withLock { $0.progress.error = HexlistError(.badRequest, "The connection was closed before the end of the stream.") }
        }
    }

    private func refuse(_ refusal: BulkRefusal) {
        state.withLock { state in
            state.progress.lines += 1
            state.progress.invalid += 1
            if state.refusals.count < Self.refusalLimit { state.refusals.append(refusal) } else { state.progress.untold += 1 }
        }
        changed()
    }

    private func warn(_ warning: BulkWarning) {
        state.withLock { $0.warnings.append(warning) }  // bounded by `BulkLineHints`
        changed()
    }

    /// Moves hexes from the queue to the outbox in batches, until `read` has ended and the queue is empty.
    func accept() async {
        while let batch = await queue.take() {
            let (refused, failure) = await node.outbox.enqueue(batch, for: bulk, timeout: timeout)
            for hex in refused {
                state.withLock { $0.progress.lines -= 1 }  // undoes the count in `read`, because `refuse` counts the line
                refuse(BulkRefusal(line: hex.line, code: hex.error.code.rawValue, message: hex.error.message))
            }
            guard let failure else { continue }
            queue.cancel()
            state.withLock { $0.progress.error = failure }
        }
        state.withLock { $0.progress.isAccepted = true }
        changed()
    }
}
