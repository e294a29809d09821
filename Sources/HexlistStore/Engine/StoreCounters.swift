internal import GRDB
internal import HexlistModel

/// The counters row, the only row of the table `tally`: the next ids and the counts of records.
struct StoreCounters: Equatable {
    var nextHex: Int64 = 1
    var nextInbox: Int64 = 1
    var nextOutbox: Int64 = 1
    var nextEvent: Int64 = 1
    var inbox: Int64 = 0
    var unread: Int64 = 0
    var held: Int64 = 0
    var heldBytes: Int64 = 0
    var mine: Int64 = 0
    var outbox = OutboxCounts()
    var outboxBytes: Int64 = 0
    /// The day of `dayHexes` and `dayBytes`, in days since 1970.
    var day: Int64 = 0
    /// Number of hexes that all strangers together sent into the inbox on `day` (`receiveFrom: everyone`); `dayBytes` is their size.
    var dayHexes: Int64 = 0
    var dayBytes: Int64 = 0
    /// Bytes of the event log, as `EventLog` counts them.
    var eventBytes: Int64 = 0
    /// The highest hex id that the search index covers.
    var indexed: Int64 = 0
    /// The number of rows in the table `reindex`: indexed hexes that need a new index entry (`SearchIndex`).
    var reindex: Int64 = 0
    /// The time of `StoreOpenTimeClock` at which the row was saved.
    var lived: Int64 = 0

    /// The valid range of the next ids. It ends at half of the greatest hex id whose link ids do not overflow (`HexInserter.linksPerHex`).
    private static let numbers: ClosedRange<Int64> = 1...1 << 49

    init() {}

    /// The number of hexes in a location.
    subscript(location: HexLocation) -> Int64 {
        get {
            switch location {
            case .inbox: inbox
            case .held: held
            case .mine: mine
            }
        }
        set {
            switch location {
            case .inbox: inbox = newValue
            case .held: held = newValue
            case .mine: mine = newValue
            }
        }
    }

    init(on db: Database) throws {
        let row = try SQLStatement(
            """
            SELECT nextHex, nextInbox, nextOutbox, nextEvent, inbox, unread, held, heldBytes, mine,
                outQueued, outStored, outHeld, outRejected, outExpired, outCancelled, outFailed, outboxBytes,
                day, dayHexes, dayBytes, eventBytes, indexed, reindex, lived
            FROM tally WHERE id = 1
            """, on: db)
        defer { row.reset() }
        guard try row.step() else { throw StoreFault.lost }
        nextHex = row.int64(0)
        nextInbox = row.int64(1)
        nextOutbox = row.int64(2)
        nextEvent = row.int64(3)
        guard [nextHex, nextInbox, nextOutbox, nextEvent].allSatisfy(Self.numbers.contains) else { throw StoreFault.numbers }
        inbox = row.int64(4)
        unread = row.int64(5)
        held = row.int64(6)
        heldBytes = row.int64(7)
        mine = row.int64(8)
        outbox = OutboxCounts(
            queued: row.int64(9), stored: row.int64(10), held: row.int64(11), rejected: row.int64(12),
            expired: row.int64(13), cancelled: row.int64(14), failed: row.int64(15))
        outboxBytes = row.int64(16)
        day = row.int64(17)
        dayHexes = row.int64(18)
        dayBytes = row.int64(19)
        eventBytes = row.int64(20)
        indexed = row.int64(21)
        reindex = row.int64(22)
        lived = row.int64(23)
    }

    func save(on db: Database) throws {
        let update = try SQLStatement(
            """
            UPDATE tally SET nextHex = ?, nextInbox = ?, nextOutbox = ?, nextEvent = ?, inbox = ?, unread = ?, held = ?,
                heldBytes = ?, mine = ?, outQueued = ?, outStored = ?, outHeld = ?, outRejected = ?, outExpired = ?,
                outCancelled = ?, outFailed = ?, outboxBytes = ?, day = ?, dayHexes = ?, dayBytes = ?, eventBytes = ?,
                indexed = ?, reindex = ?, lived = ?
            WHERE id = 1
            """, on: db)
        try update.bind([
            nextHex, nextInbox, nextOutbox, nextEvent, inbox, unread, held, heldBytes, mine,
            outbox.queued, outbox.stored, outbox.held, outbox.rejected, outbox.expired, outbox.cancelled, outbox.failed,
            outboxBytes, day, dayHexes, dayBytes, eventBytes, indexed, reindex, lived,
        ])
        try update.run()
    }

    var counts: StoreCounts {
        StoreCounts(
            inbox: inbox, unread: unread, held: held, heldBytes: heldBytes, mine: mine, outbox: outbox,
            outboxBytes: outboxBytes, lastEvent: nextEvent &- 1, unindexed: unindexed)
    }
}

/// Unsaved increments of one peer's counters.
struct PeerCounterIncrements: Equatable {
    var hexes: Int64 = 0
    var unread: Int64 = 0
    var held: Int64 = 0
    var heldBytes: Int64 = 0
    var queued: Int64 = 0
}
