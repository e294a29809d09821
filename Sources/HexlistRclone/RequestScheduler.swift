import HexlistModel
import Synchronization

/// Runs requests as a `RequestQueue` decides. Each request waits for a slot in the task of its caller; cancelling that task cancels the
/// request.
final class RequestScheduler: Sendable {
    private struct State {
        var queue = RequestQueue()
        /// Requests with a slot whose tasks do not wait for it yet.
        var slotHolders: Set<RequestID> = []
        var waiting: [RequestID: CheckedContinuation<Void, any Error>] = [:]

        /// Records that requests got slots.
        /// - Returns: the continuations to resume, of those requests whose tasks already wait.
        mutating func begin(_ ids: [RequestID]) -> [CheckedContinuation<Void, any Error>] {
            ids.compactMap { id in
                let waits = waiting.removeValue(forKey: id)
                if waits == nil { slotHolders.insert(id) }
                return waits
            }
        }
    }

    private let state = Mutex(State())
    private let sleep: @Sendable (Duration) async throws -> Void

    /// - Parameter sleep: waits between two attempts.
    init(sleep: @escaping @Sendable (Duration) async throws -> Void) { self.sleep = sleep }

    var count: Int { state.withLock { $0.queue.count } }

    /// Runs a request: waits for a slot, and retries after temporary failures.
    /// - Throws: `RcloneFault`; `CancellationError` if the task is cancelled, even if the attempt succeeds.
    func perform<Answer: Sendable>(
        _ key: SuspendedRequestKey, force: Bool, _ attempt: @Sendable () async throws -> Answer
    ) async throws -> Answer {
        let now = ContinuousClock.now
        let (admission, begun) = state.withLock { state in
            let (admission, begin) = state.queue.add(key, force: force, now: now)
            return (admission, state.begin(begin))
        }
        for waits in begun { waits.resume() }
        switch admission {
        case .paused(let until): throw RcloneFault.paused(seconds: max(1, (until - now).components.seconds))
        case .full: throw RcloneFault.tooMany("Too many requests are waiting for this service.")
        case .accepted(let id):
            return try await withTaskCancellationHandler {
                try await perform(id, attempt)
            } onCancel: {
                cancel(id)
            }
        }
    }

    private func perform<Answer: Sendable>(_ id: RequestID, _ attempt: @Sendable () async throws -> Answer) async throws -> Answer {
        while true {
            try await waitForSlot(of: id)
            let result: Result<Answer, any Error>
            do { result = .success(try await attempt()) } catch { result = .failure(error) }
            switch ended(id, Self.attemptResult(result)) {
            case .dropped: throw CancellationError()
            case .finished: return try result.get()
            case .retry(let pause):
                try await sleep(pause)
                resume { $0.queue.ready(id) }
            }
        }
    }

    private static func attemptResult(_ result: Result<some Sendable, any Error>) -> RequestQueue.AttemptResult {
        switch result {
        case .success: .done
        case .failure(let fault as RcloneFault): fault.isTemporary ? .temporaryFailure : .final
        case .failure: .final
        }
    }

    private func waitForSlot(of id: RequestID) async throws {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            let answer: Result<Void, any Error>? = state.withLock { state in
                if state.slotHolders.remove(id) != nil { return .success(()) }
                guard state.queue.contains(id) else { return .failure(CancellationError()) }
                state.waiting[id] = continuation
                return nil
            }
            if let answer { continuation.resume(with: answer) }
        }
    }

    private func ended(_ id: RequestID, _ result: RequestQueue.AttemptResult) -> RequestQueue.NextStep {
        let (next, begun) = state.withLock { state in
            let (next, begin) = state.queue.ended(id, result, now: .now)
            return (next, state.begin(begin))
        }
        for waits in begun { waits.resume() }
        return next
    }

    private func cancel(_ id: RequestID) {
        let own = state.withLock { state in
            state.slotHolders.remove(id)
            return state.waiting.removeValue(forKey: id)
        }
        own?.resume(throwing: CancellationError())
        resume { $0.queue.cancel(id) }
    }

    private func resume(_ change: (inout State) -> [RequestID]) {
        let begun = state.withLock { state in
            let begin = change(&state)
            return state.begin(begin)
        }
        for waits in begun { waits.resume() }
    }
}
