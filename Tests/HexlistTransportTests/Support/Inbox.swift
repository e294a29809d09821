import NIOCore
import Synchronization

/// Values from any thread, awaited one by one. The tests' time limit bounds the wait.
final class Inbox<Value: Sendable>: Sendable {
    private struct State {
        var values: [Value] = []
        var waiting: [CheckedContinuation<Value, Never>] = []
    }

    private let state = Mutex(State())

    func put(_ value: Value) {
        let waiting = state.withLock { state -> CheckedContinuation<Value, Never>? in
            guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
            state.values.append(value)
            return nil
        }
        waiting?.resume(returning: value)
    }

    func next() async -> Value {
        await withCheckedContinuation { continuation in
            let value = state.withLock { state -> Value? in
                guard state.values.isEmpty else { return state.values.removeFirst() }
                state.waiting.append(continuation)
                return nil
            }
            if let value { continuation.resume(returning: value) }
        }
    }

    /// What has come and was not taken.
    var now: [Value] { state.withLock { $0.values } }
}
