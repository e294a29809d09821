import NIOCore

#if canImport(Glibc)
    import Glibc
#endif

/// Notifies systemd regularly that an event loop is running (sd_watchdog_enabled(3)). If the loop hangs, systemd restarts the daemon.
struct Watchdog: Sendable {
    private let interval: TimeAmount
    private let notifier: SystemdNotifier

    /// Returns `nil` if systemd expects no notifications from this process.
    init?(environment: [String: String], notifier: SystemdNotifier, pid: pid_t = getpid()) {
        guard let microseconds = environment["WATCHDOG_USEC"].flatMap(Int64.init), microseconds > 1,
            environment["WATCHDOG_PID"].map({ $0 == "\(pid)" }) ?? true
        else { return nil }
        interval = .microseconds(microseconds / 2)
        self.notifier = notifier
    }

    /// Notifies systemd immediately, then twice per watchdog interval of systemd, until the loop ends.
    func watch(_ loop: any EventLoop) {
        loop.scheduleRepeatedTask(initialDelay: .zero, delay: interval) { [notifier] _ in notifier.send(.alive) }
    }
}
