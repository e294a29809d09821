import NIOCore

/// One timer for a deadline that moves: it goes off at the earliest of those that were set since it went off last. Whoever it calls
/// says what comes next.
///
/// Confined to its event loop, which `set` asserts; that is what makes it `Sendable`.
final class DeadlineTimer: @unchecked Sendable {
    typealias Instant = ContinuousClock.Instant

    private let eventLoop: any EventLoop
    private var timer: (task: Scheduled<Void>, at: Instant)?

    init(on eventLoop: any EventLoop) { self.eventLoop = eventLoop }

    func set(_ deadline: Instant, goesOff: @escaping @Sendable () -> Void) {
        eventLoop.assertInEventLoop()
        if let timer, timer.at <= deadline { return }
        timer?.task.cancel()
        let task = eventLoop.scheduleTask(in: TimeAmount(max(.zero, deadline - .now))) {
            self.timer = nil
            goesOff()
        }
        timer = (task, deadline)
    }

    func cancel() {
        timer?.task.cancel()
        timer = nil
    }
}
