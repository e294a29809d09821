import HexlistStore
import Synchronization

/// A bounded queue between the task that reads a bulk stream and the task that stores its hexes. `take` removes all queued hexes as one
/// batch, so the hexes read while a batch is being stored form the next batch. One producer, one consumer.
final class BulkQueue: Sendable {
    /// The number of hexes and of bytes at which the queue is full. `put` adds its hexes first, and then waits while the queue is full, so
    /// a batch can exceed the limits by the hexes of one `put`. Each batch is stored in one transaction.
    private static let (hexes, bytes) = (1_024, 1 << 20)

    private struct State {
        /// The queued hexes, in groups that each fit into one outbox pack.
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

    /// Adds hexes, and waits until the queue is below its limits. Does nothing after `cancel`.
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

    /// Marks the end of the input. The next `take` returns the rest of the hexes, further ones return `nil`.
    func end() {
        let taker = state.withLock { state in
            state.isEnded = true
            defer { state.taker = nil }
            return state.taker
        }
        taker?.resume()
    }

    /// Cancels the queue, and resumes a waiting producer and consumer.
    func cancel() {
        let waiting = state.withLock { state in
            state.isCancelled = true
            defer { (state.putter, state.taker) = (nil, nil) }
            return [state.putter, state.taker]
        }
        for continuation in waiting { continuation?.resume() }
    }

    /// Waits until there are hexes, then removes and returns all of them. Returns `nil` at the end of the input, or after `cancel`.
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
