import Synchronization

/// Allows one backup at a time, because each takes as much disk space as the store.
final class BackupLock: Sendable {
    /// Proof that the caller may make a backup.
    struct Permit: Sendable { fileprivate init() {} }

    private let isTaken = Mutex(false)

    /// Begins a backup. The caller has to pass the permit to `end` afterwards.
    /// - Returns: `nil` while another backup is being made.
    func begin() -> Permit? {
        isTaken.withLock { isTaken in
            defer { isTaken = true }
            return isTaken ? nil : Permit()
        }
    }

    func end(_: Permit) { isTaken.withLock { $0 = false } }
}
