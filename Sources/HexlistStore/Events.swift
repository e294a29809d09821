internal import GRDB
public import HexlistModel

extension StoreReader {
    /// Events after a number, oldest first, runs taken apart. `next` is the number to go on from.
    ///
    /// - Parameters:
    ///   - number: the last one seen; 0 for all there are.
    ///   - limit: at most that many; fewer where their data have more than 4 MiB, but one always.
    ///   - types: only these; empty for all.
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
        var room = PageRoom(items: limit)
        defer { passedBytes += room.taken }
        while try statement.step() {
            let first = statement.int64(0)
            let count = Swift.max(1, statement.int64(1))
            let run = EventRow(
                number: first, at: statement.int64(2), type: EventType(rawValue: statement.text(3)),
                peer: statement.uuid(4).map(PeerID.init), hex: statement.optionalInt64(5),
                outboxID: statement.optionalInt64(6), data: statement.optionalText(7))
            // Each event of a run has the data of it.
            let size = statement.size(of: 7...7)
            var offset = Swift.max(0, wanted &- first)
            while offset < count {
                guard room.take(size) else { return Page(items: events, next: events.last?.number) }
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

    /// The number behind which the newest events begin.
    ///
    /// - Parameters:
    ///   - count: so many, or as many as there are.
    ///   - types: of these alone; empty for all.
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

    /// As `json_each` takes it; `nil` for all.
    private static func list(_ types: [EventType]) -> String? {
        types.isEmpty ? nil : "[" + types.map { "\"\($0.rawValue)\"" }.joined(separator: ",") + "]"
    }

    /// The smallest number that can still be read; the next one to come where there is none. Who asks for less is told
    /// what is gone (410).
    public func oldestEvent() throws -> Int64 {
        if let oldest = try first("SELECT number FROM event ORDER BY number LIMIT 1", read: { $0.int64(0) }) { return oldest }
        return try counts().lastEvent &+ 1
    }
}

/// The bounds of the event log.
enum EventLog {
    /// Bytes, as `cost` counts them: a million small rows. In 30 days one source of `EventAllowance` causes about half of it at most;
    /// events of hexes have no allowance.
    static let bytes: Int64 = 128 << 20

    /// Bytes an event that a peer causes writes at most: its text escaped, and a page.
    static let mostBytes: Int64 = 8_192

    /// Bytes a row is counted as: its numbers, its type and its UUID take about 64.
    static func cost(_ data: String?) -> Int64 { rowBytes &+ Int64(data?.utf8.count ?? 0) }

    /// The same in SQL.
    static let sqlCost = "\(rowBytes) + coalesce(length(CAST(data AS BLOB)), 0)"

    private static let rowBytes: Int64 = 64

    /// Rows one event makes go, at most: more than an event of the greatest length is worth of the smallest.
    static let prunedAtOnce = 256
}

extension HexStore {
    /// Records one event in one transaction with values that are remembered (`setMeta`).
    ///
    /// - Parameter data: a JSON object; the caller bounds it.
    /// - Returns: its number.
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
    ///   - data: a JSON object; the caller bounds it.
    ///   - reserve: bytes of the file system that are left free; `nil` for what is recorded in any case.
    ///   - completion: whether it was recorded, which the reserve may forbid; on the writer's thread.
    public func appendEvent(
        _ type: EventType, at time: Int64, peer: PeerID?, data: String?, leaving reserve: Int64?,
        completion: @escaping @Sendable (Result<Bool, any Error>) -> Void
    ) {
        submit(
            { writer in
                if let reserve, try writer.isDiskFull(reserve: reserve, writing: EventLog.mostBytes) { return false }
                try writer.appendEvent(type, at: time, peer: peer, data: data)
                return true
            }, completion: completion)
    }
}

extension StoreWriter {
    /// - Parameter data: a JSON object; the caller bounds it.
    /// - Returns: its number.
    @discardableResult
    func appendEvent(
        _ type: EventType, at time: Int64, peer: PeerID? = nil, hex: Int64? = nil, outboxID: Int64? = nil, data: String? = nil
    ) throws -> Int64 {
        try change { try record(type, at: time, peer: peer, hex: hex, outboxID: outboxID, data: data) }
    }

    /// Records a run of events that differ in their ids only, which count on from the first, as one row. Inside `change`.
    ///
    /// - Returns: the first number.
    @discardableResult
    func record(
        _ type: EventType, at time: Int64, count: Int = 1, peer: PeerID?, hex: Int64? = nil, outboxID: Int64? = nil,
        data: String? = nil
    ) throws -> Int64 {
        let number = tally.nextEvent
        try run(
            "INSERT INTO event (number, count, at, type, peer, hex, outbox, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            number, count, time, type.rawValue, peer?.uuid, hex, outboxID, data)
        tally.nextEvent &+= Int64(count)
        changed(.events)
        tally.eventBytes &+= EventLog.cost(data)
        try pruneEvents()
        return number
    }

    /// Drops the oldest rows while the log has more than its bytes. The newest one stays, whatever it takes. A log that is far over, as one
    /// of an older version may be, shrinks a bounded number of rows with each event, so that no write holds up the others.
    private func pruneEvents() throws {
        for _ in 0..<EventLog.prunedAtOnce where tally.eventBytes > eventLogBytes {
            let oldest = try first("SELECT number, count, \(EventLog.sqlCost) FROM event ORDER BY number LIMIT 1") {
                (number: $0.int64(0), next: $0.int64(0) &+ $0.int64(1), bytes: $0.int64(2))
            }
            guard let oldest, oldest.next < tally.nextEvent else { return }
            try dropEvents(upTo: oldest.number, bytes: oldest.bytes)
        }
    }

    /// - Parameters:
    ///   - number: the first number of the last row that goes.
    ///   - bytes: what those rows are counted as.
    /// - Returns: rows that went.
    @discardableResult
    func dropEvents(upTo number: Int64, bytes: Int64) throws -> Int {
        tally.eventBytes &-= bytes
        return try run("DELETE FROM event WHERE number <= ?", number)
    }

    /// One `hex.received` or `hex.held` for each id, as few rows as their runs allow. Inside `change`.
    func record(_ type: EventType, at time: Int64, peer: PeerID?, hexes: [Int64]) throws {
        for run in ConsecutiveRuns(hexes) { try record(type, at: time, count: run.count, peer: peer, hex: run.lowerBound) }
    }
}

/// Ids in the order given, taken together where each is one more than the one before.
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
