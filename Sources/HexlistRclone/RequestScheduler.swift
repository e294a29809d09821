import HexlistModel
import Synchronization

/// The shell of a `RequestQueue`: callers wait for their turn in their own tasks, and cancel by these.
final class RequestScheduler: Sendable {
    private struct State {
        var queue = RequestQueue()
        /// Requests whose turn has come before they asked for it.
        var turns: Set<RequestID> = []
        var waiting: [RequestID: CheckedContinuation<Void, any Error>] = [:]

        /// Gives turns to requests that begin.
        mutating func begin(_ ids: [RequestID]) -> [CheckedContinuation<Void, any Error>] {
            ids.compactMap { id in
                let waits = waiting.removeValue(forKey: id)
                if waits == nil { turns.insert(id) }
                return waits
            }
        }
    }

    private let state = Mutex(State())
    private let sleep: @Sendable (Duration) async throws -> Void

    /// - Parameter sleep: waits for the time between two attempts.
    init(sleep: @escaping @Sendable (Duration) async throws -> Void) { self.sleep = sleep }

    var count: Int { state.withLock { $0.queue.count } }

    /// Carries out a request: waits for a place, and attempts it again after failures that may pass.
    /// - Throws: `RcloneFault`; `CancellationError` when the task is cancelled, whatever comes of the attempt then.
    func perform<Answer: Sendable>(
        _ key: RequestKey, force: Bool, _ attempt: @Sendable () async throws -> Answer
    ) async throws -> Answer {
        let now = ContinuousClock.now
        let (admission, begun) = state.withLock { state in
            let (admission, begin) = state.queue.add(key, force: force, now: now)
            return (admission, state.begin(begin))
        }
        for waits in begun { waits.resume() }
        switch admission {
        case .paused(let until): throw RcloneFault.paused(seconds: max(1, (until - now).components.seconds))
        case .full: throw RcloneFault.tooMany("As many requests wait for this service as may.")
        case .taken(let id):
            return try await withTaskCancellationHandler {
                try await perform(id, attempt)
            } onCancel: {
                cancel(id)
            }
        }
    }

    private func perform<Answer: Sendable>(_ id: RequestID, _ attempt: @Sendable () async throws -> Answer) async throws -> Answer {
        while true {
            try await turn(of: id)
            let result: Result<Answer, any Error>
            do { result = .success(try await attempt()) } catch { result = .failure(error) }
            switch ended(id, Self.outcome(result)) {
            case .dropped: throw CancellationError()
            case .over: return try result.get()
            case .again(let pause):
                try await sleep(pause)
                resume { $0.queue.ready(id) }
            }
        }
    }

    private static func outcome(_ result: Result<some Sendable, any Error>) -> RequestQueue.Outcome {
        switch result {
        case .success: .done
        case .failure(let fault as RcloneFault): fault.mayPass ? .mayPass : .final
        case .failure: .final
        }
    }

    private func turn(of id: RequestID) async throws {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            let answer: Result<Void, any Error>? = state.withLock { state in
                if state.turns.remove(id) != nil { return .success(()) }
                guard state.queue.contains(id) else { return .failure(CancellationError()) }
                state.waiting[id] = continuation
                return nil
            }
            if let answer { continuation.resume(with: answer) }
        }
    }

    private func ended(_ id: RequestID, _ outcome: RequestQueue.Outcome) -> RequestQueue.Verdict {
        let (verdict, begun) = state.withLock { state in
            let (verdict, begin) = state.queue.ended(id, outcome, now: .now)
            return (verdict, state.begin(begin))
        }
        for waits in begun { waits.resume() }
        return verdict
    }

    private func cancel(_ id: RequestID) {
        let own = state.withLock { state in
            state.turns.remove(id)
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
