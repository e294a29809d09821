import HexlistAPI

@testable import HexlistStore

extension StoreWriter {
    /// A round of maintenance as it will be once the daemon has run for some milliseconds more.
    func maintain(after milliseconds: Int64) throws -> MaintenanceReport {
        lived += milliseconds
        return try maintain(now: Timestamp.now.milliseconds)
    }
}
