internal import NIOCore
internal import NIOPosix

/// Runs connections and tasks on the calling thread alone. For one or two requests, starting and waking other threads would take longer
/// than the work.
public enum MainLoop {
    /// Runs `body`. While it blocks the thread, for instance reading from a terminal, connections and tasks do not progress.
    public static func run(_ body: @escaping @Sendable () async -> Never) -> Never {
        MultiThreadedEventLoopGroup.withCurrentThreadAsEventLoop { loop in
            // Nothing awaits this task: `body` ends the program.
            Task(executorPreference: Executor(loop: loop)) { await body() }
        }
        // Not reached: the call above only returns after a shutdown of the loop.
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
