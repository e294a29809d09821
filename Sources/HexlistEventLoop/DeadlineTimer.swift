public import NIOCore

/// A timer that fires at the earliest of the deadlines set since it last fired, and calls the callback that was set with this deadline. The
/// callback may set the next deadline.
///
/// Must be used on its event loop only, so it can be declared `Sendable`. `set` asserts this.
public final class DeadlineTimer: @unchecked Sendable {
    public typealias Instant = ContinuousClock.Instant

    private let eventLoop: any EventLoop
    private let clocks: Clocks
    private var timer: (task: Scheduled<Void>, at: Instant)?

    public init(on eventLoop: any EventLoop, _ clocks: Clocks) {
        self.eventLoop = eventLoop
        self.clocks = clocks
    }

    public func set(_ deadline: Instant, onFire: @escaping @Sendable () -> Void) {
        eventLoop.assertInEventLoop()
        if let timer, timer.at <= deadline { return }
        timer?.task.cancel()
        let task = eventLoop.schedule(at: deadline, clocks) {
            self.timer = nil
            onFire()
        }
        timer = (task, deadline)
    }

    /// Sets the timer, which then calls `onFire` with the host. Does nothing if `deadline` is `nil` or the host is stopping.
    public func set<Host: EventLoopActor>(
        _ deadline: Instant?, _ host: isolated Host, onFire: @escaping @Sendable (isolated Host) -> Void
    ) {
        guard let deadline, !host.isStopping else { return }
        set(deadline) { [weak host] in host?.assumeIsolated { onFire($0) } }
    }

    public func cancel() {
        timer?.task.cancel()
        timer = nil
    }
}
