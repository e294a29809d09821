import NIOCore

/// A timer for a deadline that moves: it fires at the earliest instant set since it fired last. The callee sets the next one.
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
        let task = eventLoop.schedule(at: deadline) {
            self.timer = nil
            goesOff()
        }
        timer = (task, deadline)
    }

    /// Calls the host back at `deadline`. Sets nothing for `nil`, and while the host stops.
    func set<Host: NodeHost>(_ deadline: Instant?, _ host: isolated Host, goesOff: @escaping @Sendable (isolated Host) -> Void) {
        guard let deadline, !host.isStopping else { return }
        set(deadline) { [weak host] in host?.assumeIsolated { goesOff($0) } }
    }

    func cancel() {
        timer?.task.cancel()
        timer = nil
    }
}
