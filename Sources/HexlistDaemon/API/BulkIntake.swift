import HexlistAPI
import HexlistModel
import HexlistNode
import HexlistStore
import HexlistWire
import Hummingbird
import NIOCore
import Synchronization

/// The way in of a stream of hexes: lines are read, decoded and signed by one task, and put into the outbox by another, with a bounded queue
/// between them. Shared with the task that writes the reply.
final class BulkIntake: Sendable {
    /// The lines so far.
    struct Progress: Sendable {
        var lines = 0
        var invalid = 0
        /// Refused lines that are not told: there was no room for them.
        var untold = 0
        /// Whether all lines that came are in the outbox, or were refused.
        var isAccepted = false
        /// The error that ended the stream early.
        var error: HexlistError?
    }

    private struct State: Sendable {
        var progress = Progress()
        var refusals: [BulkRefusal] = []
        var warnings: [BulkWarning] = []
    }

    /// Refused lines that wait to be written, at most; those beyond are counted only.
    private static let refusalLimit = 20_000

    private let node: Node
    private let bulk: OutgoingSend
    private let allowsEmpty: Bool
    /// The longest wait for room in the outbox, in seconds.
    private let timeout: Double
    private let queue = BulkQueue()
    private let state = Mutex(State())
    private let changed: @Sendable () -> Void

    /// - Parameter changed: called whenever the state changed.
    init(node: Node, bulk: OutgoingSend, wishes: BulkReply.Wishes, changed: @escaping @Sendable () -> Void) {
        self.node = node
        self.bulk = bulk
        allowsEmpty = wishes.allowsEmpty
        timeout = wishes.seconds
        self.changed = changed
    }

    var progress: Progress { state.withLock(\.progress) }

    /// The refusals and warnings since the last call.
    func take() -> (refusals: [BulkRefusal], warnings: [BulkWarning]) {
        state.withLock { state in
            defer { (state.refusals, state.warnings) = ([], []) }
            return (state.refusals, state.warnings)
        }
    }

    /// Ends both tasks.
    func cancel() { queue.cancel() }

    /// Reads lines to the end of the body, and puts what is a hex into the queue.
    func read(_ body: RequestBody) async {
        defer { queue.end() }
        do {
            var preparer = try await node.outbox.preparer()
            var decoder = BulkLineDecoder(allowsEmpty: allowsEmpty)
            var splitter = LineSplitter(limit: BulkLineDecoder.lineBytes)
            var hints = MemberHints()
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
                prepared = PreparedHexes(room: buffer.readableBytes + buffer.readableBytes / 4)  // the own name is added
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
            // The caller went away in the middle; a line that is not whole is none.
            state.withLock { $0.progress.error = HexlistError(.badRequest, "The stream of hexes broke off.") }
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
        state.withLock { $0.warnings.append(warning) }  // `MemberHints` gives few
        changed()
    }

    /// Puts what is in the queue into the outbox, batch by batch, until `read` has ended and all is there.
    func accept() async {
        while let batch = await queue.take() {
            let (refused, failure) = await node.outbox.enqueue(batch, for: bulk, timeout: timeout)
            for hex in refused {
                state.withLock { $0.progress.lines -= 1 }  // it was counted when it was read
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
