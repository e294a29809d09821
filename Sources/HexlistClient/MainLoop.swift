internal import NIOCore
internal import NIOPosix

/// The calling thread as the only one: the loop of the connections, which runs tasks between their events. For a request or two it takes longer
/// to start other threads, and to wake one for each step, than the steps take.
public enum MainLoop {
    /// Runs `body`. Where that blocks the thread, as on a terminal, its connections and tasks stand still.
    public static func run(_ body: @escaping @Sendable () async -> Never) -> Never {
        MultiThreadedEventLoopGroup.withCurrentThreadAsEventLoop { loop in
            // Nobody can await it, nor has to: `body` ends the program.
            Task(executorPreference: Executor(loop: loop)) { await body() }
        }
        // Not reached, whatever a user or the daemon does: the call above returns once the loop is shut down, which nothing here does.
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
