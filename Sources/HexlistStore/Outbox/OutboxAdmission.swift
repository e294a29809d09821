internal import HexlistModel

/// Allocates the ids of new rows of the outbox, and estimates outside the writer's thread whether there is room for them. So a row can be sent
/// before it is written (decision 21).
struct OutboxAdmission {
    /// The lowest id that was not given. Ids are given here only. One that somebody was told of is never given again by this process, whether its row
    /// comes to be or not.
    private var next: Int64
    /// The rows that keep their body, the bytes of the bodies, and the failed rows, as of the last commit.
    private var undelivered: Int64 = 0
    private var bytes: Int64 = 0
    private var failed: Int64 = 0
    /// Rows that were given ids, and are not committed yet or will not be, with the bytes of their bodies.
    private var underWay = OutboxCapacity()
    /// Whether what is to be written is likely to be: not after a transaction that the disk failed, until a new row of the outbox is written. Another
    /// success says little: for the little it wrote there may be room yet.
    private var isDiskTrusted = true

    init(_ tally: StoreCounters) {
        next = tally.nextOutbox
        committed(tally)
    }

    /// Gives ids.
    /// - Returns: the first one.
    mutating func begin(_ room: OutboxCapacity) -> Int64 {
        defer { next &+= room.rows }
        underWay.rows &+= room.rows
        underWay.bytes &+= room.bytes
        return next
    }

    /// - Parameters:
    ///   - first: what `begin` returned.
    ///   - told: the number of ids that were told of. The others are given again, unless later ones were given meanwhile.
    ///   - isWritten: whether new rows were.
    mutating func ended(_ room: OutboxCapacity, first: Int64, told: Int64, isWritten: Bool) {
        underWay.rows &-= room.rows
        underWay.bytes &-= room.bytes
        if next == first &+ room.rows { next = first &+ told }
        if isWritten { isDiskTrusted = true }
    }

    /// Whether rows of new hexes will be written, as far as can be known: nothing of them is to be looked up, and there is room.
    func isSure(of room: OutboxCapacity, _ terms: EnqueueOptions) -> Bool {
        isDiskTrusted && !(terms.warns && failed > 0) && OutboxPack.ids.contains(next &+ room.rows)
            && terms.bounds.take(rows: undelivered &+ underWay.rows &+ room.rows, bytes: bytes &+ underWay.bytes &+ room.bytes)
    }

    /// Takes over the counters of the last commit, which may be another program's.
    mutating func committed(_ tally: StoreCounters) {
        next = max(next, tally.nextOutbox)
        undelivered = tally.outbox.undelivered
        bytes = tally.outboxBytes
        failed = tally.outbox.failed
    }

    mutating func diskFailed() { isDiskTrusted = false }
}

/// The most that hexes take in the outbox.
struct OutboxCapacity {
    /// One a hex and recipient.
    var rows: Int64 = 0
    /// Of bodies.
    var bytes: Int64 = 0

    init() {}

    /// - Parameter start: the number of hexes at the beginning that are passed over.
    init(_ hexes: [PreparedHexes], from start: Int, _ terms: EnqueueOptions) {
        let count = hexes.reduce(-start) { $0 + $1.count }
        rows = Int64(max(0, count)) &* Int64(terms.recipients.count)
        bytes = hexes.reduce(0) { $0 &+ Int64($1.bodies.count) }
    }
}
