internal import GRDB
public import HexlistModel

/// The limits of automatic fetching from a peer.
public struct FetchAllowance: Sendable, Equatable {
    /// Maximum bytes for each hex and for each day.
    public var limit: Int64
    /// Bytes that arrived or are reserved today, and bytes that files of earlier days still need.
    public var today: Int64
    /// The inbox number after which hexes have not been examined yet.
    public var after: Int64
}

extension TransferRow {
    /// Minimum bytes that a file counts as: its smallest size on a disk, so that many small files count too.
    fileprivate static let minimumCounted: Int64 = 4_096

    /// Bytes charged against the peer's limit.
    public var counted: Int64 { max(size ?? 0, Self.minimumCounted) }
}

extension StoreReader {
    /// `nil` for a peer that is not trusted or has no automatic fetching.
    public func fetchAllowance(of peer: PeerID, at now: Int64) throws -> FetchAllowance? {
        let day = now / 86_400_000
        let allowance = try first(
            "SELECT fetchLimit, CASE WHEN fetchDay = ? THEN fetchDayBytes ELSE 0 END, fetchAfter FROM peer "
                + "WHERE uuid = ? AND trust = 'trusted' AND fetchLimit IS NOT NULL", day, peer.uuid
        ) { FetchAllowance(limit: $0.int64(0), today: $0.int64(1), after: $0.int64(2)) }
        guard var allowance else { return nil }
        let earlier = try first(
            """
            SELECT CAST(min(total(max(size - bytes, \(TransferRow.minimumCounted))), 1 << 62) AS INTEGER) FROM transfer
            WHERE state = 'waiting' AND peer = ? AND reservedBytes IS NOT NULL AND reservedDay <> ?
            """, peer.uuid, day
        ) { $0.int64(0) }
        allowance.today = allowance.today.addingClamped(earlier ?? 0)
        return allowance
    }

    /// Hexes in the inbox that a peer sent with a proven key, after an inbox number, in order.
    public func inboxHexes(of peer: PeerID, after place: Int64, limit: Int) throws -> [(id: Int64, place: Int64)] {
        try all(
            """
            SELECT hex.id, hex.inboxNumber FROM hex JOIN peer ON peer.id = hex.peer
            WHERE peer.uuid = ? AND hex.inboxNumber > ? AND hex.isProven = 1 ORDER BY hex.inboxNumber LIMIT ?
            """, peer.uuid, place, limit
        ) { ($0.int64(0), $0.int64(1)) }
    }
}

extension HexStore {
    /// Adds transfers that are fetched automatically, and records that the hexes up to `place` were examined, in one transaction. The bytes
    /// count for today.
    /// - Parameters:
    ///   - place: the inbox number of the last examined hex.
    ///   - poolBytes: maximum bytes of the pool. Automatically fetched files may reserve at most half of its bytes and files.
    /// - Returns: the rows with their ids.
    /// - Throws: `PoolFull`, `.badRequest` above the limits. Then nothing is changed.
    public func addAutomaticTransfers(
        _ rows: [TransferRow], of peer: PeerID, upTo place: Int64, at now: Int64, poolBytes: Int64
    ) throws -> [TransferRow] {
        try writeSync { writer in
            try writer.change {
                try writer.run("UPDATE peer SET fetchAfter = max(fetchAfter, ?) WHERE uuid = ?", place, peer.uuid)
                guard !rows.isEmpty else { return [] }
                let sums = try writer.poolSums()
                let bytes = sums.automaticBytes.addingClamped(rows.map { $0.size ?? 0 }.clampedSum)
                guard bytes <= poolBytes / 2, sums.automaticFiles + rows.count <= PooledFile.limit / 2 else {
                    throw HexlistError(.badRequest, "Automatically fetched files already reserve half of the cache.")
                }
                try writer.charge(rows.map(\.counted).clampedSum, to: peer, at: now)
                return try writer.addTransfers(
                    rows.map { row in
                        var row = row
                        row.reservedBytes = row.counted
                        return row
                    }, poolBytes: poolBytes)
            }
        }
    }

    /// Reserves the bytes of the next attempt to fetch a file; bytes that are not reserved yet are charged to the peer's day. The daily
    /// limit therefore bounds the bytes that arrive, not the announced sizes, even if the process is killed.
    /// - Parameter bytes: maximum bytes of the attempt. `updateTransfers` returns those that did not arrive.
    /// - Returns: the bytes that stay reserved beyond the attempt, for `TransferRow.reservedBytes`; `nil` if the daily limit does not allow
    ///   the attempt.
    public func reserveFetch(_ id: Int64, of peer: PeerID, bytes: Int64, at now: Int64) throws -> Int64? {
        try writeSync { writer in
            try writer.change {
                let day = now / 86_400_000
                let reserved = try writer.first(
                    "SELECT CASE WHEN reservedDay = ? THEN coalesce(reservedBytes, 0) ELSE 0 END FROM transfer WHERE id = ?", day, id
                ) { $0.int64(0) }
                let rest = (reserved ?? 0) - bytes
                if rest < 0 {
                    let allowed = try writer.first(
                        """
                        SELECT fetchLimit - CASE WHEN fetchDay = ? THEN fetchDayBytes ELSE 0 END FROM peer
                        WHERE uuid = ? AND trust = 'trusted' AND fetchLimit IS NOT NULL
                        """, day, peer.uuid
                    ) { $0.int64(0) }
                    guard let allowed, -rest <= allowed else { return nil }
                    try writer.charge(-rest, to: peer, at: now)
                }
                try writer.run("UPDATE transfer SET reservedBytes = ?, reservedDay = ? WHERE id = ?", max(0, rest), day, id)
                return max(0, rest)
            }
        }
    }
}

extension StoreWriter {
    /// Charges bytes to a peer's day. Call inside `change`.
    fileprivate func charge(_ bytes: Int64, to peer: PeerID, at now: Int64) throws {
        try run(
            """
            UPDATE peer SET fetchDayBytes = CASE WHEN fetchDay = ?1 THEN fetchDayBytes ELSE 0 END + ?2, fetchDay = ?1 WHERE uuid = ?3
            """, now / 86_400_000, bytes, peer.uuid)
        changed(.peers)
    }
}
