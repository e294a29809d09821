import NIOCore
import Synchronization

/// A queue of values from any thread, awaited one by one. A test's time limit cancels the wait.
final class Inbox<Value: Sendable>: Sendable {
    private struct State {
        var values: [Value] = []
        var waiting: [(id: Int, continuation: CheckedContinuation<Value, any Error>)] = []
        var lastID = 0
    }

    private let state = Mutex(State())

    func put(_ value: Value) {
        let waiting = state.withLock { state -> CheckedContinuation<Value, any Error>? in
            guard state.waiting.isEmpty else { return state.waiting.removeFirst().continuation }
            state.values.append(value)
            return nil
        }
        waiting?.resume(returning: value)
    }

    /// - Throws: `CancellationError`.
    func next() async throws -> Value {
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let result = state.withLock { state -> Result<Value, any Error>? in
                    if !state.values.isEmpty { return .success(state.values.removeFirst()) }
                    if Task.isCancelled { return .failure(CancellationError()) }
                    state.waiting.append((id, continuation))
                    return nil
                }
                if let result { continuation.resume(with: result) }
            }
        } onCancel: {
            let waiting = state.withLock { state -> CheckedContinuation<Value, any Error>? in
                guard let index = state.waiting.firstIndex(where: { $0.id == id }) else { return nil }
                return state.waiting.remove(at: index).continuation
            }
            waiting?.resume(throwing: CancellationError())
        }
    }

    /// The values that have arrived and were not taken.
    var now: [Value] { state.withLock { $0.values } }
}
