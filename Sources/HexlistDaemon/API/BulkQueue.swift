import HexlistStore
import Synchronization

/// The bounded queue between reading a bulk stream and storing it. Hexes read while a batch is being stored become the next batch. One
/// producer, one consumer.
final class BulkQueue: Sendable {
    /// Limits above which `put` waits. A batch, with the last items put, is stored in one transaction.
    private static let (hexes, bytes) = (1_024, 1 << 20)

    private struct State {
        /// Groups of at most one outbox pack each.
        var hexes: [PreparedHexes] = []
        var count = 0
        var bytes = 0
        var isEnded = false
        var isCancelled = false
        var putter: CheckedContinuation<Void, Never>?
        var taker: CheckedContinuation<Void, Never>?

        var isFull: Bool { count >= BulkQueue.hexes || bytes >= BulkQueue.bytes }
    }

    private let state = Mutex(State())

    /// Adds hexes. Returns once the queue is below its limits.
    func put(_ hexes: PreparedHexes) async {
        let taker = state.withLock { state in
            guard !state.isCancelled else { return nil as CheckedContinuation<Void, Never>? }
            state.count += hexes.count
            state.bytes += hexes.bodies.count
            if state.hexes.last?.hasRoom(for: hexes) ?? false {
                state.hexes[state.hexes.count - 1].append(hexes)
            } else if !hexes.isEmpty {
                state.hexes.append(hexes)
            }
            defer { state.taker = nil }
            return state.taker
        }
        taker?.resume()
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let waits = state.withLock { state in
                    guard state.isFull, !state.isCancelled else { return false }
                    state.putter = continuation
                    return true
                }
                if !waits { continuation.resume() }
            }
        } onCancel: {
            cancel()
        }
    }

    /// Ends the input.
    func end() {
        let taker = state.withLock { state in
            state.isEnded = true
            defer { state.taker = nil }
            return state.taker
        }
        taker?.resume()
    }

    /// Cancels the queue, and resumes both sides.
    func cancel() {
        let waiting = state.withLock { state in
            state.isCancelled = true
            defer { (state.putter, state.taker) = (nil, nil) }
            return [state.putter, state.taker]
        }
        for continuation in waiting { continuation?.resume() }
    }

    /// Waits for hexes and removes all of them; `nil` after the last.
    func take() async -> [PreparedHexes]? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let waits = state.withLock { state in
                    guard state.hexes.isEmpty, !state.isEnded, !state.isCancelled else { return false }
                    state.taker = continuation
                    return true
                }
                if !waits { continuation.resume() }
            }
        } onCancel: {
            cancel()
        }
        let (hexes, putter) = state.withLock { state in
            defer { (state.hexes, state.count, state.bytes, state.putter) = ([], 0, 0, nil) }
            return (state.isCancelled ? [] : state.hexes, state.putter)
        }
        putter?.resume()
        return hexes.isEmpty ? nil : hexes
    }
}
