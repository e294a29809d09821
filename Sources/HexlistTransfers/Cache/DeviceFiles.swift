public import HexlistFiles
public import HexlistModel
public import HexlistStore

/// The files that LocalSend devices send to this machine. They are received into a separate folder, and become kept files of the hex that
/// links to them. Calls block, so they run on the file threads.
public struct DeviceFiles: Sendable {
    /// Maximum bytes of all files in the folder.
    public static let totalBytes: Int64 = 16 << 30

    private let pool: FilePool
    private let store: HexStore

    init(_ pool: FilePool, _ store: HexStore) { (self.pool, self.store) = (pool, store) }

    public var folder: ArrivalFolder { pool.arrivals }

    /// Returns the records of a session whose files exist. If none exists, the records are deleted.
    /// - Parameter rows: the records of one session.
    public func present(_ rows: [ArrivalRow]) throws -> [ArrivalRow] {
        let present = rows.filter { pool.hasFile(ArrivedFile($0), in: folder) }
        if present.isEmpty, let session = rows.first?.session { try store.dropArrivals(of: session) }
        return present
    }

    /// Stores the hex of a session, together with its files.
    /// - Parameters:
    ///   - rows: the records of the session's files, at least one.
    ///   - hex: the hex, whose links lead to the files.
    ///   - now: milliseconds since 1970.
    /// - Returns: whether the hex was stored.
    public func finish(
        _ rows: [ArrivalRow], as hex: IncomingHex, from sender: Sender, at now: Int64, policy: StrangerHexPolicy, quotas: HeldQuotas
    ) throws -> Bool {
        guard let session = rows.first?.session else { return false }
        // The disk reserve was already checked, before the files were accepted.
        return try pool.adopt(rows.map(ArrivedFile.init), from: folder) { files in
            try store.finishArrivals(of: session, as: hex, files, from: sender, at: now, policy: policy, quotas: quotas, diskReserve: 0)
        } != nil
    }

    /// Deletes the files of sessions that have no record. They exist if a process was killed.
    public func removeOthers() throws {
        let known = Set(try store.readSync { try $0.arrivals() }.map(\.session))
        for session in folder.sessions() where !known.contains(session) { folder.remove(session) }
    }
}

extension FileTransfers {
    /// The files that LocalSend devices send.
    public nonisolated var deviceFiles: DeviceFiles { DeviceFiles(pool, store) }
}
