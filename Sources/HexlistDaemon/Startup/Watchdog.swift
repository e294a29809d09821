import NIOCore

#if canImport(Glibc)
    import Glibc
#endif

/// Shows systemd that an event loop turns (sd_watchdog_enabled(3)): a loop that hangs says nothing, and the daemon is started again.
struct Watchdog: Sendable {
    private let interval: TimeAmount
    private let notifier: SystemdNotifier

    /// - Returns: `nil` where systemd does not ask this process for it.
    init?(environment: [String: String], notifier: SystemdNotifier, pid: pid_t = getpid()) {
        guard let microseconds = environment["WATCHDOG_USEC"].flatMap(Int64.init), microseconds > 1,
            environment["WATCHDOG_PID"].map({ $0 == "\(pid)" }) ?? true
        else { return nil }
        interval = .microseconds(microseconds / 2)
        self.notifier = notifier
    }

    /// A sign of life at once, and another one each half of the time that systemd waits for one, until the loop ends.
    func watch(_ loop: any EventLoop) {
        loop.scheduleRepeatedTask(initialDelay: .zero, delay: interval) { [notifier] _ in notifier.tell(.alive) }
    }
}
