internal import GRDB
internal import HexlistModel

/// A row range: outbox rows of one peer with consecutive ids, which belong to one pack and differ only in their hexes. Stored as one row of
/// the table `outbox`.
struct OutboxRowRange {
    /// The ids of the rows, at most `OutboxPack.maxHexes`.
    var ids: ClosedRange<Int64>
    /// The id of the peer's row in the table `peer`.
    var peer: Int64
    var pack: Int64
    var state: OutboxState

    var count: Int64 { ids.upperBound &- ids.lowerBound &+ 1 }

    static let columns = "outbox.id, outbox.last, outbox.peer, outbox.pack, outbox.state"

    /// Reads a row of the table `outbox`; `nil` if a value is invalid, as in a damaged file. The length is checked because callers iterate
    /// over all ids.
    init?(_ row: SQLStatement) {
        let (id, last) = (row.int64(0), row.int64(1))
        guard OutboxPack.ids.contains(id), id <= last, last &- id < Int64(OutboxPack.maxHexes),
            let state = OutboxState(rawValue: row.text(4))
        else { return nil }
        self.init(ids: id...last, peer: row.int64(2), pack: row.int64(3), state: state)
    }

    init(ids: ClosedRange<Int64>, peer: Int64, pack: Int64, state: OutboxState) {
        self.ids = ids
        self.peer = peer
        self.pack = pack
        self.state = state
    }
}

extension StoreReader {
    /// Returns the row ranges that overlap a range of ids, lowest id first.
    func outboxRowRanges(_ ids: ClosedRange<Int64>) throws -> [OutboxRowRange] {
        try all(
            """
            SELECT \(OutboxRowRange.columns) FROM outbox
            WHERE id BETWEEN coalesce((SELECT max(id) FROM outbox WHERE id <= ?1), ?1) AND ?2 AND last >= ?1 ORDER BY id
            """, ids.lowerBound, ids.upperBound, read: OutboxRowRange.init
        ).compactMap(\.self)
    }

    /// Returns the row range that contains a row; `nil` if there is no such row.
    func outboxRowRange(_ id: Int64) throws -> OutboxRowRange? { try outboxRowRanges(id...id).first }
}

extension StoreWriter {
    // MARK: - Inside `change`

    /// Splits a row range so that its rows with ids in `ids` become a row range of their own. There must be at least one such row.
    /// - Returns: the row range with exactly these rows.
    func isolate(_ ids: ClosedRange<Int64>, of rowRange: OutboxRowRange) throws -> OutboxRowRange {
        var part = rowRange
        part.ids = rowRange.ids.clamped(to: ids)
        if part.ids.upperBound < rowRange.ids.upperBound { try split(rowRange, before: part.ids.upperBound &+ 1) }
        if part.ids.lowerBound > rowRange.ids.lowerBound { try split(rowRange, before: part.ids.lowerBound) }
        return part
    }

    private func split(_ rowRange: OutboxRowRange, before id: Int64) throws {
        try self.run(
            """
            INSERT INTO outbox (id, last, peer, pack, state, createdAt, dueAt, settledAt, attempts, failures, nextAttemptAt, waitingFor, lastError,
                code, message)
            SELECT ?2, last, peer, pack, state, createdAt, dueAt, settledAt, attempts, failures, nextAttemptAt, waitingFor, lastError, code, message
            FROM outbox WHERE id = ?1
            """, rowRange.ids.lowerBound, id)
        try self.run("UPDATE outbox SET last = ? WHERE id = ?", id &- 1, rowRange.ids.lowerBound)
    }
}
