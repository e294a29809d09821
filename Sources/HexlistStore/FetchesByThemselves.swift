internal import GRDB
public import HexlistModel

/// The bounds of files that are fetched of a peer without being asked for.
public struct FetchAllowance: Sendable, Equatable {
    /// Bytes of a hex, and of a day.
    public var limit: Int64
    /// Bytes of this day.
    public var today: Int64
    /// Its place in the inbox: what comes behind it is to be looked at.
    public var after: Int64
}

extension TransferRow {
    /// The bytes that count of what is allowed: at least those that the smallest file takes on a disk, so that many small ones count too.
    public var counted: Int64 { max(size ?? 0, 4_096) }
}

extension StoreReader {
    /// `nil` for a peer that is not trusted, or of which nothing is fetched by itself.
    public func fetchAllowance(of peer: PeerID, at now: Int64) throws -> FetchAllowance? {
        try first(
            "SELECT fetchLimit, CASE WHEN fetchDay = ? THEN fetchDayBytes ELSE 0 END, fetchAfter FROM peer "
                + "WHERE uuid = ? AND trust = 'trusted' AND fetchLimit IS NOT NULL", now / 86_400_000, peer.uuid
        ) { FetchAllowance(limit: $0.int64(0), today: $0.int64(1), after: $0.int64(2)) }
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
    /// Notes that hexes of a peer were looked at, and adds the transfers of files that are fetched by themselves, in one transaction.
    /// - Parameters:
    ///   - place: of the last one in the inbox.
    ///   - poolBytes: the most bytes of the pool.
    /// - Returns: the rows with their ids.
    /// - Throws: `PoolFull`, `.badRequest` where too many wait; then nothing is changed.
    public func fetchByItself(
        _ rows: [TransferRow], of peer: PeerID, upTo place: Int64, at now: Int64, poolBytes: Int64
    ) throws -> [TransferRow] {
        try writeSync { writer in
            try writer.change {
                let day = now / 86_400_000
                try writer.run(
                    """
                    UPDATE peer SET fetchAfter = max(fetchAfter, ?1), fetchDayBytes = CASE WHEN fetchDay = ?2 THEN fetchDayBytes ELSE 0 END + ?3,
                        fetchDay = ?2 WHERE uuid = ?4
                    """, place, day, rows.map(\.counted).clampedSum, peer.uuid)
                if !rows.isEmpty { writer.changed(.peers) }
                return try writer.addTransfers(rows, poolBytes: poolBytes)
            }
        }
    }
}
