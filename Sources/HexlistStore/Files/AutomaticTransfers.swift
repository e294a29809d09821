internal import GRDB
public import HexlistModel

/// The limits of automatic fetching from a peer, and how much of them is used.
public struct AutomaticFetchAllowance: Sendable, Equatable {
    /// Maximum bytes that are fetched automatically from the peer: of the files of one hex, and of all files of one day.
    public var limit: Int64
    /// Bytes that count towards `limit` today: bytes that arrived or are reserved today, and missing bytes of files that were added on
    /// earlier days.
    public var today: Int64
    /// The inbox number of the last hex that was examined for files to fetch. Inbox numbers increase with each arrival in the inbox.
    public var after: Int64
    public var target: AutomaticFetchDestination
}

extension TransferRow {
    /// Minimum bytes that a file counts as: a disk block, which even the smallest file takes.
    fileprivate static let minimumCounted: Int64 = 4_096

    /// Bytes that the file counts towards the peer's limit: its announced size, but at least `minimumCounted`.
    public var counted: Int64 { max(size ?? 0, Self.minimumCounted) }
}

extension StoreReader {
    /// Returns the limits of automatic fetching from a peer; `nil` if the peer is not trusted or automatic fetching is disabled.
    public func fetchAllowance(of peer: PeerID, at now: Int64) throws -> AutomaticFetchAllowance? {
        let day = now / 86_400_000
        let allowance = try first(
            "SELECT fetchLimit, CASE WHEN fetchDay = ? THEN fetchDayBytes ELSE 0 END, fetchAfter, fetchTo FROM peer "
                + "WHERE uuid = ? AND trust = 'trusted' AND fetchLimit IS NOT NULL", day, peer.uuid
        ) {
            AutomaticFetchAllowance(
                limit: $0.int64(0), today: $0.int64(1), after: $0.int64(2),
                target: $0.optionalText(3).flatMap(AutomaticFetchDestination.init(rawValue:)) ?? .cache)
        }
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

    /// Returns a peer's hexes in the inbox that have a proven sender and an inbox number above `place`, in order of arrival.
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
    /// Adds automatic transfers, and records that the hexes up to `place` were examined, in one transaction. Counts the bytes of the files
    /// towards the peer's limit of the current day. Blocks the calling thread.
    /// - Parameters:
    ///   - place: the inbox number of the last examined hex.
    ///   - poolBytes: maximum bytes of the pool. Pending automatic transfers may reserve at most half of these bytes and half of
    ///     `PooledFile.limit`.
    /// - Returns: the rows with their ids.
    /// - Throws: `PoolFull`; `.badRequest` if too many transfers are pending or half of the cache is already reserved. Then nothing is
    ///   changed.
    public func addAutomaticTransfers(
        _ rows: [TransferRow], of peer: PeerID, upTo place: Int64, at now: Int64, poolBytes: Int64
    ) throws -> [TransferRow] {
        try writeSync { writer in
            try writer.change {
                try writer.run("UPDATE peer SET fetchAfter = max(fetchAfter, ?) WHERE uuid = ?", place, peer.uuid)
                guard !rows.isEmpty else { return [] }
                let pooled = rows.filter { $0.place == .pool }
                if !pooled.isEmpty {
                    let sums = try writer.poolSums()
                    let bytes = sums.automaticBytes.addingClamped(pooled.map { $0.size ?? 0 }.clampedSum)
                    guard bytes <= poolBytes / 2, sums.automaticFiles + pooled.count <= PooledFile.limit / 2 else {
                        throw HexlistError(.badRequest, "Automatically fetched files already reserve half of the cache.")
                    }
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

    /// Reserves bytes before an attempt to fetch a file automatically. Uses the file's reservation first, and counts further bytes towards
    /// the peer's limit of the current day. Bytes are counted before they arrive, so the limit holds even if the peer announced false sizes
    /// or the process is killed. Blocks the calling thread.
    /// - Parameter bytes: maximum bytes of the attempt. Bytes that did not arrive are returned to the reservation with `updateTransfers`.
    /// - Returns: the bytes that stay reserved in addition to the attempt (`TransferRow.reservedBytes`); `nil` if the daily limit does not
    ///   allow the attempt.
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
    /// Adds bytes to those that count towards the peer's limit of the current day. Call inside `change`.
    fileprivate func charge(_ bytes: Int64, to peer: PeerID, at now: Int64) throws {
        try run(
            """
            UPDATE peer SET fetchDayBytes = CASE WHEN fetchDay = ?1 THEN fetchDayBytes ELSE 0 END + ?2, fetchDay = ?1 WHERE uuid = ?3
            """, now / 86_400_000, bytes, peer.uuid)
        changed(.peers)
    }
}
