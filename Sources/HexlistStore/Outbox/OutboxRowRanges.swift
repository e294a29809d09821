internal import GRDB
internal import HexlistModel

/// A run of the outbox: rows of one peer with consecutive ids that lie in one pack and have all values but those of their hexes in common. It is one row
/// of the table `outbox`.
struct OutboxRowRange {
    /// The ids of its rows, as many at most as a pack has hexes.
    var ids: ClosedRange<Int64>
    /// The row of its peer.
    var peer: Int64
    var pack: Int64
    var state: OutboxState

    var count: Int64 { ids.upperBound &- ids.lowerBound &+ 1 }

    static let columns = "outbox.id, outbox.last, outbox.peer, outbox.pack, outbox.state"

    /// `nil` if a value is invalid, as in a damaged file: its rows are counted one by one, so it has no more than a pack has hexes.
    init?(_ row: SQLStatement) {
        let (id, last) = (row.int64(0), row.int64(1))
        guard OutboxPack.ids.contains(id), id <= last, last &- id < Int64(OutboxPack.mostHexes),
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
    /// The runs with rows in a range of ids, in order.
    func outboxRuns(_ ids: ClosedRange<Int64>) throws -> [OutboxRowRange] {
        try all(
            """
            SELECT \(OutboxRowRange.columns) FROM outbox
            WHERE id BETWEEN coalesce((SELECT max(id) FROM outbox WHERE id <= ?1), ?1) AND ?2 AND last >= ?1 ORDER BY id
            """, ids.lowerBound, ids.upperBound, read: OutboxRowRange.init
        ).compactMap(\.self)
    }

    /// The run with a row; `nil` if there is no such row.
    func outboxRun(_ id: Int64) throws -> OutboxRowRange? { try outboxRuns(id...id).first }
}

extension StoreWriter {
    // MARK: - Inside `change`

    /// Makes of the rows of a run that are in a range, of which there has to be one, a run of their own.
    func cut(_ run: OutboxRowRange, to ids: ClosedRange<Int64>) throws -> OutboxRowRange {
        var part = run
        part.ids = run.ids.clamped(to: ids)
        if part.ids.upperBound < run.ids.upperBound { try split(run, before: part.ids.upperBound &+ 1) }
        if part.ids.lowerBound > run.ids.lowerBound { try split(run, before: part.ids.lowerBound) }
        return part
    }

    private func split(_ run: OutboxRowRange, before id: Int64) throws {
        try self.run(
            """
            INSERT INTO outbox (id, last, peer, pack, state, createdAt, dueAt, settledAt, attempts, failures, nextAttemptAt, waitingFor, lastError,
                code, message)
            SELECT ?2, last, peer, pack, state, createdAt, dueAt, settledAt, attempts, failures, nextAttemptAt, waitingFor, lastError, code, message
            FROM outbox WHERE id = ?1
            """, run.ids.lowerBound, id)
        try self.run("UPDATE outbox SET last = ? WHERE id = ?", id &- 1, run.ids.lowerBound)
    }
}
