import Synchronization

/// The callers that wait for changes of a node. Each has a stream of its own, until it ends it or the node stops.
final class Watchers: Sendable {
    private struct State: Sendable {
        var all: [UInt64: AsyncStream<Void>.Continuation] = [:]
        var next: UInt64 = 0
        /// Whether the node has stopped.
        var areOver = false
    }

    private let state = Mutex(State())

    /// A stream with an element for each `notify`; only the newest is buffered. Ends with `finish`.
    func changes() -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let key: UInt64? = state.withLock { state in
            guard !state.areOver else { return nil }
            state.next += 1
            state.all[state.next] = continuation
            return state.next
        }
        guard let key else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in
            self?.state.withLock { _ = $0.all.removeValue(forKey: key) }
        }
        return stream
    }

    func notify() {
        let all = state.withLock { Array($0.all.values) }
        for watcher in all { watcher.yield() }
    }

    /// Ends all streams, and each that is asked for later.
    func finish() {
        // Ended outside the lock: ending calls `onTermination`, which takes it.
        let ended = state.withLock { state in
            defer { state = State(areOver: true) }
            return state.all
        }
        for watcher in ended.values { watcher.finish() }
    }
}
