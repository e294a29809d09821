internal import GRDB
public import HexlistModel

extension StoreReader {
    /// A row of the outbox; `nil` if there is none with that id.
    public func outboxRow(_ id: Int64) throws -> OutboxRow? { try outboxRows([id]).first }

    /// The rows of the outbox with these ids, in order; missing ones are skipped.
    public func outboxRows(_ ids: [Int64]) throws -> [OutboxRow] {
        try all(
            "SELECT \(OutboxRow.columns) FROM \(OutboxRow.tables) WHERE outbox.id IN (SELECT value FROM json_each(?)) ORDER BY outbox.id",
            jsonArray(ids), read: OutboxRow.init
        ).compactMap(\.self)
    }

    /// A page of the outbox in order of delivery, oldest first.
    ///
    /// - Parameters:
    ///   - limit: the most rows, up to 10 000. There are fewer if their texts exceed 4 MiB, but always one.
    ///   - after: the `next` of the previous page.
    public func outboxPage(_ filter: OutboxFilter = OutboxFilter(), limit: Int = 20, after: Int64 = 0) throws -> Page<OutboxRow> {
        let limit = pageLimit(limit)
        let states = filter.states ?? Set(OutboxState.allCases)
        let list = "[" + states.map { "\"\($0.rawValue)\"" }.sorted().joined(separator: ",") + "]"
        var sql = "SELECT \(OutboxRow.columns) FROM \(OutboxRow.tables) WHERE outbox.id > ?"
        var values: [any SQLValue] = [after]
        if let peer = filter.peer {
            sql += " AND outbox.peer = ?"
            values.append(try peerRow(peer)?.id ?? -1)
            if states == [.queued] { sql += " AND outbox.state = 'queued'" }  // uses the queue's own index
        } else if states.isSubset(of: OutboxFilter.undelivered) {
            sql += " AND outbox.id IN (SELECT id FROM outboxBody WHERE id > ? ORDER BY id)"
            values.append(after)
        }
        sql += " AND outbox.state IN (SELECT value FROM json_each(?)) ORDER BY outbox.id LIMIT ?"
        values += [list, limit + 1] as [any SQLValue]

        let statement = try SQLStatement(sql, on: db)
        defer { statement.reset() }
        try statement.bind(values)
        var rows: [OutboxRow] = []
        var room = PageRoom(items: limit)
        defer { passedBytes += room.taken }
        while try statement.step() {
            guard room.take(OutboxRow.size(statement)) else { return Page(items: rows, next: rows.last?.id) }
            if let row = OutboxRow(statement) { rows.append(row) }
        }
        return Page(items: rows, next: nil)
    }

    /// The next rows waiting for a peer, in order of delivery.
    ///
    /// - Parameters:
    ///   - id: the last row already read; 0 for the first.
    ///   - limit: the most rows.
    ///   - maxBytes: the most bytes of bodies; the first row is read whatever its size.
    ///   - longest: the length above which a body is skipped, because the peer does not take it yet.
    public func outboxBatch(
        _ peer: PeerID, after id: Int64, limit: Int, maxBytes: Int, longest: Int = .max
    ) throws -> OutboxBatch {
        var batch = OutboxBatch(items: [], hasMore: false)
        guard let row = try peerRow(peer), limit > 0 else { return batch }
        let statement = try SQLStatement(
            """
            SELECT outbox.id, outbox.messageID, outbox.bytes, outboxBody.body
            FROM outbox INDEXED BY outboxQueue CROSS JOIN outboxBody ON outboxBody.id = outbox.id
            WHERE outbox.peer = ? AND outbox.state = 'queued' AND outbox.id > ? AND outbox.bytes <= ?
            ORDER BY outbox.id LIMIT ?
            """, on: db)
        defer { statement.reset() }
        try statement.bind([row.id, id, longest, limit])
        batch.items.reserveCapacity(Swift.min(limit, 1_024))
        var bytes = 0
        var count = 0
        while try statement.step() {
            let (sum, overflow) = bytes.addingReportingOverflow(statement.int(2))
            guard batch.items.isEmpty || (!overflow && sum <= maxBytes) else {
                batch.hasMore = true
                return batch
            }
            bytes = sum
            count += 1
            guard let messageID = statement.uuid(1) else { continue }
            batch.items.append(OutboxItem(id: statement.int64(0), messageID: MessageID(messageID), body: statement.bytes(3)))
        }
        batch.hasMore = count == limit && !batch.items.isEmpty
        return batch
    }

    /// The number of rows in each state, among those with ids in the ranges.
    ///
    /// One pass without intermediate storage: `GROUP BY` would sort the states of all rows in memory, 48 bytes per row.
    public func outboxCounts(of ranges: [ClosedRange<Int64>]) throws -> OutboxCounts {
        var counts = OutboxCounts()
        let states = OutboxState.allCases
        let columns = states.map { "count(*) FILTER (WHERE state = '\($0.rawValue)')" }.joined(separator: ", ")
        let statement = try SQLStatement("SELECT \(columns) FROM outbox WHERE id BETWEEN ? AND ?", on: db)
        defer { statement.reset() }
        for range in ranges {
            try statement.bind([range.lowerBound, range.upperBound])
            while try statement.step() {
                for (column, state) in states.enumerated() { counts[state] &+= statement.int64(Int32(column)) }
            }
        }
        return counts
    }

    /// When the oldest row that is not delivered yet was queued, in milliseconds since 1970; `nil` if there is none. One look at an index for
    /// each peer that has rows.
    public func oldestQueued() throws -> Int64? {
        try first(
            """
            SELECT min(outbox.createdAt) FROM outbox WHERE outbox.id IN (
                SELECT (SELECT min(id) FROM outbox WHERE outbox.peer = peer.id AND outbox.state = 'queued') FROM peer WHERE peer.queued > 0)
            """
        ) { $0.optionalInt64(0) } ?? nil
    }

    /// A row with the same content for the same peer that `failed` since a given time, about which a repeated send warns.
    func recentlyFailed(_ peer: PeerID, digest: [UInt8], since time: Int64) throws -> OutboxRow? {
        guard let row = try peerRow(peer) else { return nil }
        return try first(
            """
            SELECT \(OutboxRow.columns) FROM \(OutboxRow.tables)
            WHERE outbox.peer = ? AND outbox.digest = ? AND outbox.state = 'failed' AND outbox.settledAt >= ?
            ORDER BY outbox.settledAt DESC LIMIT 1
            """, row.id, digest, time, read: OutboxRow.init) ?? nil
    }
}

extension OutboxRow {
    static let tables = "outbox JOIN peer ON peer.id = outbox.peer"
    static let columns = """
        outbox.id, outbox.messageID, peer.uuid, outbox.digest, outbox.state, outbox.bytes, outbox.createdAt, outbox.dueAt,
        outbox.settledAt, outbox.attempts, outbox.failures, outbox.nextAttemptAt, outbox.waitingFor, outbox.lastError,
        outbox.code, outbox.message, outbox.subject
        """

    /// The bytes of a row's texts.
    static func size(_ row: SQLStatement) -> Int { row.size(of: 0...16) }

    /// `nil` if a UUID or the state is invalid, as in a damaged file.
    init?(_ row: SQLStatement) {
        guard let messageID = row.uuid(1), let peer = row.uuid(2), let state = OutboxState(rawValue: row.text(4)) else { return nil }
        self.init(
            id: row.int64(0), messageID: MessageID(messageID), peer: PeerID(peer), digest: row.bytes(3), state: state,
            bytes: row.int(5), createdAt: row.int64(6), dueAt: row.int64(7), settledAt: row.optionalInt64(8),
            attempts: row.int(9), failures: row.int(10), nextAttemptAt: row.optionalInt64(11), waitingFor: row.optionalText(12),
            lastError: row.optionalText(13), code: row.optionalText(14), message: row.optionalText(15),
            subject: row.optionalText(16))
    }
}
