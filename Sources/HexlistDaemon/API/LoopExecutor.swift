import NIOCore

/// Runs tasks on an event loop, between its other work. A connection's task on the loop of its channel crosses no thread for each part of a
/// request, and none on its way into the node where that is the node's loop.
final class LoopExecutor: TaskExecutor {
    private let loop: any EventLoop

    init(_ loop: any EventLoop) { self.loop = loop }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        loop.execute { [self] in job.runSynchronously(on: asUnownedTaskExecutor()) }
    }
}
