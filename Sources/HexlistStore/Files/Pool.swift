internal import GRDB
public import HexlistModel

/// Where a file lies under its digest.
public enum PoolLocation: String, Sendable, CaseIterable {
    /// Until room is needed, or it was not used for long.
    case pool
    /// As long as a hex is there for which it was asked to be kept.
    case kept
}

/// A whole file that is here under its digest.
public struct PooledFile: Sendable, Equatable {
    public var id: Int64
    /// 32 bytes.
    public var sha256: [UInt8]
    public var place: PoolLocation
    public var name: String
    public var size: Int64
    /// The file as `FileIdentity` writes it.
    public var identity: String
    /// The hex for which it was fetched last; it may be deleted since.
    public var hex: Int64?
    /// Milliseconds since 1970, for display.
    public var usedAt: Int64

    /// The most files of the pool, with those on their way there: a folder each.
    public static let limit = 10_000

    fileprivate static let columns = "id, sha256, place, name, size, identity, hex, usedAt"

    /// `nil` for a row of a damaged store.
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

/// A pooled file and one peer that sent it. Only for such a peer does the pool spare a request; others are asked, so that no peer learns by
/// naming a digest which files are here.
public struct PooledOrigin: Hashable, Sendable {
    /// 32 bytes.
    public var sha256: [UInt8]
    /// A peer that sent the file.
    public var peer: PeerID

    public init(sha256: [UInt8], peer: PeerID) { (self.sha256, self.peer) = (sha256, peer) }
}

/// How much there is under digests.
public struct PoolTotals: Sendable, Equatable {
    public var files = 0
    public var bytes: Int64 = 0
    public var keptFiles = 0
    public var keptBytes: Int64 = 0
    /// Transfers to the pool that wait or run, for which room is kept; and those of them that nobody asked for.
    public var comingFiles = 0
    public var comingBytes: Int64 = 0
    public var automaticFiles = 0
    public var automaticBytes: Int64 = 0
}

/// The pool has no room for what is wanted until something in it goes.
public struct PoolFull: Error, Equatable {
    /// The bytes, and the files, that have to go at least.
    public var bytes: Int64
    public var files: Int

    public init(bytes: Int64, files: Int) {
        self.bytes = bytes
        self.files = files
    }
}

extension StoreReader {
    /// The files with these digests, of which each is there once at most.
    /// - Parameter peer: only those that this peer sent; `nil` for all.
    public func pooled(_ digests: [[UInt8]], from peer: PeerID? = nil) throws -> [PooledFile] {
        try digests.compactMap { digest in
            try first(
                """
                SELECT \(PooledFile.columns) FROM pooled WHERE sha256 = ?1
                    AND (?2 IS NULL OR EXISTS (SELECT 1 FROM pooledPeer WHERE pooledPeer.pooled = pooled.id AND pooledPeer.peer = ?2))
                """, digest, peer?.uuid, read: PooledFile.init) ?? nil
        }
    }

    /// All that is here, with the peers that sent it.
    public func pooledOrigins() throws -> Set<PooledOrigin> {
        Set(
            try all("SELECT sha256, peer FROM pooled JOIN pooledPeer ON pooledPeer.pooled = pooled.id") { row in
                row.uuid(1).map { PooledOrigin(sha256: row.bytes(0), peer: PeerID($0)) }
            }.compactMap(\.self))
    }

    /// A page, the newest first.
    /// - Parameter before: the last id of the page before.
    public func pooledPage(before: Int64? = nil, limit: Int) throws -> Page<PooledFile> {
        let (rows, hasMore) = try page(
            "SELECT \(PooledFile.columns) FROM pooled WHERE id < ? ORDER BY id DESC", before ?? .max, limit: pageLimit(limit),
            size: { $0.size(of: 1...5) }, read: PooledFile.init)
        return Page(items: rows, next: hasMore ? rows.last?.id : nil)
    }

    /// Files of the pool, the least recently used first.
    /// - Parameters:
    ///   - days: only those that were not used for so long, by `LivedClock`; `nil` for any.
    ///   - before: only those whose `usedAt` is earlier.
    public func leastUsedPooled(unusedFor days: Int? = nil, usedBefore before: Int64 = .max, limit: Int) throws -> [PooledFile] {
        try all(
            "SELECT \(PooledFile.columns) FROM pooled WHERE place = 'pool' AND lived < ? AND usedAt < ? ORDER BY lived, id LIMIT ?",
            days.map { lived &- Int64($0) &* 86_400_000 } ?? .max, before, limit, read: PooledFile.init
        ).compactMap(\.self)
    }

    /// Files of the pool that are to be kept, and kept ones without a hex.
    public func misplacedPooled() throws -> [PooledFile] {
        try all(
            """
            SELECT \(PooledFile.columns) FROM pooled WHERE (place = 'kept') <>
                EXISTS (SELECT 1 FROM keptFor JOIN hex ON hex.id = keptFor.hex WHERE keptFor.sha256 = pooled.sha256)
            """, read: PooledFile.init
        ).compactMap(\.self)
    }

    /// Whether anything is to be kept.
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

    /// The digests of files that were fetched from a peer and are here, and of those on their way from it to be put under their digest.
    public func digests(from peer: PeerID) throws -> Set<[UInt8]> {
        Set(
            try all(
                """
                SELECT sha256 FROM pooled JOIN pooledPeer ON pooledPeer.pooled = pooled.id WHERE pooledPeer.peer = ?1
                UNION SELECT sha256 FROM transfer WHERE state = 'waiting' AND place IS NOT NULL AND peer = ?1 AND sha256 IS NOT NULL
                """, peer.uuid
            ) { $0.bytes(0) })
    }

    /// The digests of which there is to be something in a place: whole files, and what is on its way.
    public func digests(in place: PoolLocation) throws -> Set<[UInt8]> {
        Set(
            try all(
                """
                SELECT sha256 FROM pooled WHERE place = ?1
                UNION SELECT sha256 FROM transfer WHERE state = 'waiting' AND place = ?1 AND sha256 IS NOT NULL
                """, place.rawValue
            ) { $0.bytes(0) })
    }
}

extension HexStore {
    /// Records that files were used now.
    /// - Parameter hex: for which they were.
    public func usePooled(_ ids: [Int64], for hex: Int64?, at now: Int64) throws {
        try writeSync { writer in
            _ = try writer.change {
                try writer.run(
                    "UPDATE pooled SET usedAt = ?, lived = ?, hex = coalesce(?, hex) WHERE id IN (SELECT value FROM json_each(?))", now,
                    writer.lived, hex, jsonArray(ids))
            }
        }
    }

    /// Forgets files, which are gone.
    public func dropPooled(_ ids: [Int64]) throws {
        try writeSync { writer in
            _ = try writer.change { try writer.run("DELETE FROM pooled WHERE id IN (SELECT value FROM json_each(?))", jsonArray(ids)) }
        }
    }

    /// Records where a file is, or is about to be.
    public func placePooled(_ id: Int64, _ place: PoolLocation, identity: String) throws {
        try writeSync { writer in
            _ = try writer.change {
                try writer.run("UPDATE pooled SET place = ?, identity = ? WHERE id = ?", place.rawValue, identity, id)
            }
        }
    }

    /// Keeps files, as soon as they are here, as long as a hex is there.
    public func keep(_ digests: [[UInt8]], for hex: Int64) async throws {
        try await write(rows: digests.count) { writer in
            try writer.change {
                for digest in digests { try writer.run("INSERT OR IGNORE INTO keptFor (sha256, hex) VALUES (?, ?)", digest, hex) }
            }
        }
    }

    /// Forgets to keep what was kept for hexes that were deleted.
    public func dropKept() throws {
        try writeSync { writer in
            _ = try writer.change { try writer.run("DELETE FROM keptFor WHERE hex NOT IN (SELECT id FROM hex)") }
        }
    }
}

extension StoreWriter {
    func checkRoomInPool(for sizes: [Int64], most: Int64) throws {
        guard !sizes.isEmpty else { return }
        let bytes = sizes.clampedSum
        let sums = try poolSums()
        let files = sums.files + sums.comingFiles + sizes.count - PooledFile.limit
        let excess = sums.bytes + sums.comingBytes - (most - bytes)
        guard excess <= 0, files <= 0 else { throw PoolFull(bytes: max(0, excess), files: max(0, files)) }
    }

    /// The file of a transfer is here, and has its digest.
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
