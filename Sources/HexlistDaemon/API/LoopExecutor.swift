import NIOCore

/// A task executor that runs jobs on an event loop. With it, the task of a connection runs on the loop of its channel. If that is also the
/// node's loop, a request needs no thread switch.
final class LoopExecutor: TaskExecutor {
    private let loop: any EventLoop

    init(_ loop: any EventLoop) { self.loop = loop }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        loop.execute { [self] in job.runSynchronously(on: asUnownedTaskExecutor()) }
    }
}
