internal import GRDB
internal import HexlistJSON
public import HexlistModel

/// The state of a transfer that the store keeps.
public enum StoredTransferState: String, Sendable, CaseIterable {
    /// It is to be fetched: under way, or not yet.
    case waiting
    case done, failed, cancelled
}

/// A file that this machine fetches from a peer.
public struct TransferRow: Sendable, Equatable {
    public var id: Int64 = 0
    /// The hex with the link; it may be deleted since.
    public var hex: Int64?
    public var url: String
    public var peer: PeerID
    /// The absolute path of the folder the file goes to.
    public var folder: String
    /// Where it is put under its digest; `nil` for a folder that somebody named.
    public var place: PoolLocation?
    /// The umask of whoever asked for it.
    public var mask: Int
    /// The name it is to have, cleaned.
    public var name: String
    /// Random digits in the name of the partial file.
    public var part: String
    public var state = StoredTransferState.waiting
    /// A word: what it waits for, or why it failed.
    public var reason: String?
    /// The reason for people.
    public var error: String?
    /// The bytes that are here.
    public var bytes: Int64 = 0
    /// The bytes in all, as the link or the peer announced them.
    public var size: Int64?
    /// 32 bytes, as the link announced them.
    public var sha256: [UInt8]?
    public var entityTag: String?
    /// Milliseconds since 1970, as are all times; what the link announced.
    public var modified: Int64?
    /// Device and inode of the whole file before its last rename, and the name that gives it: a restart knows its own file by them.
    public var fileInode: String?
    public var finalName: String?
    /// The whole file as `FileIdentity` writes it; of one that is put under its digest. Not in the row.
    public var identity: String?
    public var attempts = 0
    /// Bytes that are reserved of the peer's day (`HexStore.reserveFetch`) and have not arrived; `nil` for a file that somebody asked for.
    public var reservedBytes: Int64?
    public var createdAt: Int64
    public var endedAt: Int64?

    /// Whether it comes from a remote of rclone (`RemoteLink`), and so from no peer.
    private static let remote = "rclone://"
    fileprivate var isOfRemote: Bool { url.utf8.starts(with: Self.remote.utf8) }

    /// The `reason` of a transfer whose link cannot be fetched.
    public static let badLink = "badLink"

    /// The most transfers that wait, and days for which ended ones are listed.
    public static let limit = 20_000
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

    /// `nil` for a row of a damaged store.
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
    /// A page of transfers, the newest first.
    /// - Parameters:
    ///   - states: those to read; `nil` for all.
    ///   - before: the last id of the page before; `nil` for the first page.
    public func transferPage(_ states: Set<StoredTransferState>? = nil, before: Int64? = nil, limit: Int) throws -> Page<TransferRow> {
        let words = states.map { states in "[" + states.map { "\"\($0.rawValue)\"" }.sorted().joined(separator: ",") + "]" }
        let (rows, hasMore) = try page(
            """
            SELECT \(TransferRow.columns) FROM transfer
            WHERE id < ?1 AND (?2 IS NULL OR state IN (SELECT value FROM json_each(?2))) ORDER BY id DESC
            """, before ?? .max, words, limit: pageLimit(limit), size: { $0.size(of: 2...16) }, read: TransferRow.init)
        return Page(items: rows, next: hasMore ? rows.last?.id : nil)
    }

    public func transfers(_ ids: [Int64]) throws -> [TransferRow] {
        try all(
            "SELECT \(TransferRow.columns) FROM transfer WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id", jsonArray(ids),
            read: TransferRow.init
        ).compactMap(\.self)
    }

    /// How transfers stand whose ids lie between two, both included. Sums are no more than 2^62: sizes are what peers say they are, and `sum()`
    /// of SQLite is an error where the sum has no room.
    public func transferSums(_ ids: ClosedRange<Int64>) throws -> [StoredTransferState: (count: Int, bytes: Int64, size: Int64)] {
        let rows = try all(
            """
            SELECT state, count(*), CAST(min(total(bytes), 1 << 62) AS INTEGER), CAST(min(total(coalesce(size, bytes)), 1 << 62) AS INTEGER)
            FROM transfer WHERE id BETWEEN ? AND ? GROUP BY state
            """, ids.lowerBound, ids.upperBound
        ) { (StoredTransferState(rawValue: $0.text(0)), (count: $0.int(1), bytes: $0.int64(2), size: $0.int64(3))) }
        return rows.reduce(into: [:]) { sums, row in if let state = row.0 { sums[state] = row.1 } }
    }

    /// The transfers that are done of links with one of these URLs, the newest first.
    /// - Parameter urls: as bytes.
    public func doneTransfers(of urls: Set<[UInt8]>) throws -> [TransferRow] {
        let ids = try all("SELECT id, url FROM transfer WHERE state = 'done' AND place IS NULL") {
            urls.contains(Array($0.text(1).utf8)) ? $0.int64(0) : nil
        }.compactMap(\.self)
        return try transfers(ids).reversed()
    }

    /// A page of those that are to be fetched, the oldest first.
    /// - Parameter after: the last id of the page before; 0 for the first page.
    public func waitingTransfers(after: Int64 = 0, limit: Int = 1_000) throws -> Page<TransferRow> {
        let (rows, hasMore) = try page(
            "SELECT \(TransferRow.columns) FROM transfer WHERE state = 'waiting' AND id > ? ORDER BY id", after, limit: pageLimit(limit),
            size: { $0.size(of: 2...16) }, read: TransferRow.init)
        return Page(items: rows, next: hasMore ? rows.last?.id : nil)
    }
}

extension HexStore {
    /// Adds transfers in one transaction. Room in the pool is theirs from then on, until they end.
    /// - Parameter poolBytes: the most bytes of the pool, with what is on its way there.
    /// - Returns: the rows with their ids, which are consecutive.
    /// - Throws: `.badRequest` if too many wait; `PoolFull`. Then none is added.
    public func addTransfers(_ rows: [TransferRow], poolBytes: Int64 = .max) async throws -> [TransferRow] {
        try await write(rows: rows.count) { try $0.addTransfers(rows, poolBytes: poolBytes) }
    }

    /// Adds transfers to folders in one transaction.
    /// - Parameter make: makes a row, by its index, on the writer's thread, so that the rows are not in memory together.
    /// - Returns: their ids.
    /// - Throws: `.badRequest` if too many wait; then none is added.
    public func addTransfers(
        _ count: Int, _ make: @escaping @Sendable (Int) throws -> TransferRow
    ) async throws -> ClosedRange<Int64> {
        try await write(rows: count) { try $0.addTransfers(count, make) }
    }

    /// Writes what became of transfers. A transfer that came to its end is told as an event.
    /// - Parameter completion: called on the writer's thread.
    public func updateTransfers(_ rows: [TransferRow], completion: @escaping @Sendable (Result<Void, any Error>) -> Void) {
        submit(rows: rows.count, { try $0.updateTransfers(rows) }, completion: completion)
    }

    /// Writes what a file is going to be called and which it is, before it is renamed, and waits until that is on the disk. Must not be
    /// called from a completion.
    public func placeTransfer(_ id: Int64, inode: String, name: String) throws {
        try writeSync { writer in
            _ = try writer.change {
                try writer.run("UPDATE transfer SET fileInode = ?, finalName = ? WHERE id = ?", inode, name, id)
            }
        }
    }

    /// The same for several files, in one transaction.
    public func placeTransfers(_ placements: [(id: Int64, inode: String, name: String)]) throws {
        try writeSync { writer in
            try writer.change {
                for (id, inode, name) in placements {
                    try writer.run("UPDATE transfer SET fileInode = ?, finalName = ? WHERE id = ?", inode, name, id)
                }
            }
        }
    }

    /// Forgets transfers that came to an end.
    /// - Returns: how many there were.
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
        try change { try checkRoomInPool(for: pooled.map { $0.size ?? 0 }, most: poolBytes) }
        let ids = try addTransfers(rows.count) { rows[$0] }
        return zip(rows, ids).map { row, id in
            var added = row
            added.id = id
            return added
        }
    }

    /// Adds the rows that `make` makes, one after the other.
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
                    .badRequest, "\(before) transfers wait; with \(waiting - before) more there were more than \(TransferRow.limit).",
                    hint: "`hexlist transfers cancel` gives some up.")
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
                guard let before = before.flatMap({ StoredTransferState(rawValue: $0) }) else { continue }  // forgotten meanwhile
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

    /// Records that a transfer is done or has failed. Called inside `change`.
    private func recordEnd(of row: TransferRow, id: Int64) throws {
        let isDone = row.state == .done
        let data: [(String, String?)] = [
            ("transfer", "\(id)"), ("name", isDone ? row.finalName : row.name), ("folder", row.folder),
            ("bytes", "\(row.bytes)"), ("reason", isDone ? nil : row.reason),
        ]
        try record(
            isDone ? .transferDone : .transferFailed, at: row.endedAt ?? row.createdAt, peer: row.isOfRemote ? nil : row.peer, hex: row.hex,
            data: JSONText.object(data))
    }
}
