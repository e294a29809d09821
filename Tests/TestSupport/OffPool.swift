internal import Dispatch
public import Testing

/// Runs a test outside of the thread pool that all tests share. For a test that computes for seconds without a suspension: two of them occupy
/// the pool of a machine with two cores, and every task of the other tests waits for them.
public struct OffPool: TestTrait, TestScoping {
    private final class Executor: TaskExecutor {
        private let queue = DispatchQueue(label: "tests that compute", attributes: .concurrent)

        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
        }
    }

    private static let executor = Executor()

    public func provideScope(for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void) async throws {
        try await withTaskExecutorPreference(Self.executor) { try await function() }
    }
}

extension Trait where Self == OffPool {
    public static var offPool: Self { Self() }
}
