internal import GRDB
public import HexlistModel

/// Counts of the files that an outbox row offers to its peer. They remain after the offers have ended.
public struct OutboxFilesRow: Sendable, Equatable {
    public var count: Int64
    /// Total size of the files.
    public var bytes: Int64
    /// Number of files that were sent to the peer completely.
    public var fetched: Int64
    /// Number of files that the peer requested in vain, because they were changed, removed or unreadable since they were offered.
    public var failed: Int64
    /// The name of the last file that counts as `failed`, and the reason: a raw value of `OfferProblem`.
    public var failedName: String?
    public var failedReason: String?
    /// Whether the user withdrew the offers after the delivery.
    public var isWithdrawn: Bool
    /// The time of `StoreOpenTimeClock` at which the offers end; `nil` until the row is delivered.
    public var ends: Int64?
}

extension StoreReader {
    /// Returns the counts of the offered files of outbox rows, by row id. Rows without files are missing.
    public func outboxFiles(_ rows: [Int64]) throws -> [Int64: OutboxFilesRow] {
        let found = try all(
            """
            SELECT outbox, files, bytes, fetched, failed, failedName, failedReason, isWithdrawn, ends
            FROM outboxFiles WHERE outbox IN (SELECT value FROM json_each(?))
            """, jsonArray(rows)
        ) {
            (
                $0.int64(0),
                OutboxFilesRow(
                    count: $0.int64(1), bytes: $0.int64(2), fetched: $0.int64(3), failed: $0.int64(4), failedName: $0.optionalText(5),
                    failedReason: $0.optionalText(6), isWithdrawn: $0.int64(7) != 0, ends: $0.optionalInt64(8))
            )
        }
        return Dictionary(found) { first, _ in first }
    }
}

extension HexStore {
    /// Records that a peer has fetched an offered file. Returns immediately, without waiting for the write.
    public func recordFetch(of offer: [UInt8], by peer: PeerID) {
        submit(isDeferrable: true, { try $0.recordFetch(of: offer, by: peer) }, completion: { _ in })
    }

    /// Records that a peer requested an offered file that can no longer be fetched. Returns immediately, without waiting for the write.
    /// - Parameter reason: the reason, a raw value of `OfferProblem`.
    public func recordFailedFetch(of offer: [UInt8], by peer: PeerID, reason: String) {
        submit(isDeferrable: true, { try $0.recordFailedFetch(of: offer, by: peer, reason: reason) }, completion: { _ in })
    }
}

extension StoreWriter {
    /// SQL query for the outbox rows to the peer `?2` that contain the offer `?1`.
    private static let rowsOfOffer = """
        SELECT offerRow.outbox FROM offerRow JOIN outbox ON outbox.id = offerRow.outbox JOIN peer ON peer.id = outbox.peer
        WHERE offerRow.offer = ?1 AND peer.uuid = ?2
        """

    func recordFetch(of offer: [UInt8], by peer: PeerID) throws {
        try change {
            let had = try problem(of: offer, for: peer)
            let isNew = try run(
                "UPDATE offerPeer SET isFetched = 1, problem = NULL WHERE offer = ? AND peer = ? AND isFetched = 0", offer, peer.uuid)
            guard isNew > 0 else { return }
            try run(
                "UPDATE outboxFiles SET fetched = fetched + 1, failed = max(0, failed - ?3) WHERE outbox IN (\(Self.rowsOfOffer))",
                offer, peer.uuid, had == nil ? 0 : 1)
        }
    }

    func recordFailedFetch(of offer: [UInt8], by peer: PeerID, reason: String) throws {
        try change {
            let had = try problem(of: offer, for: peer)
            let isNew = try run(
                "UPDATE offerPeer SET problem = ?3 WHERE offer = ?1 AND peer = ?2 AND isFetched = 0 AND problem IS NOT ?3", offer,
                peer.uuid, reason)
            guard isNew > 0 else { return }
            try run(
                """
                UPDATE outboxFiles SET failed = failed + ?3, failedName = (SELECT name FROM offer WHERE id = ?1), failedReason = ?4
                WHERE outbox IN (\(Self.rowsOfOffer))
                """, offer, peer.uuid, had == nil ? 1 : 0, reason)
        }
    }

    private func problem(of offer: [UInt8], for peer: PeerID) throws -> String? {
        try first("SELECT problem FROM offerPeer WHERE offer = ? AND peer = ?", offer, peer.uuid) { $0.optionalText(0) } ?? nil
    }

    // MARK: - Inside `change`

    /// Stores the counts of the files of an outbox row. Call after its offers were recorded.
    func countFiles(of row: Int64, to peer: PeerID) throws {
        try run(
            """
            INSERT INTO outboxFiles (outbox, files, bytes, fetched)
            SELECT offerRow.outbox, count(*), CAST(total(offer.size) AS INTEGER), sum(offerPeer.isFetched)
            FROM offerRow JOIN offer ON offer.id = offerRow.offer
                JOIN offerPeer ON offerPeer.offer = offer.id AND offerPeer.peer = ?2
            WHERE offerRow.outbox = ?1 GROUP BY offerRow.outbox
            ON CONFLICT DO UPDATE SET files = excluded.files, bytes = excluded.bytes, fetched = excluded.fetched, failed = 0,
                failedName = NULL, failedReason = NULL, isWithdrawn = 0, ends = NULL
            """, row, peer.uuid)
    }

    /// Records the end of the offers of delivered rows, and postpones the deletion of the rows.
    /// - Parameters:
    ///   - ends: a time of `StoreOpenTimeClock`.
    ///   - keptUntil: the time of `StoreOpenTimeClock` at which the rows are deleted.
    func setEndOfFiles(deliveredBy rows: ClosedRange<Int64>, ends: Int64, keptUntil: Int64) throws {
        guard try run("UPDATE outboxFiles SET ends = ? WHERE outbox BETWEEN ? AND ?", ends, rows.lowerBound, rows.upperBound) > 0 else {
            return
        }
        try run(
            "UPDATE outbox SET dueAt = max(dueAt, ?) WHERE id IN (SELECT outbox FROM outboxFiles WHERE outbox BETWEEN ? AND ?)", keptUntil,
            rows.lowerBound, rows.upperBound)
    }
}
