internal import HexlistModel

/// Allocates the ids of new outbox rows. Also predicts, without waiting for the writer's thread, whether the rows will be committed, so
/// that a hex can be sent before its row is committed.
///
/// Required by a benchmark bound (Docs/Decisions/0027-optimisations-pay-rent.md): without sending before the commit, the median latency of
/// one hex in flight is at least 3.1 times that of two plain C++ processes that do the same work (maximum 3).
struct OutboxAdmission {
    /// The next id. An id that was reported to a caller is never used again by this process, even if its transaction fails.
    private var next: Int64
    /// Number of rows that keep their body (queued, rejected or failed), as of the last commit.
    private var undelivered: Int64 = 0
    /// Total bytes of the bodies of the undelivered rows, as of the last commit.
    private var bytes: Int64 = 0
    /// Number of failed rows, as of the last commit.
    private var failed: Int64 = 0
    /// The rows to which ids were allocated and whose transactions have not ended.
    private var pending = OutboxDemand()
    /// Whether writes of new rows are expected to succeed. `false` after a transaction failed because of the disk, until a new outbox row
    /// is committed. Other commits do not reset it, because a smaller write may succeed on a disk that is nearly full.
    private var isDiskTrusted = true

    init(_ counters: StoreCounters) {
        next = counters.nextOutbox
        committed(counters)
    }

    /// Allocates ids for new rows.
    /// - Returns: the first id.
    mutating func begin(_ demand: OutboxDemand) -> Int64 {
        defer { next &+= demand.rows }
        pending.rows &+= demand.rows
        pending.bytes &+= demand.bytes
        return next
    }

    /// Records that the transaction of the rows from `begin` has ended.
    /// - Parameters:
    ///   - first: the result of `begin`.
    ///   - used: the number of ids that belong to rows or were reported to a caller. The remaining ids are allocated again, unless higher
    ///     ids were allocated meanwhile.
    ///   - isWritten: whether new rows were committed.
    mutating func ended(_ demand: OutboxDemand, first: Int64, used: Int64, isWritten: Bool) {
        pending.rows &-= demand.rows
        pending.bytes &-= demand.bytes
        if next == first &+ demand.rows { next = first &+ used }
        if isWritten { isDiskTrusted = true }
    }

    /// Whether new rows are expected to be committed: no transaction has failed because of the disk since an outbox row was last committed,
    /// no recently failed row can cause a refusal, and the outbox has space.
    func willFit(_ demand: OutboxDemand, _ options: EnqueueOptions) -> Bool {
        isDiskTrusted && !(options.warns && failed > 0) && OutboxPack.ids.contains(next &+ demand.rows)
            && options.bounds.take(rows: undelivered &+ pending.rows &+ demand.rows, bytes: bytes &+ pending.bytes &+ demand.bytes)
    }

    /// Updates the estimates from the counters of the last commit. Another program may have made that commit.
    mutating func committed(_ counters: StoreCounters) {
        next = max(next, counters.nextOutbox)
        undelivered = counters.outbox.undelivered
        bytes = counters.outboxBytes
        failed = counters.outbox.failed
    }

    mutating func diskFailed() { isDiskTrusted = false }
}

/// An upper bound of the space that hexes will take in the outbox.
struct OutboxDemand {
    /// Number of rows: one for each hex and recipient.
    var rows: Int64 = 0
    /// Total bytes of the bodies.
    var bytes: Int64 = 0

    init() {}

    /// - Parameter start: the number of hexes to skip at the beginning.
    init(_ hexes: [PreparedHexes], from start: Int, _ options: EnqueueOptions) {
        let count = hexes.reduce(-start) { $0 + $1.count }
        rows = Int64(max(0, count)) &* Int64(options.recipients.count)
        bytes = hexes.reduce(0) { $0 &+ Int64($1.bodies.count) }
    }
}
