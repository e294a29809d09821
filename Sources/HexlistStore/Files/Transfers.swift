internal import GRDB
internal import HexlistJSON
public import HexlistModel

/// The stored state of a transfer.
public enum StoredTransferState: String, Sendable, CaseIterable {
    /// The transfer is queued or running.
    case waiting
    case done, failed, cancelled
}

/// A transfer: a file that this machine fetches from a peer or a remote.
public struct TransferRow: Sendable, Equatable {
    public var id: Int64 = 0
    /// The hex that has the link. It may be deleted.
    public var hex: Int64?
    public var url: String
    public var peer: PeerID
    /// The absolute path of the destination folder.
    public var folder: String
    /// The folder of the pool; `nil` if the user named a destination folder.
    public var place: PoolLocation?
    /// The umask of the requesting process.
    public var mask: Int
    /// The requested file name, after unsafe characters were removed.
    public var name: String
    /// Random digits in the name of the partial file.
    public var part: String
    public var state = StoredTransferState.waiting
    /// The code of the reason why the transfer waits or failed.
    public var reason: String?
    /// The reason as a message for users.
    public var error: String?
    /// Number of received bytes.
    public var bytes: Int64 = 0
    /// The size of the file as the link or the peer announced it.
    public var size: Int64?
    /// The announced SHA-256, 32 bytes.
    public var sha256: [UInt8]?
    public var entityTag: String?
    /// The announced time of modification. Like all times of the row, in milliseconds since 1970.
    public var modified: Int64?
    /// Device and inode of the complete file, recorded before its last rename. After a restart the process recognises the file by them.
    public var fileInode: String?
    /// The name that the file gets by the last rename.
    public var finalName: String?
    /// The `FileIdentity` of a complete file of the pool. Not a column of the table.
    public var identity: String?
    public var attempts = 0
    /// For an automatic transfer, bytes that count towards the peer's limit of the day and have not arrived (`HexStore.reserveFetch`);
    /// `nil` if the user requested the file.
    public var reservedBytes: Int64?
    public var createdAt: Int64
    public var endedAt: Int64?

    private static let remoteScheme = "rclone://"
    /// Whether the file is fetched from an rclone remote (`RemoteLink`) instead of a peer.
    fileprivate var isOfRemote: Bool { url.utf8.starts(with: Self.remoteScheme.utf8) }

    /// The `reason` of a transfer whose link cannot be fetched.
    public static let badLink = "badLink"

    /// Maximum number of pending transfers.
    public static let limit = 20_000
    /// Number of days for which the records of ended transfers are kept.
    static let keptDays = 30

    public init(
        hex: Int64?, url: String, peer: PeerID, folder: String, mask: Int, name: String, part: String, size: Int64?, sha256: [UInt8]?,
        modified: Int64?,
        createdAt: Int64
    ) {
        self.hex = hex
        self.url = url
        self.peer = peer
        self.folder = folder
        self.mask = mask
        self.name = name
        self.part = part
        self.size = size
        self.sha256 = sha256
        self.modified = modified
        self.createdAt = createdAt
    }

    fileprivate static let columns = """
        id, hex, url, peer, folder, mask, name, state, reason, error, bytes, size, sha256, entityTag, modified, fileInode, finalName,
        attempts, createdAt, endedAt, part, place, reservedBytes
        """

    /// Reads a row; `nil` for a row with invalid values, as in a damaged store.
    fileprivate init?(_ row: SQLStatement) {
        guard let peer = row.uuid(3).map(PeerID.init), let state = StoredTransferState(rawValue: row.text(7)) else { return nil }
        self.init(
            hex: row.optionalInt64(1), url: row.text(2), peer: peer, folder: row.text(4), mask: row.int(5), name: row.text(6),
            part: row.text(20), size: row.optionalInt64(11), sha256: row.isNull(12) ? nil : row.bytes(12), modified: row.optionalInt64(14),
            createdAt: row.int64(18))
        id = row.int64(0)
        self.state = state
        reason = row.optionalText(8)
        error = row.optionalText(9)
        bytes = row.int64(10)
        entityTag = row.optionalText(13)
        fileInode = row.optionalText(15)
        finalName = row.optionalText(16)
        attempts = row.int(17)
        endedAt = row.optionalInt64(19)
        place = row.optionalText(21).flatMap { PoolLocation(rawValue: $0) }
        reservedBytes = row.optionalInt64(22)
    }
}

extension StoreReader {
    /// Returns a page of transfers, newest first.
    /// - Parameters:
    ///   - states: the states to read; `nil` for all.
    ///   - hex: the hex of the transfers; `nil` for all.
    ///   - before: the last id of the previous page; `nil` for the first page.
    public func transferPage(
        _ states: Set<StoredTransferState>? = nil, hex: Int64? = nil, before: Int64? = nil, limit: Int
    ) throws -> Page<TransferRow> {
        let words = states.map { states in "[" + states.map { "\"\($0.rawValue)\"" }.sorted().joined(separator: ",") + "]" }
        let (rows, hasMore) = try page(
            """
            SELECT \(TransferRow.columns) FROM transfer
            WHERE id < ?1 AND (?2 IS NULL OR state IN (SELECT value FROM json_each(?2))) AND (?3 IS NULL OR hex = ?3)
            ORDER BY id DESC
            """, before ?? .max, words, hex, limit: pageLimit(limit), size: { $0.size(of: 2...16) }, read: TransferRow.init)
        return Page(items: rows, next: hasMore ? rows.last?.id : nil)
    }

    public func transfers(_ ids: [Int64]) throws -> [TransferRow] {
        try all(
            "SELECT \(TransferRow.columns) FROM transfer WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id", jsonArray(ids),
            read: TransferRow.init
        ).compactMap(\.self)
    }

    /// Returns, for the transfers with ids in a range, their number and their received and total bytes by state. Sums are clamped to 2^62,
    /// because peers may announce any size and SQLite's `sum()` fails on overflow.
    public func transferSums(_ ids: ClosedRange<Int64>) throws -> [StoredTransferState: (count: Int, bytes: Int64, size: Int64)] {
        let rows = try all(
            """
            SELECT state, count(*), CAST(min(total(bytes), 1 << 62) AS INTEGER), CAST(min(total(coalesce(size, bytes)), 1 << 62) AS INTEGER)
            FROM transfer WHERE id BETWEEN ? AND ? GROUP BY state
            """, ids.lowerBound, ids.upperBound
        ) { (StoredTransferState(rawValue: $0.text(0)), (count: $0.int(1), bytes: $0.int64(2), size: $0.int64(3))) }
        return rows.reduce(into: [:]) { sums, row in if let state = row.0 { sums[state] = row.1 } }
    }

    /// Returns the completed transfers of links with these URLs to folders that the user named, newest first.
    /// - Parameter urls: the URLs as UTF-8 bytes.
    public func doneTransfers(of urls: Set<[UInt8]>) throws -> [TransferRow] {
        let ids = try all("SELECT id, url FROM transfer WHERE state = 'done' AND place IS NULL") {
            urls.contains(Array($0.text(1).utf8)) ? $0.int64(0) : nil
        }.compactMap(\.self)
        return try transfers(ids).reversed()
    }

    /// Returns a page of waiting transfers, oldest first.
    /// - Parameter after: the last id of the previous page; 0 for the first page.
    public func waitingTransfers(after: Int64 = 0, limit: Int = 1_000) throws -> Page<TransferRow> {
        let (rows, hasMore) = try page(
            "SELECT \(TransferRow.columns) FROM transfer WHERE state = 'waiting' AND id > ? ORDER BY id", after, limit: pageLimit(limit),
            size: { $0.size(of: 2...16) }, read: TransferRow.init)
        return Page(items: rows, next: hasMore ? rows.last?.id : nil)
    }
}

extension HexStore {
    /// Adds transfers in one transaction. Transfers to the cache reserve space in it until they end.
    /// - Parameter poolBytes: maximum bytes of the cache, including pending transfers.
    /// - Returns: the rows with their ids, which are consecutive.
    /// - Throws: `.badRequest` if more than `TransferRow.limit` transfers would be pending; `PoolFull`. Then none is added.
    public func addTransfers(_ rows: [TransferRow], poolBytes: Int64 = .max) async throws -> [TransferRow] {
        try await write(rows: rows.count) { try $0.addTransfers(rows, poolBytes: poolBytes) }
    }

    /// Adds `count` transfers to folders in one transaction.
    /// - Parameter make: returns the row with this index. Called on the writer's thread for one row after the other, so that the rows are
    ///   never all in memory.
    /// - Returns: the ids.
    /// - Throws: `.badRequest` if more than `TransferRow.limit` transfers would be pending. Then none is added.
    public func addTransfers(
        _ count: Int, _ make: @escaping @Sendable (Int) throws -> TransferRow
    ) async throws -> ClosedRange<Int64> {
        try await write(rows: count) { try $0.addTransfers(count, make) }
    }

    /// Updates the stored rows of transfers. When a transfer completes or fails, an event is recorded.
    /// - Parameter completion: called on the writer's thread.
    public func updateTransfers(_ rows: [TransferRow], completion: @escaping @Sendable (Result<Void, any Error>) -> Void) {
        submit(rows: rows.count, { try $0.updateTransfers(rows) }, completion: completion)
    }

    /// Records the inode and the final name of a complete file before its rename. Blocks until they are durable. Must not be called from a
    /// completion.
    public func placeTransfer(_ id: Int64, inode: String, name: String) throws {
        try writeSync { writer in
            _ = try writer.change {
                try writer.run("UPDATE transfer SET fileInode = ?, finalName = ? WHERE id = ?", inode, name, id)
            }
        }
    }

    /// Records the inodes and final names of several complete files, like `placeTransfer`, in one transaction.
    public func placeTransfers(_ placements: [(id: Int64, inode: String, name: String)]) throws {
        try writeSync { writer in
            try writer.change {
                for (id, inode, name) in placements {
                    try writer.run("UPDATE transfer SET fileInode = ?, finalName = ? WHERE id = ?", inode, name, id)
                }
            }
        }
    }

    /// Deletes the records of ended transfers. Pending transfers are skipped.
    /// - Returns: the number of deleted transfers.
    public func forgetTransfers(_ ids: [Int64]) async throws -> Int {
        try await write(rows: ids.count) { writer in
            try writer.change {
                try writer.run(
                    "DELETE FROM transfer WHERE state <> 'waiting' AND id IN (SELECT value FROM json_each(?))", jsonArray(ids))
            }
        }
    }
}

extension StoreWriter {
    func addTransfers(_ rows: [TransferRow], poolBytes: Int64 = .max) throws -> [TransferRow] {
        guard !rows.isEmpty else { return [] }
        let pooled = rows.filter { $0.state == .waiting && $0.place == .pool }
        try change { try checkPoolCapacity(for: pooled.map { $0.size ?? 0 }, most: poolBytes) }
        let ids = try addTransfers(rows.count) { rows[$0] }
        return zip(rows, ids).map { row, id in
            var added = row
            added.id = id
            return added
        }
    }

    /// Adds the rows that `make` returns, one after the other.
    func addTransfers(_ count: Int, _ make: (Int) throws -> TransferRow) throws -> ClosedRange<Int64> {
        try change {
            let before = try waitingTransferCount()
            var first: Int64?
            for index in 0..<count {
                let row = try make(index)
                try run(
                    """
                    INSERT INTO transfer (hex, url, peer, folder, place, mask, name, part, state, reason, error, bytes, size, sha256, modified,
                        finalName, createdAt, endedAt, lived, reservedBytes, reservedDay)
                    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                    """, row.hex, row.url, row.peer.uuid, row.folder, row.place?.rawValue, row.mask, row.name, row.part,
                    row.state.rawValue, row.reason, row.error, row.bytes, row.size, row.sha256, row.modified, row.finalName, row.createdAt,
                    row.endedAt, row.endedAt.map { _ in lived }, row.reservedBytes, row.createdAt / 86_400_000)
                if first == nil { first = db.lastInsertedRowID }
                if row.state == .failed { try recordEnd(of: row, id: db.lastInsertedRowID) }
            }
            let waiting = try waitingTransferCount()
            guard waiting <= TransferRow.limit || waiting == before else {
                throw HexlistError(
                    .badRequest,
                    "\(before) downloads are pending; \(waiting - before) more would exceed the maximum of \(TransferRow.limit).",
                    hint: "`hexlist transfers cancel` cancels some.")
            }
            guard let first else { throw StoreFault.lost }
            return first...db.lastInsertedRowID
        }
    }

    private func waitingTransferCount() throws -> Int {
        try first("SELECT count(*) FROM transfer WHERE state = 'waiting'") { $0.int(0) } ?? 0
    }

    func updateTransfers(_ rows: [TransferRow]) throws {
        try change {
            for row in rows {
                let before = try first("SELECT state FROM transfer WHERE id = ?", row.id) { $0.text(0) }
                guard let before = before.flatMap({ StoredTransferState(rawValue: $0) }) else { continue }  // the row was deleted meanwhile
                try run(
                    """
                    UPDATE transfer SET state = ?, reason = ?, error = ?, bytes = ?, size = ?, entityTag = ?, fileInode = ?, finalName = ?,
                        attempts = ?, endedAt = ?, lived = ?, reservedBytes = ? WHERE id = ?
                    """, row.state.rawValue, row.reason, row.error, row.bytes, row.size, row.entityTag, row.fileInode, row.finalName,
                    row.attempts, row.endedAt, row.endedAt.map { _ in lived }, row.reservedBytes, row.id)
                guard before == .waiting, row.state == .done || row.state == .failed else { continue }
                if row.state == .done { try addPooled(row) }
                try recordEnd(of: row, id: row.id)
            }
        }
    }

    /// Records the event of a completed or failed transfer. Call inside `change`.
    private func recordEnd(of row: TransferRow, id: Int64) throws {
        let isDone = row.state == .done
        let data: [(String, String?)] = [
            ("transfer", "\(id)"), ("name", isDone ? row.finalName : row.name), ("folder", row.folder),
            ("bytes", "\(row.bytes)"), ("reason", isDone ? nil : row.reason), ("automatic", row.reservedBytes == nil ? nil : "true"),
        ]
        try record(
            isDone ? .transferDone : .transferFailed, at: row.endedAt ?? row.createdAt, peer: row.isOfRemote ? nil : row.peer, hex: row.hex,
            data: JSONText.object(data))
    }
}
