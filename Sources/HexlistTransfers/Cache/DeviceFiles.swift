public import HexlistFiles
public import HexlistModel
public import HexlistStore

/// The files that LocalSend devices send to this machine: received into a folder of their own, then kept with their hex. Calls block, and
/// run on the file threads.
public struct DeviceFiles: Sendable {
    /// Maximum bytes of the files of all sessions together.
    public static let totalBytes: Int64 = 16 << 30

    private let pool: FilePool
    private let store: HexStore

    init(_ pool: FilePool, _ store: HexStore) { (self.pool, self.store) = (pool, store) }

    public var folder: ArrivalFolder { pool.arrivals }

    /// Returns the records whose files exist. Deletes the records of the session if none of its files exists.
    public func present(_ rows: [ArrivalRow]) throws -> [ArrivalRow] {
        let present = rows.filter { pool.hasFile(ArrivedFile($0), in: folder) }
        if present.isEmpty, let session = rows.first?.session { try store.dropArrivals(of: session) }
        return present
    }

    /// Stores the hex of a session with its files.
    /// - Parameters:
    ///   - rows: the files of the session, at least one.
    ///   - hex: the hex whose links lead to them.
    ///   - now: milliseconds since 1970.
    /// - Returns: whether the hex was stored.
    public func finish(
        _ rows: [ArrivalRow], as hex: IncomingHex, from sender: Sender, at now: Int64, policy: ReceivePolicy, quotas: HeldQuotas
    ) throws -> Bool {
        guard let session = rows.first?.session else { return false }
        // The disk reserve was checked before the files were accepted.
        return try pool.adopt(rows.map(ArrivedFile.init), from: folder) { files in
            try store.finishArrivals(of: session, as: hex, files, from: sender, at: now, policy: policy, quotas: quotas, diskReserve: 0)
        } != nil
    }

    /// Deletes the files of sessions without a record, left by a killed process.
    public func removeOthers() throws {
        let known = Set(try store.readSync { try $0.arrivals() }.map(\.session))
        for session in folder.sessions() where !known.contains(session) { folder.remove(session) }
    }
}

extension FileTransfers {
    /// The files that LocalSend devices send.
    public nonisolated var deviceFiles: DeviceFiles { DeviceFiles(pool, store) }
}
