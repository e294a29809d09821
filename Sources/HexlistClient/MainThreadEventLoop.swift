internal import NIOCore
internal import NIOPosix

/// Runs all connections and tasks on the calling thread. For one or two requests, starting and waking other threads would take longer than
/// the requests themselves.
public enum MainThreadEventLoop {
    /// Runs `body` on the calling thread. While `body` blocks the thread, for instance by reading from a terminal, no connection or task
    /// makes progress.
    public static func run(_ body: @escaping @Sendable () async -> Never) -> Never {
        MultiThreadedEventLoopGroup.withCurrentThreadAsEventLoop { loop in
            // Nothing awaits this task, because `body` ends the program.
            Task(executorPreference: Executor(loop: loop)) { await body() }
        }
        // Unreachable: the call above returns only after a shutdown of the event loop, which never happens.
        fatalError("The loop of the main thread ended before the program.")
    }

    private final class Executor: TaskExecutor {
        private let loop: any EventLoop

        init(loop: any EventLoop) { self.loop = loop }

        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            loop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
        }
    }
}
