import HexlistNode
import HexlistStore
import Synchronization

/// Hexes on their way from the stream they came in to the outbox: what is read while a batch is being stored makes the
/// next one. One task puts, one takes.
final class BulkQueue: Sendable {
    /// Hexes, and bytes of them, from which no more are taken in.
    private static let hexes = 2_048
    private static let bytes = 4 << 20

    private struct State {
        var hexes: [PreparedHex] = []
        var bytes = 0
        var isEnded = false
        var isCancelled = false
        var putter: CheckedContinuation<Void, Never>?
        var taker: CheckedContinuation<Void, Never>?

        var isFull: Bool { hexes.count >= BulkQueue.hexes || bytes >= BulkQueue.bytes }
    }

    private let state = Mutex(State())

    /// Returns once there is room for more.
    func put(_ hexes: [PreparedHex]) async {
        let taker = state.withLock { state in
            guard !state.isCancelled else { return nil as CheckedContinuation<Void, Never>? }
            state.bytes += hexes.reduce(0) { $0 + $1.body.count }
            if state.hexes.isEmpty { state.hexes = hexes } else { state.hexes += hexes }
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

    /// The next hexes, as soon as there are any; `nil` after the last.
    /// - Parameter limit: at most.
    func take(_ limit: Int) async -> [PreparedHex]? {
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
            let hexes = state.isCancelled ? [] : state.hexes.count <= limit ? state.hexes : Array(state.hexes.prefix(limit))
            if hexes.count == state.hexes.count { state.hexes = [] } else { state.hexes.removeFirst(hexes.count) }
            state.bytes -= hexes.reduce(0) { $0 + $1.body.count }
            guard !state.isFull else { return (hexes, nil as CheckedContinuation<Void, Never>?) }
            defer { state.putter = nil }
            return (hexes, state.putter)
        }
        putter?.resume()
        return hexes.isEmpty ? nil : hexes
    }
}
