import HexlistStore
import Synchronization

/// Hexes on their way from the stream they came in to the outbox: what is read while a batch is being stored makes the
/// next one. One task puts, one takes.
final class BulkQueue: Sendable {
    /// Hexes, and bytes of them, from which no more are taken in. With the last that were put they go into the outbox in one transaction.
    private static let (hexes, bytes) = (1_024, 1 << 20)

    private struct State {
        /// Each as many as one pack of the outbox has, or what came together.
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

    /// Returns once there is room for more.
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

    /// No more will come.
    func end() {
        let taker = state.withLock { state in
            state.isEnded = true
            defer { state.taker = nil }
            return state.taker
        }
        taker?.resume()
    }

    /// Cancels the queue, and ends the waits of the putter and the taker.
    func cancel() {
        let waiting = state.withLock { state in
            state.isCancelled = true
            defer { (state.putter, state.taker) = (nil, nil) }
            return [state.putter, state.taker]
        }
        for continuation in waiting { continuation?.resume() }
    }

    /// All hexes that are there, as soon as there are any; `nil` after the last.
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
