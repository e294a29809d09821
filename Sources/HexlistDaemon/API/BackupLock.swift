import Synchronization

/// Lets one backup be made at a time: each takes as much of the disk as the store.
final class BackupLock: Sendable {
    /// The right to make one.
    struct Turn: Sendable { fileprivate init() {} }

    private let isTaken = Mutex(false)

    /// - Returns: `nil` while another one is being made.
    func begin() -> Turn? {
        isTaken.withLock { isTaken in
            defer { isTaken = true }
            return isTaken ? nil : Turn()
        }
    }

    func end(_: Turn) { isTaken.withLock { $0 = false } }
}
