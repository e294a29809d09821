import HexlistFiles
import HexlistModel
import HexlistStore

/// The transfers that are in the queue. Each has an `Entry` with the data that the queue, sums and lists need. A whole row may take
/// kilobytes, because peers choose links and folders. Rows in memory take at most `rowBytes`; other rows are read from the store when their
/// attempts start.
struct QueuedTransfers {
    struct Entry {
        let peer: PeerID
        let key: TransferKey
        /// Number of fetched bytes. The store may not have all of them recorded.
        var bytes: Int64
        var size: Int64?
        /// Whether the user has requested a file that was queued for an automatic fetch. The limit for automatic fetches then no longer
        /// applies.
        var isRequested = false
    }

    /// Maximum bytes of the rows in memory, enough for 20 000 files with short names.
    static let rowBytes = 8 << 20

    private(set) var entries: [TransferID: Entry] = [:]
    private var keys: [TransferKey: TransferID] = [:]
    private var counts: [PeerID: Int] = [:]
    private var rows: [TransferID: TransferRow] = [:]
    /// The size of `rows`, in bytes.
    private(set) var keptBytes = 0

    var count: Int { entries.count }

    /// The id of the transfer with this key; `nil` if there is none.
    subscript(key: TransferKey) -> TransferID? { keys[key] }

    func contains(_ id: TransferID) -> Bool { entries[id] != nil }

    /// Whether the queue has transfers from this peer.
    func has(_ peer: PeerID) -> Bool { counts[peer] != nil }

    /// The row of a transfer; `nil` if it is not in memory.
    func row(_ id: TransferID) -> TransferRow? { rows[id] }

    mutating func add(_ row: TransferRow, key: TransferKey) {
        let id = TransferID(row.id)
        entries[id] = Entry(peer: row.peer, key: key, bytes: row.bytes, size: row.size)
        keys[key] = id
        counts[row.peer, default: 0] += 1
        if keptBytes + row.keptBytes <= Self.rowBytes { keep(row) }
    }

    mutating func markRequested(_ id: TransferID) { entries[id]?.isRequested = true }

    mutating func progressed(_ id: TransferID, bytes: Int64) { entries[id]?.bytes = bytes }

    /// Stores a row that is newer than that in the store. It stays in memory until `saved`.
    mutating func set(_ row: TransferRow) {
        let id = TransferID(row.id)
        guard entries[id] != nil else { return }
        entries[id]?.bytes = row.bytes
        entries[id]?.size = row.size
        keep(row)
    }

    /// Records that a row was written to the store. It is removed from memory if the rows in memory exceed `rowBytes`.
    mutating func saved(_ row: TransferRow) {
        let id = TransferID(row.id)
        if keptBytes > Self.rowBytes, rows[id] == row { drop(id) }
    }

    mutating func remove(_ id: TransferID) {
        drop(id)
        guard let entry = entries.removeValue(forKey: id) else { return }
        keys[entry.key] = nil
        let left = (counts[entry.peer] ?? 1) - 1
        counts[entry.peer] = left == 0 ? nil : left
    }

    private mutating func keep(_ row: TransferRow) {
        drop(TransferID(row.id))
        rows[TransferID(row.id)] = row
        keptBytes += row.keptBytes
    }

    private mutating func drop(_ id: TransferID) {
        if let row = rows.removeValue(forKey: id) { keptBytes -= row.keptBytes }
    }
}

extension TransferRow {
    /// The approximate size of the row in memory, in bytes.
    fileprivate var keptBytes: Int {
        512 + [url, folder, name, part, reason, error, entityTag, fileInode, finalName].reduce(0) { $0 + ($1?.utf8.count ?? 0) }
    }
}
