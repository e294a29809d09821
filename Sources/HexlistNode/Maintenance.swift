import HexlistAPI
import HexlistEventLoop
import HexlistStore
import Logging
import NIOCore

protocol MaintenanceHost: NodeHost {
    var maintenance: Maintenance { get }
    /// A round is over.
    func maintained(_ report: MaintenanceReport)
}

/// The hourly maintenance of the store: drops expired rows and saves the lived time.
final class Maintenance {
    private var rounds: RepeatedTask?

    /// Begins with a round.
    func start(_ host: isolated some MaintenanceHost) {
        round(host)
        rounds = host.eventLoop.scheduleRepeatedTask(initialDelay: .hours(1), delay: .hours(1)) { [weak host] _ in
            host?.assumeIsolated { $0.maintenance.round($0) }
        }
    }

    func stop() { rounds?.cancel() }

    /// Runs one bounded round, and another if that was not all.
    private func round(_ host: isolated some MaintenanceHost) {
        var limits = RetentionLimits()
        limits.heldDays = host.configuration.limits.heldDays
        host.store.maintain(now: host.clocks.milliseconds, limits: limits) { [host] result in
            switch result {
            case .failure(let error): host.logger.warning("maintenance failed", metadata: ["error": "\(error)"])
            case .success(let report):
                host.onLoop { host in
                    host.maintained(report)
                    if report.isPartial { host.maintenance.round(host) }
                }
            }
        }
    }
}
