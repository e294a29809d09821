import NIOCore

/// A task executor that runs jobs on an event loop. It runs the task of a connection on the loop of its channel, which may be the node's,
/// without a thread switch.
final class LoopExecutor: TaskExecutor {
    private let loop: any EventLoop

    init(_ loop: any EventLoop) { self.loop = loop }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        loop.execute { [self] in job.runSynchronously(on: asUnownedTaskExecutor()) }
    }
}
