internal import GRDB
public import HexlistModel

/// The bounds of files that are fetched of a peer without being asked for.
public struct FetchAllowance: Sendable, Equatable {
    /// Bytes of a hex, and of a day.
    public var limit: Int64
    /// Bytes of this day that have arrived or are reserved, and those that files from days before still need.
    public var today: Int64
    /// Its place in the inbox: what comes behind it is to be looked at.
    public var after: Int64
}

extension TransferRow {
    /// The fewest bytes that count for a file: those that the smallest one takes on a disk, so that many small ones count too.
    fileprivate static let fewestCounted: Int64 = 4_096

    /// Bytes charged against the peer's limit.
    public var counted: Int64 { max(size ?? 0, Self.fewestCounted) }
}

extension StoreReader {
    /// `nil` for a peer that is not trusted, or of which nothing is fetched by itself.
    public func fetchAllowance(of peer: PeerID, at now: Int64) throws -> FetchAllowance? {
        let day = now / 86_400_000
        let allowance = try first(
            "SELECT fetchLimit, CASE WHEN fetchDay = ? THEN fetchDayBytes ELSE 0 END, fetchAfter FROM peer "
                + "WHERE uuid = ? AND trust = 'trusted' AND fetchLimit IS NOT NULL", day, peer.uuid
        ) { FetchAllowance(limit: $0.int64(0), today: $0.int64(1), after: $0.int64(2)) }
        guard var allowance else { return nil }
        let earlier = try first(
            """
            SELECT CAST(min(total(max(size - bytes, \(TransferRow.fewestCounted))), 1 << 62) AS INTEGER) FROM transfer
            WHERE state = 'waiting' AND peer = ? AND reservedBytes IS NOT NULL AND reservedDay <> ?
            """, peer.uuid, day
        ) { $0.int64(0) }
        allowance.today = allowance.today.addingClamped(earlier ?? 0)
        return allowance
    }

    /// Hexes in the inbox that a peer sent and proved, behind a place there, in order.
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
    /// Notes that hexes of a peer were looked at, and adds the transfers of files that are fetched by themselves, in one transaction. Their
    /// bytes are reserved of this day.
    /// - Parameters:
    ///   - place: of the last one in the inbox.
    ///   - poolBytes: the most bytes of the pool. Files that nobody asked for wait for no more than half of these, and of the files it may have.
    /// - Returns: the rows with their ids.
    /// - Throws: `PoolFull`, `.badRequest` where too many wait; then nothing is changed.
    public func fetchByItself(
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

    /// Reserves the bytes that may arrive in the next attempt at a file, and charges those to the peer's day that are not reserved yet. So the
    /// limit bounds the bytes that arrive and not those that were announced, also if this process ends at any moment.
    /// - Parameter bytes: no more are taken in the attempt. Those that did not arrive are given back by `updateTransfers`.
    /// - Returns: the bytes reserved besides, for `TransferRow.reservedBytes`; `nil` if the day's limit does not allow them.
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
    /// Charges bytes to the day of a peer; inside `change`.
    fileprivate func charge(_ bytes: Int64, to peer: PeerID, at now: Int64) throws {
        try run(
            """
            UPDATE peer SET fetchDayBytes = CASE WHEN fetchDay = ?1 THEN fetchDayBytes ELSE 0 END + ?2, fetchDay = ?1 WHERE uuid = ?3
            """, now / 86_400_000, bytes, peer.uuid)
        changed(.peers)
    }
}
