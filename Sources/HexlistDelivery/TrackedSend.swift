public import HexlistEventLoop
public import HexlistModel

/// The number of rows of a send in each state.
public struct BulkCounts: Sendable, Equatable {
    public var stored = 0
    public var held = 0
    public var rejected = 0
    /// Rows that failed, expired or were cancelled.
    public var failed = 0
    public var queued = 0
    /// The number of accepted rows that an earlier send with the same idempotency key queued.
    public var earlier = 0

    public var accepted: Int { stored + held + rejected + failed + queued }

    public init() {}

    public mutating func add(_ count: Int = 1, in state: OutboxState) {
        switch state {
        case .queued, .sending: queued += count
        case .stored: stored += count
        case .held: held += count
        case .rejected: rejected += count
        case .expired, .cancelled, .failed: failed += count
        }
    }
}

/// The progress of a send: one hex to one or more peers, or a stream of hexes. Has a bit for each row, counts, and a bounded number of rows
/// to report, but no hexes.
///
/// Confined to the node's event loop, except `init`; that makes it `Sendable`.
public final class TrackedSend: @unchecked Sendable {
    public enum Kind: Sendable {
        /// One hex of `bytes` bytes, with a row for each peer. A row is complete with the peer's receipt, even before the receipt is durable.
        case single(bytes: Int)
        /// A stream of hexes. Reports failures only, or all rows in the order in which they were accepted.
        case stream(reportsAll: Bool)
    }

    /// Maximum number of failed rows that wait to be reported. Further ones are only counted.
    static let failureLimit = 10_000

    public let peers: [PeerID]
    let kind: Kind
    private let onChange: @Sendable () -> Void
    public private(set) var rows = RowSet()
    public private(set) var counts = BulkCounts()
    /// The number of queued rows for each peer.
    public private(set) var pending: [PeerID: Int] = [:]
    /// The delivered rows of a single hex.
    public private(set) var delivered: [Int64: OutboxState] = [:]
    /// The failed rows of a stream that were not reported yet.
    private var failures: [Int64] = []
    /// The rows of a stream that are not reported yet, with the numbers of their lines in the input. Empty for a single hex.
    private var lines: UnreportedRows
    public private(set) var lastProgress: ContinuousClock.Instant
    private let clocks: Clocks

    /// - Parameter onChange: called on the node's event loop after each change.
    public init(to peers: [PeerID], _ kind: Kind, _ clocks: Clocks, onChange: @escaping @Sendable () -> Void) {
        self.peers = peers
        self.kind = kind
        self.clocks = clocks
        lastProgress = clocks.now
        self.onChange = onChange
        lines = UnreportedRows(rowsPerLine: peers.count)
    }

    /// The size of a single hex; `nil` for a stream.
    public var bytes: Int? { if case .single(let bytes) = kind { bytes } else { nil } }

    var followsReceipts: Bool { bytes != nil }

    private var reportsAll: Bool { if case .stream(reportsAll: true) = kind { true } else { false } }

    // MARK: Events

    /// Adds a row that was queued. A row may be added twice, if a stream has the same key on two lines or if the row was sent before its
    /// commit. It is counted once; two lines with the same key are both reported if the stream reports all rows.
    /// - Parameters:
    ///   - isEarlier: whether an earlier send with the same key queued it.
    ///   - line: the line of the stream.
    public func accepted(_ row: Int64, for peer: PeerID, _ state: OutboxState, isEarlier: Bool = false, line: Int) {
        if reportsAll { lines.addUnreported(row, line: line) }
        guard rows.insert(row) else { return }
        counts.add(in: state)
        if isEarlier { counts.earlier += 1 }
        if state == .queued { changePending(peer, by: 1) }
        if bytes == nil { lines.add(row, line: line) }
    }

    /// Updates the states of rows after a commit. Rows of other sends are ignored.
    func moved(_ moves: [OutboxMove]) {
        var isOwn = false
        for move in moves {
            let own = rows.count(in: move.ids) - (delivered.isEmpty ? 0 : move.ids.count { delivered[$0] != nil })
            guard own > 0 else { continue }
            isOwn = true
            if move.to.isDelivered, followsReceipts {
                for id in move.ids where rows.contains(id) && delivered[id] == nil { delivered[id] = move.to }
            }
            counts.add(-own, in: move.from)
            counts.add(own, in: move.to)
            if move.from == .queued { changePending(move.peer, by: -own) }
            if move.to == .queued { changePending(move.peer, by: own) }
            guard !move.to.isDelivered, move.to != .queued, bytes == nil, !reportsAll else { continue }
            for id in move.ids where rows.contains(id) && failures.count < Self.failureLimit { failures.append(id) }
        }
        if isOwn { progressed() }
    }

    /// Updates the states of rows after receipts that are not durable yet.
    func received(_ receipts: [OutboxMove]) {
        if followsReceipts { moved(receipts) }
    }

    private func changePending(_ peer: PeerID, by change: Int) {
        pending[peer, default: 0] += change
        if change < 0, pending[peer] == 0 { pending[peer] = nil }
    }

    public func progressed() {
        lastProgress = clocks.now
        onChange()
    }

    /// Notifies the caller, because the conditions for waiting may have changed.
    func changed() { onChange() }

    // MARK: Reports

    /// Removes and returns the failed rows that were not reported yet.
    public func takeFailures() -> [Int64] {
        defer { failures = [] }
        return failures
    }

    /// The next rows to report, at most `limit`, of consecutive lines.
    public func nextUnreported(_ limit: Int) -> [Int64] { lines.nextUnreported(limit) }

    /// Marks the first `count` rows returned by `nextUnreported` as reported.
    /// - Returns: their lines.
    public func markReported(_ count: Int) -> [Int] { lines.markReported(count) }

    /// The line of a row in the stream; `nil` if the row was queued by an earlier send, or there are too many runs.
    public func line(of row: Int64) -> Int? { lines.line(of: row) }
}
