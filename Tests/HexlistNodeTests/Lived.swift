import HexlistAPI

@testable import HexlistStore

extension StoreWriter {
    /// Runs maintenance as if the daemon had run for `milliseconds` longer.
    func maintain(after milliseconds: Int64) throws -> MaintenanceReport {
        lived += milliseconds
        return try maintain(now: Timestamp.now.milliseconds)
    }
}
