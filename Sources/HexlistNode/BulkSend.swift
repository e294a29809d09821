public import HexlistModel
import HexlistStore

/// Rows of one bulk send by what became of them.
public struct BulkCounts: Sendable, Equatable {
    public var stored = 0
    public var held = 0
    public var rejected = 0
    /// Failed, expired or cancelled.
    public var failed = 0
    public var queued = 0

    public var accepted: Int { stored + held + rejected + failed + queued }

    public init() {}

    mutating func add(_ count: Int = 1, in state: OutboxState) {
        switch state {
        case .queued, .sending: queued += count
        case .stored: stored += count
        case .held: held += count
        case .rejected: rejected += count
        case .expired, .cancelled, .failed: failed += count
        }
    }
}

/// A hex of a stream that was not taken into the outbox.
public struct RefusedHex: Sendable {
    public var line: Int
    public var error: HexlistError
}

/// A row of the outbox came to an end.
struct RowEnd: Sendable {
    var id: Int64
    var peer: PeerID
    var state: OutboxState
}

/// A stream of hexes to one or more peers, from its first to its last receipt. Holds no hex: ranges of rows, counts, and
/// what is still to be told, which has a bound.
///
/// Everything but `init` runs on the node's loop.
public final class BulkSend: @unchecked Sendable {
    /// Ends that wait to be told, at most; those beyond are counted only.
    static let unreadLimit = 10_000

    let recipients: [PeerSighting]
    /// Refuses what failed within the last 3 minutes.
    let warns: Bool
    private let onChange: @Sendable () -> Void
    private(set) var rows = RowRanges()
    private(set) var counts = BulkCounts()
    /// Rows without an end, by peer.
    private(set) var pending: [PeerID: Int] = [:]
    private var unread: [Int64] = []
    /// Where a row's line is not the one that follows from the run before.
    private var lineRuns: [(row: Int64, line: Int)] = []
    var lastProgress = ContinuousClock.Instant.now

    init(recipients: [PeerSighting], warns: Bool, onChange: @escaping @Sendable () -> Void) {
        self.recipients = recipients
        self.warns = warns
        self.onChange = onChange
    }

    func accepted(_ row: SendOutcome, line: Int) {
        guard rows.insert(row.outboxID) else { return }  // the same key twice in one stream
        counts.add(in: row.state)
        if row.state == .queued { pending[row.peer, default: 0] += 1 }
        // In the order of lines; rows of an earlier run may lie anywhere, and have no line then.
        if self.line(of: row.outboxID) != line, lineRuns.last.map({ $0.row < row.outboxID }) ?? true {
            lineRuns.append((row.outboxID, line))
        }
    }

    /// Rows that came to an end; others than its own are passed over.
    func ended(_ ends: [RowEnd]) {
        var isOwn = false
        for end in ends where rows.contains(end.id) {
            isOwn = true
            counts.queued -= 1
            counts.add(in: end.state)
            pending[end.peer, default: 1] -= 1
            if !end.state.isDelivered, unread.count < Self.unreadLimit { unread.append(end.id) }
        }
        if isOwn { progressed() }
    }

    func progressed() {
        lastProgress = .now
        onChange()
    }

    /// What its rows wait for may be another thing now.
    func changed() { onChange() }

    /// Rows with other ends than `stored` and `held` that nobody was told of yet.
    func takeUnread() -> [Int64] {
        defer { unread = [] }
        return unread
    }

    /// The line a row came in. Rows of one hex follow each other, one a peer.
    func line(of row: Int64) -> Int? {
        var low = 0
        var high = lineRuns.count
        while low < high {
            let middle = (low + high) / 2
            if lineRuns[middle].row <= row { low = middle + 1 } else { high = middle }
        }
        guard low > 0 else { return nil }
        let run = lineRuns[low - 1]
        return run.line + Int(row - run.row) / max(1, recipients.count)
    }
}
