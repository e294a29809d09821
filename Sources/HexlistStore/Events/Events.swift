internal import GRDB
public import HexlistModel

extension StoreReader {
    /// Reads a page of the events after a number, oldest first. A row of the table that represents several events is expanded.
    ///
    /// - Parameters:
    ///   - number: the number of the last event that the caller has; 0 for all events.
    ///   - limit: maximum number of events. Fewer are returned if their data exceed 4 MiB, but at least one.
    ///   - types: the types to read; empty for all.
    public func eventPage(since number: Int64, limit: Int, of types: [EventType] = []) throws -> Page<EventRow> {
        guard limit > 0 else { return Page(items: [], next: nil) }
        let statement = try SQLStatement(
            """
            SELECT number, count, at, type, peer, hex, outbox, data FROM event
            WHERE number >= coalesce((SELECT max(number) FROM event WHERE number <= ?1), 0)
                AND (?2 IS NULL OR type IN (SELECT value FROM json_each(?2)))
            ORDER BY number
            """, on: db)
        defer { statement.reset() }
        let wanted = Swift.max(0, number) &+ 1
        try statement.bind([wanted, Self.list(types)])
        var events: [EventRow] = []
        var remaining = PageCapacity(items: limit)
        defer { passedBytes += remaining.taken }
        while try statement.step() {
            let first = statement.int64(0)
            let count = Swift.max(1, statement.int64(1))
            let run = EventRow(
                number: first, at: statement.int64(2), type: EventType(rawValue: statement.text(3)),
                peer: statement.uuid(4).map(PeerID.init), hex: statement.optionalInt64(5),
                outboxID: statement.optionalInt64(6), data: statement.optionalText(7))
            // Each event of the page gets a copy of the row's data.
            let size = statement.size(of: 7...7)
            var offset = Swift.max(0, wanted &- first)
            while offset < count {
                guard remaining.take(size) else { return Page(items: events, next: events.last?.number) }
                var event = run
                event.number = first &+ offset
                event.hex = run.hex.map { $0 &+ offset }
                event.outboxID = run.outboxID.map { $0 &+ offset }
                events.append(event)
                offset += 1
            }
        }
        return Page(items: events, next: nil)
    }

    /// Returns the value of `since` with which `eventPage` reads the `count` newest events.
    ///
    /// - Parameters:
    ///   - count: the number of newest events. If the log has fewer, all are read.
    ///   - types: the types to count; empty for all.
    public func eventNumber(beforeLast count: Int, of types: [EventType] = []) throws -> Int64 {
        var number = try counts().lastEvent
        var left = Int64(count)
        guard left > 0 else { return number }
        let statement = try SQLStatement(
            "SELECT number, count FROM event WHERE ?1 IS NULL OR type IN (SELECT value FROM json_each(?1)) ORDER BY number DESC", on: db)
        defer { statement.reset() }
        try statement.bind([Self.list(types)])
        while try statement.step() {
            let (first, count) = (statement.int64(0), Swift.max(1, statement.int64(1)))
            number = first &- 1 &+ Swift.max(0, count &- left)
            left &-= count
            guard left > 0 else { break }
        }
        return number
    }

    /// Returns the types as a JSON array for `json_each`; `nil` for all types.
    private static func list(_ types: [EventType]) -> String? {
        types.isEmpty ? nil : "[" + types.map { "\"\($0.rawValue)\"" }.joined(separator: ",") + "]"
    }

    /// Returns the number of the oldest event in the log; the number of the next event if the log is empty. The API answers requests for
    /// earlier events with HTTP status 410.
    public func oldestEvent() throws -> Int64 {
        if let oldest = try first("SELECT number FROM event ORDER BY number LIMIT 1", read: { $0.int64(0) }) { return oldest }
        return try counts().lastEvent &+ 1
    }
}

/// The limits of the event log.
enum EventLog {
    /// Maximum bytes of the event log, as `cost` counts them: enough for about a million small rows. `EventAllowance` limits the events of
    /// each source (all strangers, or one kind of event of a peer), so that 30 days of them fill at most about half of the log. Events of
    /// hexes have no such limit.
    static let bytes: Int64 = 128 << 20

    /// Maximum bytes that an event caused by a peer takes on disk: its escaped text and a page of the database.
    static let maxEventBytes: Int64 = 8_192

    /// Returns the bytes that a row counts as: its data, and 64 bytes for numbers, type and UUID.
    static func cost(_ data: String?) -> Int64 { rowBytes &+ Int64(data?.utf8.count ?? 0) }

    /// SQL expression for `cost`.
    static let sqlCost = "\(rowBytes) + coalesce(length(CAST(data AS BLOB)), 0)"

    private static let rowBytes: Int64 = 64

    /// Maximum number of old rows that are deleted for one new event. Even 256 rows of the smallest size count as more bytes than the
    /// largest event, so an oversized log shrinks with each event.
    static let maxPrunedRows = 256
}

extension HexStore {
    /// Records one event and sets named values (`setMeta`) in the same transaction.
    ///
    /// - Parameter data: a JSON object, whose length the caller bounds.
    /// - Returns: the event's number.
    @discardableResult
    public func appendEvent(
        _ type: EventType, at time: Int64, peer: PeerID? = nil, hex: Int64? = nil, outboxID: Int64? = nil, data: String? = nil,
        remembering values: [String: String?] = [:]
    ) async throws -> Int64 {
        try await write { writer in
            for (key, value) in values { try writer.setMeta(key, value) }
            return try writer.appendEvent(type, at: time, peer: peer, hex: hex, outboxID: outboxID, data: data)
        }
    }

    /// Records one event, without waiting. Several calls record their events in the order of the calls.
    ///
    /// - Parameters:
    ///   - data: a JSON object, whose length the caller bounds.
    ///   - reserve: bytes of the file system to leave free; `nil` to record the event in any case.
    ///   - completion: called on the writer's thread, with `false` if the event was not recorded because the disk has less than `reserve`
    ///     free.
    public func appendEvent(
        _ type: EventType, at time: Int64, peer: PeerID?, data: String?, leaving reserve: Int64?,
        completion: @escaping @Sendable (Result<Bool, any Error>) -> Void
    ) {
        submit(
            { writer in
                if let reserve, try writer.isDiskFull(reserve: reserve, writing: EventLog.maxEventBytes) { return false }
                try writer.appendEvent(type, at: time, peer: peer, data: data)
                return true
            }, completion: completion)
    }
}

extension StoreWriter {
    /// Records one event.
    /// - Parameter data: a JSON object, whose length the caller bounds.
    /// - Returns: the event's number.
    @discardableResult
    func appendEvent(
        _ type: EventType, at time: Int64, peer: PeerID? = nil, hex: Int64? = nil, outboxID: Int64? = nil, data: String? = nil
    ) throws -> Int64 {
        try change { try record(type, at: time, peer: peer, hex: hex, outboxID: outboxID, data: data) }
    }

    /// Records one or more events as one row of the table. The events may differ only in `hex` or `outboxID`, which increase by one from
    /// event to event. Call inside `change`.
    ///
    /// - Returns: the number of the first event.
    @discardableResult
    func record(
        _ type: EventType, at time: Int64, count: Int = 1, peer: PeerID?, hex: Int64? = nil, outboxID: Int64? = nil,
        data: String? = nil
    ) throws -> Int64 {
        let number = counters.nextEvent
        try run(
            "INSERT INTO event (number, count, at, type, peer, hex, outbox, data, lived) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            number, count, time, type.rawValue, peer?.uuid, hex, outboxID, data, lived)
        counters.nextEvent &+= Int64(count)
        changed(type == .hexReceived ? [.events, .inbox] : .events)
        counters.eventBytes &+= EventLog.cost(data)
        try pruneEvents()
        return number
    }

    /// Deletes the oldest rows while the log exceeds its maximum size, except the newest row. Deletes a limited number of rows for each new
    /// event, so that an oversized log of an older version does not delay other requests.
    private func pruneEvents() throws {
        for _ in 0..<EventLog.maxPrunedRows where counters.eventBytes > eventLogBytes {
            let oldest = try first("SELECT number, count, \(EventLog.sqlCost) FROM event ORDER BY number LIMIT 1") {
                (number: $0.int64(0), next: $0.int64(0) &+ $0.int64(1), bytes: $0.int64(2))
            }
            guard let oldest, oldest.next < counters.nextEvent else { return }
            try dropEvents(upTo: oldest.number, bytes: oldest.bytes)
        }
    }

    /// Deletes the oldest rows of the event log.
    /// - Parameters:
    ///   - number: the number of the last row to delete.
    ///   - bytes: the bytes that the rows count as.
    /// - Returns: the number of deleted rows.
    @discardableResult
    func dropEvents(upTo number: Int64, bytes: Int64) throws -> Int {
        counters.eventBytes &-= bytes
        return try run("DELETE FROM event WHERE number <= ?", number)
    }

    /// Records a `hex.received` or `hex.held` event for each hex id. Events with consecutive ids share one row. Call inside `change`.
    func record(_ type: EventType, at time: Int64, peer: PeerID?, hexes: [Int64]) throws {
        for run in ConsecutiveRuns(hexes) { try record(type, at: time, count: run.count, peer: peer, hex: run.lowerBound) }
    }
}

/// Splits a list of ids into ranges of consecutive ids, in the given order.
struct ConsecutiveRuns: Sequence, IteratorProtocol {
    private var ids: ArraySlice<Int64>

    init(_ ids: [Int64]) { self.ids = ids[...] }

    mutating func next() -> Range<Int64>? {
        guard let first = ids.popFirst() else { return nil }
        var end = first &+ 1
        while let id = ids.first, id == end {
            ids.removeFirst()
            end &+= 1
        }
        return first < end ? first..<end : nil
    }
}
