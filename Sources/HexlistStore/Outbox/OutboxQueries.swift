internal import GRDB
public import HexlistModel

extension StoreReader {
    /// Returns a row of the outbox; `nil` if there is no row with this id.
    public func outboxRow(_ id: Int64) throws -> OutboxRow? { try outboxRows([id]).first }

    /// Returns the rows of the outbox with these ids, lowest id first. Missing rows are skipped.
    public func outboxRows(_ ids: [Int64]) throws -> [OutboxRow] {
        let statement = try SQLStatement(
            """
            SELECT \(OutboxRow.columns), json_each.value FROM json_each(?)
                CROSS JOIN outbox ON outbox.id = (SELECT max(id) FROM outbox WHERE id <= json_each.value) AND outbox.last >= json_each.value
                \(OutboxRow.joins)
            """, on: db)
        defer { statement.reset() }
        try statement.bind([jsonArray(Set(ids).sorted())])
        var reading = PackReader()
        var rows: [OutboxRow] = []
        while try statement.step() {
            guard reading.read(statement, from: OutboxRow.packColumn) else { continue }
            let id = statement.int64(OutboxRow.lastColumn + 1)
            if let row = OutboxRow(statement, id, reading.hex(of: id)) { rows.append(row) }
        }
        return rows
    }

    /// Returns the body of a row's hex, a HexJM as JSON; `nil` if there is no row with this id, or the body is not kept any more. Bodies of
    /// delivered rows are deleted once no other row needs their pack.
    public func outboxBody(_ id: Int64) throws -> [UInt8]? {
        let statement = try SQLStatement(
            """
            SELECT \(OutboxRow.columns), outboxPack.bodies FROM outbox \(OutboxRow.joins)
            WHERE outbox.id = (SELECT max(id) FROM outbox WHERE id <= ?1) AND outbox.last >= ?1
            """, on: db)
        defer { statement.reset() }
        try statement.bind([id])
        var reading = PackReader()
        guard try statement.step(), reading.read(statement, from: OutboxRow.packColumn) else { return nil }
        return reading.body(of: reading.hex(of: id), in: nil, statement, from: OutboxRow.packColumn).map(Array.init)
    }

    /// Returns a page of the rows that match a filter, in order of delivery or newest first.
    ///
    /// - Parameters:
    ///   - newestFirst: whether the highest id comes first. Otherwise rows are in order of delivery, lowest id first.
    ///   - limit: maximum number of rows, up to 10 000. Fewer are returned if their texts exceed 4 MiB, but at least one.
    ///   - after: the `next` of the previous page; 0 for the first page.
    public func outboxPage(
        _ filter: OutboxFilter = OutboxFilter(), newestFirst: Bool = false, limit: Int = 20, after: Int64 = 0
    ) throws -> Page<OutboxRow> {
        let limit = pageLimit(limit)
        let end = after > 0 ? after : Int64.max
        var found =
            try newestFirst ? newestRangeIDs(filter, limit: limit + 1, before: end) : rowRangeIDs(filter, limit: limit + 1, after: after)
        if let time = filter.offeredAt, filter.states != nil {
            let offered = try offeredIDs(filter.peer, at: time, newestFirst: newestFirst, limit: limit + 1, after: after, before: end)
            let all = Set(found + offered)
            found = Array((newestFirst ? all.sorted(by: >) : all.sorted()).prefix(limit + 1))
        }
        let statement = try SQLStatement(
            """
            SELECT \(OutboxRow.columns) FROM outbox \(OutboxRow.joins)
            WHERE outbox.id IN (SELECT value FROM json_each(?)) ORDER BY outbox.id \(newestFirst ? "DESC" : "")
            """, on: db)
        defer { statement.reset() }
        try statement.bind([jsonArray(found)])
        var reading = PackReader()
        var rows: [OutboxRow] = []
        var remaining = PageCapacity(items: limit)
        defer { passedBytes += remaining.taken }
        while try statement.step() {
            guard reading.read(statement, from: OutboxRow.packColumn), let range = OutboxRowRange(statement) else { continue }
            let ids =
                newestFirst
                ? Array((range.ids.lowerBound...min(range.ids.upperBound, end &- 1)).reversed())
                : Array(max(range.ids.lowerBound, after &+ 1)...range.ids.upperBound)
            for id in ids {
                let hex = reading.hex(of: id)
                guard remaining.take(OutboxRow.size(statement) + hex.size) else { return Page(items: rows, next: rows.last?.id) }
                if let row = OutboxRow(statement, id, hex) { rows.append(row) }
            }
        }
        return Page(items: rows, next: nil)
    }

    /// Returns the id from which row ranges have to be read to find all rows after `id`: the first id of the range that may contain `id`.
    private func firstRowRange(after id: Int64) throws -> Int64 {
        try first("SELECT coalesce(max(id), ?1) FROM outbox WHERE id <= ?1", id) { $0.int64(0) } ?? id
    }

    /// Returns the first ids of the row ranges that match a filter and have rows after an id, in order of delivery, up to `limit`.
    private func rowRangeIDs(_ filter: OutboxFilter, limit: Int, after: Int64) throws -> [Int64] {
        let states = filter.states ?? Set(OutboxState.allCases)
        let start = try firstRowRange(after: after)
        if let peer = filter.peer {
            guard let row = try peerRow(peer) else { return [] }
            let ids = try states.flatMap { state in
                try all(
                    "SELECT id FROM outbox WHERE peer = ? AND state = ? AND id >= ? AND last > ? ORDER BY id LIMIT ?",
                    row.id, state.rawValue, start, after, limit
                ) { $0.int64(0) }
            }
            return Array(ids.sorted().prefix(limit))
        }
        // SQLite uses the partial index `outboxUndelivered` only if the query repeats the condition of the index word for word.
        let undelivered = states.isSubset(of: OutboxFilter.undelivered) ? "AND state IN ('queued', 'rejected', 'failed')" : ""
        let list = "[" + states.map { "\"\($0.rawValue)\"" }.sorted().joined(separator: ",") + "]"
        return try all(
            """
            SELECT id FROM outbox
            WHERE id >= ? AND last > ? \(undelivered) AND state IN (SELECT value FROM json_each(?)) ORDER BY id LIMIT ?
            """, start, after, list, limit
        ) { $0.int64(0) }
    }

    /// Returns the first ids of the row ranges that match a filter and have rows before an id, newest first, up to `limit`.
    private func newestRangeIDs(_ filter: OutboxFilter, limit: Int, before: Int64) throws -> [Int64] {
        let states = filter.states ?? Set(OutboxState.allCases)
        if let peer = filter.peer {
            guard let row = try peerRow(peer) else { return [] }
            let ranges = try states.flatMap { state in
                try all(
                    "SELECT id FROM outbox WHERE peer = ? AND state = ? AND id < ? ORDER BY id DESC LIMIT ?", row.id, state.rawValue,
                    before, limit
                ) { $0.int64(0) }
            }
            return Array(ranges.sorted(by: >).prefix(limit))
        }
        // SQLite uses the partial index `outboxUndelivered` only if the query repeats the condition of the index word for word.
        let undelivered = states.isSubset(of: OutboxFilter.undelivered) ? "AND state IN ('queued', 'rejected', 'failed')" : ""
        let list = "[" + states.map { "\"\($0.rawValue)\"" }.sorted().joined(separator: ",") + "]"
        return try all(
            """
            SELECT id FROM outbox
            WHERE id < ? \(undelivered) AND state IN (SELECT value FROM json_each(?)) ORDER BY id DESC LIMIT ?
            """, before, list, limit
        ) { $0.int64(0) }
    }

    /// Returns the ids of the first `stored` rows whose files the peer can still fetch, up to `limit`. A row with files is a row range of
    /// its own.
    /// - Parameters:
    ///   - time: a time of `StoreOpenTimeClock`.
    ///   - after: the id that the page begins after, if the oldest rows come first.
    ///   - before: the id that the page begins before, if the newest rows come first.
    private func offeredIDs(
        _ peer: PeerID?, at time: Int64, newestFirst: Bool, limit: Int, after: Int64, before: Int64
    ) throws -> [Int64] {
        let recipient = try peer.map { try peerRow($0)?.id ?? 0 }  // no peer has the id 0
        return try all(
            """
            SELECT outbox.id FROM outboxFiles JOIN outbox ON outbox.id = outboxFiles.outbox
            WHERE outboxFiles.outbox > ?1 AND outboxFiles.outbox < ?2 AND outboxFiles.fetched < outboxFiles.files
                AND NOT outboxFiles.isWithdrawn AND outboxFiles.ends > ?3 AND outbox.state = 'stored' AND outbox.peer = coalesce(?4, outbox.peer)
            ORDER BY outboxFiles.outbox \(newestFirst ? "DESC" : "") LIMIT ?5
            """, newestFirst ? 0 : after, newestFirst ? before : Int64.max, time, recipient, limit
        ) { $0.int64(0) }
    }

    /// Returns the next queued rows for a peer with their bodies, in order of delivery.
    ///
    /// - Parameters:
    ///   - id: the id of the last row that was read before; 0 for the first batch.
    ///   - limit: maximum number of rows.
    ///   - maxBytes: maximum total bytes of the bodies. The body of the first row may be longer.
    ///   - longest: maximum bytes of one body. Rows with longer bodies are skipped, because the peer does not accept them yet.
    public func outboxBatch(
        _ peer: PeerID, after id: Int64, limit: Int, maxBytes: Int, longest: Int = .max
    ) throws -> OutgoingBatch {
        var batch = OutgoingBatch(items: [], hasMore: false)
        guard let row = try peerRow(peer), limit > 0 else { return batch }
        let statement = try SQLStatement(
            """
            SELECT \(OutboxRowRange.columns), \(PackReader.columns), outboxPack.bodies
            FROM outbox INDEXED BY outboxPeer CROSS JOIN outboxPack ON outboxPack.id = outbox.pack
            WHERE outbox.peer = ? AND outbox.state = 'queued' AND outbox.id >= ? AND outbox.last > ? ORDER BY outbox.id
            """, on: db)
        defer { statement.reset() }
        try statement.bind([row.id, try firstRowRange(after: id), id])
        batch.items.reserveCapacity(Swift.min(limit, 1_024))
        var reading = PackReader()
        var bytes = 0
        while try statement.step() {
            guard reading.read(statement, from: 5), let rowRange = OutboxRowRange(statement) else { continue }
            for row in max(rowRange.ids.lowerBound, id &+ 1)...rowRange.ids.upperBound {
                let hex = reading.hex(of: row)
                guard hex.entry.body.count <= longest else { continue }
                guard batch.items.count < limit, batch.items.isEmpty || bytes + hex.entry.body.count <= maxBytes else {
                    batch.hasMore = true
                    return batch
                }
                // If long bodies are skipped, `body` gets no range, because not all bodies of the range are read.
                guard let body = reading.body(of: hex, in: longest == .max ? rowRange : nil, statement, from: 5) else { continue }
                bytes += body.count
                batch.items.append(OutgoingHex(id: row, messageID: MessageID(hex.messageID), body: body))
            }
        }
        return batch
    }

    /// Counts the rows with ids in these ranges, by state.
    public func outboxCounts(of ranges: [ClosedRange<Int64>]) throws -> OutboxCounts {
        var counts = OutboxCounts()
        for range in ranges {
            for rowRange in try outboxRowRanges(range) { counts[rowRange.state] &+= Int64(rowRange.ids.clamped(to: range).count) }
        }
        return counts
    }

    /// Returns the time at which the oldest queued row was enqueued, in milliseconds since 1970; `nil` if no row is queued. Takes one index
    /// lookup for each peer with queued rows.
    public func oldestQueued() throws -> Int64? {
        try first(
            """
            SELECT min(outbox.createdAt) FROM outbox WHERE outbox.id IN (
                SELECT (SELECT min(id) FROM outbox WHERE outbox.peer = peer.id AND outbox.state = 'queued') FROM peer WHERE peer.queued > 0)
            """
        ) { $0.optionalInt64(0) } ?? nil
    }

    /// Returns the rows of a peer that failed within a range of times (milliseconds since 1970), with their bodies, in the order in which
    /// they failed.
    func failed(of peer: PeerID, in times: ClosedRange<Int64>) throws -> [(row: OutboxRow, body: ArraySlice<UInt8>)] {
        guard let row = try peerRow(peer) else { return [] }
        let statement = try SQLStatement(
            """
            SELECT \(OutboxRow.columns), outboxPack.bodies FROM outbox \(OutboxRow.joins)
            WHERE outbox.peer = ? AND outbox.state = 'failed' AND outbox.settledAt BETWEEN ? AND ? ORDER BY outbox.settledAt
            """, on: db)
        defer { statement.reset() }
        try statement.bind([row.id, times.lowerBound, times.upperBound])
        var reading = PackReader()
        var rows: [(row: OutboxRow, body: ArraySlice<UInt8>)] = []
        while try statement.step() {
            guard reading.read(statement, from: OutboxRow.packColumn), let rowRange = OutboxRowRange(statement) else { continue }
            for id in rowRange.ids {
                let hex = reading.hex(of: id)
                guard let body = reading.body(of: hex, in: rowRange, statement, from: OutboxRow.packColumn),
                    let row = OutboxRow(statement, id, hex)
                else { continue }
                rows.append((row, body))
            }
        }
        return rows
    }
}

extension OutboxRow {
    static let joins = "JOIN peer ON peer.id = outbox.peer JOIN outboxPack ON outboxPack.id = outbox.pack"
    static let columns = """
        \(OutboxRowRange.columns), peer.uuid, outbox.createdAt, outbox.dueAt, outbox.settledAt, outbox.attempts, outbox.failures,
        outbox.nextAttemptAt, outbox.waitingFor, outbox.lastError, outbox.code, outbox.message, \(PackReader.columns)
        """
    /// Indices of two columns: the first column of the pack, and the last column of all.
    fileprivate static let (packColumn, lastColumn): (Int32, Int32) = (16, 21)

    /// Returns the total bytes of the texts that all rows of a row range share.
    fileprivate static func size(_ row: SQLStatement) -> Int { row.size(of: 4...15) }

    /// Creates a row from its row range and its hex; `nil` if the UUID or the state is invalid, as in a damaged file.
    fileprivate init?(_ row: SQLStatement, _ id: Int64, _ hex: PackReader.Hex) {
        guard let state = OutboxState(rawValue: row.text(4)), let peer = row.uuid(5) else { return nil }
        self.init(
            id: id, messageID: MessageID(hex.messageID), peer: PeerID(peer), digest: Array(hex.hexes.digest(at: hex.position)),
            state: state, bytes: hex.entry.body.count, createdAt: row.int64(6), dueAt: row.int64(7), settledAt: row.optionalInt64(8),
            attempts: row.int(9), failures: row.int(10), nextAttemptAt: row.optionalInt64(11), waitingFor: row.optionalText(12),
            lastError: row.optionalText(13), code: row.optionalText(14), message: row.optionalText(15),
            subject: hex.hexes.subject(at: hex.position))
    }
}

extension StoreReader {
    /// Whether one of these rows of a peer is still queued.
    public func hasQueuedRows(_ rows: [ClosedRange<Int64>], of peer: PeerID) throws -> Bool {
        for range in rows {
            let found = try first(
                """
                SELECT 1 FROM outbox WHERE peer = (SELECT id FROM peer WHERE uuid = ?) AND state = 'queued' AND id <= ? AND last >= ? LIMIT 1
                """, peer.uuid, range.upperBound, range.lowerBound
            ) { $0.int(0) }
            if found != nil { return true }
        }
        return false
    }
}
