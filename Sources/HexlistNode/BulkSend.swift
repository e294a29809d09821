import HexlistAPI
public import HexlistModel
import HexlistStore
import NIOCore

/// Rows of one bulk send by what became of them.
public struct BulkCounts: Sendable, Equatable {
    public var stored = 0
    public var held = 0
    public var rejected = 0
    /// Failed, expired or cancelled.
    public var failed = 0
    public var queued = 0
    /// Of them all: rows that an earlier send with the same key had made.
    public var earlier = 0

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

/// A row of the outbox changed its state.
struct RowMove: Sendable {
    var id: Int64
    var peer: PeerID
    var from: OutboxState
    var to: OutboxState
}

/// A stream of hexes to one or more peers, from its first to its last receipt. Holds no hex: a bit for each row, counts,
/// and what is still to be told, which has a bound.
///
/// Everything but `init` runs on the node's loop.
public final class BulkSend: @unchecked Sendable {
    /// Ends that wait to be told, at most; those beyond are counted only.
    static let unreadLimit = 10_000
    /// Runs whose lines are known, at most: beyond, an end has no line.
    static let runLimit = 100_000

    /// Rows that follow each other and came in lines that do, one row a peer.
    struct Run {
        var first: Int64
        var line: Int
        var count: Int

        func contains(_ row: Int64) -> Bool { row >= first && row < first + Int64(count) }
    }

    let recipients: [PeerSighting]
    /// Refuses what failed within the last 3 minutes.
    let warns: Bool
    /// Whether each row is told, in the order it was taken in.
    let tellsAll: Bool
    private let onChange: @Sendable () -> Void
    private(set) var rows = RowSet()
    private(set) var counts = BulkCounts()
    /// Rows without an end, by peer.
    private(set) var pending: [PeerID: Int] = [:]
    private var unread: [Int64] = []
    /// Of new rows, ascending.
    private var runs: CircularBuffer<Run> = []
    /// Where each is told: those that are still to be, in the order they were taken in.
    private var untold: CircularBuffer<Run> = []
    /// Rows of the first of them that were.
    private var toldOfFirst = 0
    var lastProgress = ContinuousClock.Instant.now

    init(recipients: [PeerSighting], warns: Bool, tellsAll: Bool, onChange: @escaping @Sendable () -> Void) {
        self.recipients = recipients
        self.warns = warns
        self.tellsAll = tellsAll
        self.onChange = onChange
    }

    func accepted(_ row: SendOutcome, line: Int) {
        if tellsAll { append(row.outboxID, line: line, to: &untold) }
        guard rows.insert(row.outboxID) else { return }  // the same key twice in one stream
        counts.add(in: row.state)
        if row.earlier { counts.earlier += 1 }
        if row.state == .queued { pending[row.peer, default: 0] += 1 }
        // A row of an earlier run, which the same key brought up, lies before them and has no line.
        if runs.last.map({ $0.first + Int64($0.count) <= row.outboxID }) ?? true, runs.count < Self.runLimit {
            append(row.outboxID, line: line, to: &runs)
        }
    }

    private func append(_ row: Int64, line: Int, to runs: inout CircularBuffer<Run>) {
        if let last = runs.last, row == last.first + Int64(last.count), line == last.line + last.count / recipients.count {
            runs[runs.index(before: runs.endIndex)].count += 1
        } else {
            runs.append(Run(first: row, line: line, count: 1))
        }
    }

    /// Rows that changed; others than its own are passed over.
    func moved(_ moves: [RowMove]) {
        var isOwn = false
        for move in moves where rows.contains(move.id) {
            isOwn = true
            counts.add(-1, in: move.from)
            counts.add(in: move.to)
            if move.from == .queued { pending[move.peer, default: 0] -= 1 }
            if move.to == .queued { pending[move.peer, default: 0] += 1 }
            if !move.to.isDelivered, move.to != .queued, !tellsAll, unread.count < Self.unreadLimit { unread.append(move.id) }
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

    /// The next rows to be told, at most so many, of one run.
    func nextUntold(_ limit: Int) -> [Int64] {
        guard let run = untold.first else { return [] }
        let first = run.first + Int64(toldOfFirst)
        return Array(first..<first + Int64(min(limit, run.count - toldOfFirst)))
    }

    /// - Parameter count: of the rows `nextUntold` gave, from the first.
    /// - Returns: their lines.
    func told(_ count: Int) -> [Int] {
        guard count > 0, let run = untold.first else { return [] }
        let lines = (toldOfFirst..<toldOfFirst + count).map { run.line + $0 / recipients.count }
        toldOfFirst += count
        if toldOfFirst == run.count {
            untold.removeFirst()
            toldOfFirst = 0
        }
        return lines
    }

    /// The line a new row came in.
    func line(of row: Int64) -> Int? {
        var low = 0
        var high = runs.count
        while low < high {
            let middle = (low + high) / 2
            if runs[offset: middle].first <= row { low = middle + 1 } else { high = middle }
        }
        guard low > 0, case let run = runs[offset: low - 1], run.contains(row) else { return nil }
        return run.line + Int(row - run.first) / recipients.count
    }
}
