import HexlistAPI
import HexlistEventLoop
import HexlistStore
import Logging
import NIOCore

/// The hourly maintenance of the store: deletes expired rows and saves the reading of the store's `StoreOpenTimeClock`.
final class StoreMaintenance {
    private var rounds: RepeatedTask?

    /// Runs the maintenance now, and then every hour.
    func start(_ node: isolated Node) {
        round(node)
        rounds = node.eventLoop.scheduleRepeatedTask(initialDelay: .hours(1), delay: .hours(1)) { [weak node] _ in
            node?.assumeIsolated { $0.maintenance.round($0) }
        }
    }

    func stop() { rounds?.cancel() }

    /// Processes a bounded number of rows, and continues at once with the next ones if rows remain.
    private func round(_ node: isolated Node) {
        var limits = RetentionLimits()
        limits.heldDays = node.configuration.limits.heldDays
        node.store.maintain(now: node.clocks.milliseconds, limits: limits) { [node] result in
            switch result {
            case .failure(let error): node.logger.warning("maintenance failed", metadata: ["error": "\(error)"])
            case .success(let report):
                node.onLoop { node in
                    node.maintained(report)
                    if report.isPartial { node.maintenance.round(node) }
                }
            }
        }
    }
}
