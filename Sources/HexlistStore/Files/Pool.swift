internal import GRDB
public import HexlistModel

/// The folder that contains a file of the pool.
public enum PoolLocation: String, Sendable, CaseIterable {
    /// The folder of cached files, which are evicted if space is needed or if they were not used for a long time.
    case pool
    /// The folder of kept files. A file stays there as long as a hex exists for which the user pinned it.
    case kept
}

/// The record of a complete file of the pool, which is stored under its digest.
public struct PooledFile: Sendable, Equatable {
    public var id: Int64
    /// The SHA-256 of the content, 32 bytes.
    public var sha256: [UInt8]
    public var place: PoolLocation
    public var name: String
    public var size: Int64
    /// The `FileIdentity` of the file.
    public var identity: String
    /// The hex for which the file was last fetched or used. The hex may be deleted.
    public var hex: Int64?
    /// The time of the last use, in milliseconds since 1970, for display.
    public var usedAt: Int64

    /// Maximum number of cached files, including pending transfers to the cache. Bounded because each file has its own folder.
    public static let limit = 10_000

    fileprivate static let columns = "id, sha256, place, name, size, identity, hex, usedAt"

    /// Reads a row; `nil` for a row with invalid values, as in a damaged store.
    fileprivate init?(_ row: SQLStatement) {
        guard let place = PoolLocation(rawValue: row.text(2)) else { return nil }
        id = row.int64(0)
        sha256 = row.bytes(1)
        self.place = place
        name = row.text(3)
        size = row.int64(4)
        identity = row.text(5)
        hex = row.optionalInt64(6)
        usedAt = row.int64(7)
    }
}

/// A file of the pool and a peer that sent it. For a link of a peer, the pool is used only if that peer sent the file before. Otherwise the
/// file is fetched from the peer, so that a peer cannot probe with digests which files this machine has.
public struct PooledOrigin: Hashable, Sendable {
    /// The SHA-256 of the content, 32 bytes.
    public var sha256: [UInt8]
    /// A peer that sent the file.
    public var peer: PeerID

    public init(sha256: [UInt8], peer: PeerID) { (self.sha256, self.peer) = (sha256, peer) }
}

/// The number of files of the pool, and their bytes, by kind.
public struct PoolTotals: Sendable, Equatable {
    public var files = 0
    public var bytes: Int64 = 0
    public var keptFiles = 0
    public var keptBytes: Int64 = 0
    /// Number of pending transfers to the cache, which reserve space in it.
    public var comingFiles = 0
    public var comingBytes: Int64 = 0
    /// Number of pending transfers to the cache that are automatic.
    public var automaticFiles = 0
    public var automaticBytes: Int64 = 0
}

/// Thrown if the cache has no space for new transfers. The caller may evict files and try again.
public struct PoolFull: Error, Equatable {
    /// Minimum bytes to evict.
    public var bytes: Int64
    /// Minimum number of files to evict.
    public var files: Int

    public init(bytes: Int64, files: Int) {
        self.bytes = bytes
        self.files = files
    }
}

extension StoreReader {
    /// Returns the files of the pool with these digests, at most one for each digest.
    /// - Parameter peer: the peer that sent the files; `nil` for any.
    public func pooled(_ digests: [[UInt8]], from peer: PeerID? = nil) throws -> [PooledFile] {
        try digests.compactMap { digest in
            try first(
                """
                SELECT \(PooledFile.columns) FROM pooled WHERE sha256 = ?1
                    AND (?2 IS NULL OR EXISTS (SELECT 1 FROM pooledPeer WHERE pooledPeer.pooled = pooled.id AND pooledPeer.peer = ?2))
                """, digest, peer?.uuid, read: PooledFile.init) ?? nil
        }
    }

    /// Returns all files of the pool, with each peer that sent them.
    public func pooledOrigins() throws -> Set<PooledOrigin> {
        Set(
            try all("SELECT sha256, peer FROM pooled JOIN pooledPeer ON pooledPeer.pooled = pooled.id") { row in
                row.uuid(1).map { PooledOrigin(sha256: row.bytes(0), peer: PeerID($0)) }
            }.compactMap(\.self))
    }

    /// Returns a page of the files of the pool, newest first.
    /// - Parameter before: the last id of the previous page.
    public func pooledPage(before: Int64? = nil, limit: Int) throws -> Page<PooledFile> {
        let (rows, hasMore) = try page(
            "SELECT \(PooledFile.columns) FROM pooled WHERE id < ? ORDER BY id DESC", before ?? .max, limit: pageLimit(limit),
            size: { $0.size(of: 1...5) }, read: PooledFile.init)
        return Page(items: rows, next: hasMore ? rows.last?.id : nil)
    }

    /// Returns cached files, least recently used first.
    /// - Parameters:
    ///   - days: minimum number of days since the last use, measured by `StoreOpenTimeClock`; `nil` for no minimum.
    ///   - before: the time before which the files were last used, in milliseconds since 1970.
    public func leastUsedPooled(unusedFor days: Int? = nil, usedBefore before: Int64 = .max, limit: Int) throws -> [PooledFile] {
        try all(
            "SELECT \(PooledFile.columns) FROM pooled WHERE place = 'pool' AND lived < ? AND usedAt < ? ORDER BY lived, id LIMIT ?",
            days.map { lived &- Int64($0) &* 86_400_000 } ?? .max, before, limit, read: PooledFile.init
        ).compactMap(\.self)
    }

    /// Returns files that have to be moved to the other folder: pinned files in the cache, and kept files whose hexes were all deleted.
    public func misplacedPooled() throws -> [PooledFile] {
        try all(
            """
            SELECT \(PooledFile.columns) FROM pooled WHERE (place = 'kept') <>
                EXISTS (SELECT 1 FROM keptFor JOIN hex ON hex.id = keptFor.hex WHERE keptFor.sha256 = pooled.sha256)
            """, read: PooledFile.init
        ).compactMap(\.self)
    }

    /// Whether any file is pinned.
    public func keepsFiles() throws -> Bool {
        try first("SELECT EXISTS (SELECT 1 FROM keptFor)") { $0.bool(0) } ?? false
    }

    public func poolSums() throws -> PoolTotals {
        var sums = PoolTotals()
        for (place, count, bytes) in try all(
            "SELECT place, count(*), sum(size) FROM pooled GROUP BY place", read: { ($0.text(0), $0.int(1), $0.int64(2)) })
        {
            switch PoolLocation(rawValue: place) {
            case .pool: (sums.files, sums.bytes) = (count, bytes)
            case .kept: (sums.keptFiles, sums.keptBytes) = (count, bytes)
            case nil: break
            }
        }
        for (isAutomatic, count, bytes) in try all(
            """
            SELECT reservedBytes IS NOT NULL, count(*), CAST(min(total(size), 1 << 62) AS INTEGER) FROM transfer
            WHERE state = 'waiting' AND place = 'pool' GROUP BY 1
            """, read: { ($0.bool(0), $0.int(1), $0.int64(2)) })
        {
            sums.comingFiles += count
            sums.comingBytes = sums.comingBytes.addingClamped(bytes)
            if isAutomatic { (sums.automaticFiles, sums.automaticBytes) = (count, bytes) }
        }
        return sums
    }

    /// Returns the digests of files of the pool that a peer sent, and of pending transfers from the peer to the pool.
    public func digests(from peer: PeerID) throws -> Set<[UInt8]> {
        Set(
            try all(
                """
                SELECT sha256 FROM pooled JOIN pooledPeer ON pooledPeer.pooled = pooled.id WHERE pooledPeer.peer = ?1
                UNION SELECT sha256 FROM transfer WHERE state = 'waiting' AND place IS NOT NULL AND peer = ?1 AND sha256 IS NOT NULL
                """, peer.uuid
            ) { $0.bytes(0) })
    }

    /// Returns the digests of the files that belong into a folder, both complete files and pending transfers.
    public func digests(in place: PoolLocation) throws -> Set<[UInt8]> {
        Set(
            try all(
                """
                SELECT sha256 FROM pooled WHERE place = ?1
                UNION SELECT sha256 FROM transfer WHERE state = 'waiting' AND place = ?1 AND sha256 IS NOT NULL
                UNION SELECT sha256 FROM arrival WHERE ?1 = 'kept'
                """, place.rawValue
            ) { $0.bytes(0) })
    }
}

extension HexStore {
    /// Records that files of the pool were used.
    /// - Parameter hex: the hex for which they were used.
    public func usePooled(_ ids: [Int64], for hex: Int64?, at now: Int64) throws {
        try writeSync { writer in
            _ = try writer.change {
                try writer.run(
                    "UPDATE pooled SET usedAt = ?, lived = ?, hex = coalesce(?, hex) WHERE id IN (SELECT value FROM json_each(?))", now,
                    writer.lived, hex, jsonArray(ids))
            }
        }
    }

    /// Deletes the records of files of the pool.
    public func dropPooled(_ ids: [Int64]) throws {
        try writeSync { writer in
            _ = try writer.change { try writer.run("DELETE FROM pooled WHERE id IN (SELECT value FROM json_each(?))", jsonArray(ids)) }
        }
    }

    /// Records the folder and the identity of a file of the pool. May be called before the file is moved.
    public func placePooled(_ id: Int64, _ place: PoolLocation, identity: String) throws {
        try writeSync { writer in
            _ = try writer.change {
                try writer.run("UPDATE pooled SET place = ?, identity = ? WHERE id = ?", place.rawValue, identity, id)
            }
        }
    }

    /// Pins files for as long as a hex exists. The files need not be in the pool yet.
    public func keep(_ digests: [[UInt8]], for hex: Int64) async throws {
        try await write(rows: digests.count) { writer in
            try writer.change {
                for digest in digests { try writer.run("INSERT OR IGNORE INTO keptFor (sha256, hex) VALUES (?, ?)", digest, hex) }
            }
        }
    }

    /// Deletes the pins of deleted hexes.
    public func dropKept() throws {
        try writeSync { writer in
            _ = try writer.change { try writer.run("DELETE FROM keptFor WHERE hex NOT IN (SELECT id FROM hex)") }
        }
    }
}

extension StoreWriter {
    /// Checks whether the cache has space for new transfers.
    /// - Parameters:
    ///   - sizes: the sizes of the files in bytes.
    ///   - most: maximum bytes of the cache.
    /// - Throws: `PoolFull` if it has no space.
    func checkPoolCapacity(for sizes: [Int64], most: Int64) throws {
        guard !sizes.isEmpty else { return }
        let bytes = sizes.clampedSum
        let sums = try poolSums()
        let files = sums.files + sums.comingFiles + sizes.count - PooledFile.limit
        let excess = sums.bytes + sums.comingBytes - (most - bytes)
        guard excess <= 0, files <= 0 else { throw PoolFull(bytes: max(0, excess), files: max(0, files)) }
    }

    /// Records the file of a completed transfer in the pool. The caller must have verified the digest.
    func addPooled(_ row: TransferRow) throws {
        guard let place = row.place, let digest = row.sha256, let name = row.finalName else { return }
        try run(
            """
            INSERT INTO pooled (sha256, place, name, size, identity, hex, usedAt, lived) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (sha256) DO UPDATE SET place = excluded.place, name = excluded.name, size = excluded.size,
                identity = excluded.identity, hex = excluded.hex, usedAt = excluded.usedAt, lived = excluded.lived
            """, digest, place.rawValue, name, row.bytes, row.identity ?? "", row.hex, row.endedAt ?? row.createdAt,
            lived)
        try run("INSERT OR IGNORE INTO pooledPeer SELECT id, ? FROM pooled WHERE sha256 = ?", row.peer.uuid, digest)
    }
}
