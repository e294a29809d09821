public import HexlistFiles
public import HexlistModel
public import HexlistStore

/// The files that guests and drop tokens upload, in a separate folder until the hex with them is stored. Files of devices have records in
/// the store. These have none, because uploads end with the process. Calls block, so they run on the file threads.
public struct GuestFiles: Sendable {
    private let pool: FilePool
    private let store: HexStore

    fileprivate init(_ pool: FilePool, _ store: HexStore) { (self.pool, self.store) = (pool, store) }

    public var folder: ArrivalFolder { pool.guestArrivals }

    /// Stores a hex, and its files as kept files, in one transaction. The files are deleted with the hex.
    /// - Parameters:
    ///   - policy: `held` to store it as a held hex, otherwise in the inbox.
    ///   - now: milliseconds since 1970.
    ///   - diskReserve: bytes that must stay free on the disk.
    /// - Returns: the id of the hex; `nil` if it was refused permanently, in which case the files are deleted.
    /// - Throws: `HexlistError` `storageFull`; errors of the store and of the files. The hex can be stored by a later call.
    public func receive(
        _ files: [ArrivedFile], as hex: IncomingHex, from sender: Sender, at now: Int64, policy: StrangerHexPolicy, quotas: HeldQuotas,
        diskReserve: Int64
    ) throws -> Int64? {
        try pool.adopt(files, from: folder) { kept in
            try store.finishArrivals(
                of: nil, as: hex, kept, from: sender, at: now, policy: policy, quotas: quotas, diskReserve: diskReserve)
        }
    }

    /// Stores a hex of a drop token, and its files as kept files, in one transaction, unless the hex was stored before. If it is not
    /// stored, the files are deleted; otherwise they are deleted with the hex.
    /// - Parameters: see `HexStore.finishDrop`.
    public func receiveDrop(
        _ files: [ArrivedFile], as hex: IncomingHex, earlier: MessageID?, from sender: Sender, at now: Int64, quotas: HeldQuotas,
        diskReserve: Int64
    ) throws -> DropResult {
        var result = DropResult.removed
        do {
            _ = try pool.adopt(files, from: folder) { kept in
                result = try store.finishDrop(
                    as: hex, kept, earlier: earlier, from: sender, at: now, quotas: quotas, diskReserve: diskReserve)
                if case .stored(let id) = result { return id }
                return nil
            }
        } catch {
            for session in Set(files.map(\.session)) { folder.remove(session) }
            try pool.reconcile()
            throw error
        }
        return result
    }

    /// Deletes the files of earlier processes.
    public func removeAll() {
        for session in folder.sessions() { folder.remove(session) }
    }
}

extension FileTransfers {
    public nonisolated var guestFiles: GuestFiles { GuestFiles(pool, store) }
}
