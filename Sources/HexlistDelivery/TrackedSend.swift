public import HexlistEventLoop
public import HexlistModel

/// The number of rows of a send in each state.
public struct SendCounts: Sendable, Equatable {
    public var stored = 0
    public var held = 0
    public var rejected = 0
    /// Rows that failed, expired or were cancelled.
    public var failed = 0
    public var queued = 0
    /// The number of accepted rows that existed already, queued by an earlier send with the same idempotency key.
    public var earlier = 0

    /// The number of accepted rows: the sum of all states.
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

/// The progress of a send: one hex to one or more peers, or a stream of hexes. In memory are one bit per row, the counts, and a bounded
/// number of rows to report, but no hexes.
///
/// Used on the node's event loop only, except `init`; that makes it `Sendable`.
public final class TrackedSend: @unchecked Sendable {
    public enum Kind: Sendable {
        /// One hex of `bytes` bytes, with a row for each peer. A row is complete once the peer's receipt arrives, even before the receipt
        /// is durable.
        case single(bytes: Int)
        /// A stream of hexes. The caller gets reports on all rows in the order in which they were accepted, or on failed rows only.
        case stream(reportsAll: Bool)
    }

    /// Maximum number of failed rows that wait to be reported. More failed rows are counted but not reported.
    static let failureLimit = 10_000

    public let peers: [PeerID]
    let kind: Kind
    private let onChange: @Sendable () -> Void
    public private(set) var rows = RowSet()
    public private(set) var counts = SendCounts()
    /// The number of rows of each peer that are still queued. Peers without any have no entry.
    public private(set) var pending: [PeerID: Int] = [:]
    /// The rows of a single hex that were delivered, with their states.
    public private(set) var delivered: [Int64: OutboxState] = [:]
    /// The failed rows of a stream that were not reported yet.
    private var failures: [Int64] = []
    /// The rows of a stream that were not reported yet, with their line numbers in the input. Empty for a single hex.
    private var lines: RowLineNumbers
    /// The instant of the last progress: a change of a row's state, or an accepted row.
    public private(set) var lastProgress: ContinuousClock.Instant
    private let clocks: Clocks

    /// - Parameter onChange: called on the node's event loop after each change.
    public init(to peers: [PeerID], _ kind: Kind, _ clocks: Clocks, onChange: @escaping @Sendable () -> Void) {
        self.peers = peers
        self.kind = kind
        self.clocks = clocks
        lastProgress = clocks.now
        self.onChange = onChange
        lines = RowLineNumbers(rowsPerLine: peers.count)
    }

    /// The size of a single hex; `nil` for a stream.
    public var bytes: Int? { if case .single(let bytes) = kind { bytes } else { nil } }

    /// Whether receipts count before they are durable. True for single hexes.
    var followsReceipts: Bool { bytes != nil }

    private var reportsAll: Bool { if case .stream(reportsAll: true) = kind { true } else { false } }

    // MARK: Events

    /// Adds a row that was queued. A row may be added twice: a stream may have the same idempotency key on two lines, and a row that is
    /// sent before its commit is added again after it. The row is counted once. Lines with the same key are reported separately if the
    /// stream reports all rows.
    /// - Parameters:
    ///   - isEarlier: whether an earlier send with the same idempotency key queued the row.
    ///   - line: the line number of the hex in the stream.
    public func accepted(_ row: Int64, for peer: PeerID, _ state: OutboxState, isEarlier: Bool = false, line: Int) {
        if reportsAll { lines.addUnreported(row, line: line) }
        guard rows.insert(row) else { return }
        counts.add(in: state)
        if isEarlier { counts.earlier += 1 }
        if state == .queued { changePending(peer, by: 1) }
        if bytes == nil { lines.add(row, line: line) }
    }

    /// Updates the states of rows after a commit. Rows of other sends are ignored.
    func moved(_ moves: [OutboxStateChange]) {
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
    func received(_ receipts: [OutboxStateChange]) {
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

    /// Notifies the caller, so that it checks again whether waiting makes sense.
    func changed() { onChange() }

    // MARK: Reports

    /// Removes and returns the failed rows that were not reported yet.
    public func takeFailures() -> [Int64] {
        defer { failures = [] }
        return failures
    }

    /// Returns the next rows to report, of consecutive lines.
    /// - Parameter limit: maximum number of rows.
    public func nextUnreported(_ limit: Int) -> [Int64] { lines.nextUnreported(limit) }

    /// Records that the first `count` rows returned by `nextUnreported` were reported.
    /// - Returns: the line numbers of these rows.
    public func markReported(_ count: Int) -> [Int] { lines.markReported(count) }

    /// The line number of a row in the stream; `nil` if an earlier send queued the row, or if `RowLineNumbers.runLimit` was reached.
    public func line(of row: Int64) -> Int? { lines.line(of: row) }
}
