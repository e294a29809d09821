internal import Dispatch
public import Testing

/// Runs a test outside of the tests' common thread pool. For tests that compute for seconds without suspension: two of them occupy the pool
/// of a machine with two cores, and block all other tests' tasks.
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
