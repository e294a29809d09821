internal import HexlistModel

/// Allocates the ids of new outbox rows, and predicts outside the writer's thread whether they will be written, so that a hex can be sent
/// before its row is committed.
///
/// Stays because of a bound: without sending before the commit, one hex in flight takes 3.1 floors or more at p50
/// (Docs/Decisions/0027-optimisations-pay-rent.md).
struct OutboxAdmission {
    /// The next id. An id that was reported to a caller is never used again by this process, even if its transaction fails.
    private var next: Int64
    /// Rows that keep their body, as of the last commit.
    private var undelivered: Int64 = 0
    /// Bytes of the bodies of these rows.
    private var bytes: Int64 = 0
    /// Failed rows, as of the last commit.
    private var failed: Int64 = 0
    /// Rows with an id that are not committed yet.
    private var pending = OutboxCapacity()
    /// `false` from a transaction that failed because of the disk until the next new outbox row is committed. A smaller write may succeed
    /// on a disk that is nearly full, so it does not count.
    private var isDiskTrusted = true

    init(_ counters: StoreCounters) {
        next = counters.nextOutbox
        committed(counters)
    }

    /// Allocates ids for new rows.
    /// - Returns: the first id.
    mutating func begin(_ capacity: OutboxCapacity) -> Int64 {
        defer { next &+= capacity.rows }
        pending.rows &+= capacity.rows
        pending.bytes &+= capacity.bytes
        return next
    }

    /// Ends the transaction of rows from `begin`.
    /// - Parameters:
    ///   - first: the result of `begin`.
    ///   - used: the number of ids that rows have or that were reported to a caller. The others are reused, unless later ids were
    ///     allocated.
    ///   - isWritten: whether new rows are committed.
    mutating func ended(_ capacity: OutboxCapacity, first: Int64, used: Int64, isWritten: Bool) {
        pending.rows &-= capacity.rows
        pending.bytes &-= capacity.bytes
        if next == first &+ capacity.rows { next = first &+ used }
        if isWritten { isDiskTrusted = true }
    }

    /// Whether new rows will be written as far as is known: no lookup can refuse them, and the outbox has capacity.
    func willFit(_ capacity: OutboxCapacity, _ options: EnqueueOptions) -> Bool {
        isDiskTrusted && !(options.warns && failed > 0) && OutboxPack.ids.contains(next &+ capacity.rows)
            && options.bounds.take(rows: undelivered &+ pending.rows &+ capacity.rows, bytes: bytes &+ pending.bytes &+ capacity.bytes)
    }

    /// Updates the estimates from the counters of the last commit, which may be another program's.
    mutating func committed(_ counters: StoreCounters) {
        next = max(next, counters.nextOutbox)
        undelivered = counters.outbox.undelivered
        bytes = counters.outboxBytes
        failed = counters.outbox.failed
    }

    mutating func diskFailed() { isDiskTrusted = false }
}

/// The space that hexes need in the outbox at most.
struct OutboxCapacity {
    /// Rows: one for each hex and recipient.
    var rows: Int64 = 0
    /// Bytes of bodies.
    var bytes: Int64 = 0

    init() {}

    /// - Parameter start: the number of hexes to skip at the beginning.
    init(_ hexes: [PreparedHexes], from start: Int, _ options: EnqueueOptions) {
        let count = hexes.reduce(-start) { $0 + $1.count }
        rows = Int64(max(0, count)) &* Int64(options.recipients.count)
        bytes = hexes.reduce(0) { $0 &+ Int64($1.bodies.count) }
    }
}
