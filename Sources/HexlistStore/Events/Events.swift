internal import GRDB
public import HexlistModel

extension StoreReader {
    /// Reads the events after a number, oldest first. A row with several events is expanded.
    ///
    /// - Parameters:
    ///   - number: the last number already seen; 0 for all events.
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
        var remaining = PageLimit(items: limit)
        defer { passedBytes += remaining.taken }
        while try statement.step() {
            let first = statement.int64(0)
            let count = Swift.max(1, statement.int64(1))
            let run = EventRow(
                number: first, at: statement.int64(2), type: EventType(rawValue: statement.text(3)),
                peer: statement.uuid(4).map(PeerID.init), hex: statement.optionalInt64(5),
                outboxID: statement.optionalInt64(6), data: statement.optionalText(7))
            // All events of a row have its data.
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

    /// The number before the `count` newest events, as for `since` of `eventPage`.
    ///
    /// - Parameters:
    ///   - count: the number of newest events; fewer if the log has fewer.
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

    /// The types as an array for `json_each`; `nil` for all types.
    private static func list(_ types: [EventType]) -> String? {
        types.isEmpty ? nil : "[" + types.map { "\"\($0.rawValue)\"" }.joined(separator: ",") + "]"
    }

    /// The number of the oldest event in the log; the next number if the log is empty. The API answers requests for earlier events with
    /// 410.
    public func oldestEvent() throws -> Int64 {
        if let oldest = try first("SELECT number FROM event ORDER BY number LIMIT 1", read: { $0.int64(0) }) { return oldest }
        return try counts().lastEvent &+ 1
    }
}

/// The bounds of the event log.
enum EventLog {
    /// Maximum bytes of the log, as `cost` counts them: about a million small rows. One source of `EventAllowance` can cause about half of
    /// it in 30 days; events of hexes have no allowance.
    static let bytes: Int64 = 128 << 20

    /// Maximum bytes that an event caused by a peer writes: its escaped text and a page.
    static let maxEventBytes: Int64 = 8_192

    /// The bytes that a row counts as: its data, and 64 for numbers, type and UUID.
    static func cost(_ data: String?) -> Int64 { rowBytes &+ Int64(data?.utf8.count ?? 0) }

    /// SQL: the expression for `cost`.
    static let sqlCost = "\(rowBytes) + coalesce(length(CAST(data AS BLOB)), 0)"

    private static let rowBytes: Int64 = 64

    /// Maximum number of rows deleted for one new event. As many of the smallest rows count more bytes than the largest event.
    static let maxPrunedRows = 256
}

extension HexStore {
    /// Records one event and sets named values (`setMeta`), in one transaction.
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

    /// Records one event, in the order of the calls.
    ///
    /// - Parameters:
    ///   - data: a JSON object, whose length the caller bounds.
    ///   - reserve: bytes of the file system to leave free; `nil` to record the event in any case.
    ///   - completion: called on the writer's thread; `false` if the event was not recorded because of the reserve.
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
    /// - Parameter data: a JSON object, whose length the caller bounds.
    /// - Returns: the event's number.
    @discardableResult
    func appendEvent(
        _ type: EventType, at time: Int64, peer: PeerID? = nil, hex: Int64? = nil, outboxID: Int64? = nil, data: String? = nil
    ) throws -> Int64 {
        try change { try record(type, at: time, peer: peer, hex: hex, outboxID: outboxID, data: data) }
    }

    /// Records one or more events as one row. Several events differ only in their ids, which increase by one. Call inside `change`.
    ///
    /// - Returns: the first number.
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
        changed(.events)
        counters.eventBytes &+= EventLog.cost(data)
        try pruneEvents()
        return number
    }

    /// Deletes the oldest rows while the log exceeds its maximum. The newest row always stays. Deletes a bounded number of rows for each
    /// event, so that the oversized log of an older version does not delay other requests.
    private func pruneEvents() throws {
        for _ in 0..<EventLog.maxPrunedRows where counters.eventBytes > eventLogBytes {
            let oldest = try first("SELECT number, count, \(EventLog.sqlCost) FROM event ORDER BY number LIMIT 1") {
                (number: $0.int64(0), next: $0.int64(0) &+ $0.int64(1), bytes: $0.int64(2))
            }
            guard let oldest, oldest.next < counters.nextEvent else { return }
            try dropEvents(upTo: oldest.number, bytes: oldest.bytes)
        }
    }

    /// - Parameters:
    ///   - number: the number of the last row to delete.
    ///   - bytes: the bytes that the rows count as.
    /// - Returns: the number of deleted rows.
    @discardableResult
    func dropEvents(upTo number: Int64, bytes: Int64) throws -> Int {
        counters.eventBytes &-= bytes
        return try run("DELETE FROM event WHERE number <= ?", number)
    }

    /// Records one `hex.received` or `hex.held` for each id, with one row for consecutive ids. Call inside `change`.
    func record(_ type: EventType, at time: Int64, peer: PeerID?, hexes: [Int64]) throws {
        for run in ConsecutiveRuns(hexes) { try record(type, at: time, count: run.count, peer: peer, hex: run.lowerBound) }
    }
}

/// The ranges of consecutive ids in a list, in the given order.
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
