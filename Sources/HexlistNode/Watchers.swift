import Synchronization

/// Broadcasts changes of a node to any number of streams. Can be used from any thread.
final class Watchers: Sendable {
    private struct State: Sendable {
        var all: [UInt64: AsyncStream<Void>.Continuation] = [:]
        var next: UInt64 = 0
        /// Whether the node has stopped.
        var isFinished = false
    }

    private let state = Mutex(State())

    /// A stream with an element after each `notify`. Notifications are coalesced. Ends with `finish`.
    func changes() -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let key: UInt64? = state.withLock { state in
            guard !state.isFinished else { return nil }
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

    /// Ends all streams, also those created later.
    func finish() {
        // Ends the streams outside the lock, because `onTermination` acquires it.
        let ended = state.withLock { state in
            defer { state = State(isFinished: true) }
            return state.all
        }
        for watcher in ended.values { watcher.finish() }
    }
}
