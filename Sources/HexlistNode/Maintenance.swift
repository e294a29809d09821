import HexlistAPI
import HexlistStore
import Logging
import NIOCore

protocol MaintenanceHost: NodeHost {
    var maintenance: Maintenance { get }
    /// A round is over.
    func maintained(_ report: MaintenanceReport)
}

/// The hourly round through the store that drops what is too old.
final class Maintenance {
    private var rounds: RepeatedTask?
    private var jumps = ClockJumps()

    /// Begins with a round.
    func start(_ host: isolated some MaintenanceHost) {
        round(host)
        rounds = host.eventLoop.scheduleRepeatedTask(initialDelay: .hours(1), delay: .hours(1)) { [weak host] _ in
            host?.assumeIsolated { $0.maintenance.round($0) }
        }
    }

    func stop() { rounds?.cancel() }

    /// Runs one bounded round, and another if that was not all. Deadlines in the store are of the wall clock; when it jumps they are moved.
    private func round(_ host: isolated some MaintenanceHost) {
        let wall = Timestamp.now.milliseconds
        let jump = jumps.jump(wall: wall, steady: .now)
        var limits = RetentionLimits()
        limits.heldDays = host.configuration.limits.heldDays
        host.store.maintain(now: wall, jump: jump, limits: limits) { [host] result in
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

/// Detects by how much the wall clock was set between two looks at it.
struct ClockJumps {
    /// The least milliseconds of a jump; less is the clock's drift, or a small correction.
    static let least: Int64 = 3_600_000

    private var last: (wall: Int64, steady: ContinuousClock.Instant)?

    /// - Parameter wall: milliseconds since 1970, at `steady`.
    /// - Returns: milliseconds, with the sign of the change; 0 at the first look and for less than `least`.
    mutating func jump(wall: Int64, steady: ContinuousClock.Instant) -> Int64 {
        defer { last = (wall, steady) }
        guard let last else { return 0 }
        let jump = wall - last.wall - (steady - last.steady).milliseconds
        return abs(jump) < Self.least ? 0 : jump
    }
}
