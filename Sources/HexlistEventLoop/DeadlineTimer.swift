public import NIOCore

/// A timer that fires at the earliest of the deadlines set since it last fired. The callback may set the next deadline.
///
/// Confined to its event loop, which `set` asserts; that makes it `Sendable`.
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

    /// Calls the host back at `deadline`. Sets nothing for `nil`, and while the host is stopping.
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
