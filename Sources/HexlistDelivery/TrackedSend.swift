public import HexlistEventLoop
public import HexlistModel

/// Rows of one send by what became of them.
public struct BulkCounts: Sendable, Equatable {
    public var stored = 0
    public var held = 0
    public var rejected = 0
    /// Failed, expired or cancelled.
    public var failed = 0
    public var queued = 0
    /// The rows, out of all, that an earlier send with the same key had made.
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

/// The rows of one send, from the first one queued to the last one's end: one hex to one or more peers, or a stream of hexes. Holds no hex:
/// a bit for each row, counts, and what is still to be told, which has a bound.
///
/// Everything but `init` runs on the node's loop; that is what makes it `Sendable`.
public final class TrackedSend: @unchecked Sendable {
    public enum Kind: Sendable {
        /// One hex of `bytes` bytes, with a row for each peer. A peer's receipt ends its row, whether written yet or not.
        case single(bytes: Int)
        /// Hexes as they come. Reports only bad ends, or each row, in the order they were taken in.
        case stream(tellsAll: Bool)
    }

    /// Ends that wait to be told, at most; those beyond are counted only.
    static let unreadLimit = 10_000

    public let peers: [PeerID]
    let kind: Kind
    private let onChange: @Sendable () -> Void
    public private(set) var rows = RowSet()
    public private(set) var counts = BulkCounts()
    /// Rows without an end, by peer.
    public private(set) var pending: [PeerID: Int] = [:]
    /// Rows of a single hex that their peers have.
    public private(set) var delivered: [Int64: OutboxState] = [:]
    /// Rows of a stream with a bad end that was not told yet.
    private var unread: [Int64] = []
    /// Lines of a stream; empty for a single hex.
    private var lines: RowLines
    public private(set) var lastProgress: ContinuousClock.Instant
    private let clocks: Clocks

    /// - Parameters:
    ///   - onChange: something is to be looked at again. On the node's loop.
    public init(to peers: [PeerID], _ kind: Kind, _ clocks: Clocks, onChange: @escaping @Sendable () -> Void) {
        self.peers = peers
        self.kind = kind
        self.clocks = clocks
        lastProgress = clocks.now
        self.onChange = onChange
        lines = RowLines(rowsPerLine: peers.count)
    }

    /// Bytes of the one hex all rows are of; `nil` for a stream.
    public var bytes: Int? { if case .single(let bytes) = kind { bytes } else { nil } }

    var followsReceipts: Bool { bytes != nil }

    private var tellsAll: Bool { if case .stream(tellsAll: true) = kind { true } else { false } }

    // MARK: Events

    /// Takes a row that was queued. One it has already is counted once: the same key twice in one stream, whose lines are both told where all
    /// are, or a row that went ahead.
    /// - Parameters:
    ///   - isEarlier: whether an earlier send with the same key had queued it.
    ///   - line: of the stream.
    public func accepted(_ row: Int64, for peer: PeerID, _ state: OutboxState, isEarlier: Bool = false, line: Int) {
        if tellsAll { lines.tell(row, line: line) }
        guard rows.insert(row) else { return }
        counts.add(in: state)
        if isEarlier { counts.earlier += 1 }
        if state == .queued { pend(peer, 1) }
        if bytes == nil { lines.add(row, line: line) }
    }

    /// Takes rows that changed, as the store has them now; others than its own are passed over.
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
            if move.from == .queued { pend(move.peer, -own) }
            if move.to == .queued { pend(move.peer, own) }
            guard !move.to.isDelivered, move.to != .queued, bytes == nil, !tellsAll else { continue }
            for id in move.ids where rows.contains(id) && unread.count < Self.unreadLimit { unread.append(id) }
        }
        if isOwn { progressed() }
    }

    /// Takes receipts that are not in the store yet.
    func received(_ receipts: [OutboxMove]) {
        if followsReceipts { moved(receipts) }
    }

    private func pend(_ peer: PeerID, _ change: Int) {
        pending[peer, default: 0] += change
        if change < 0, pending[peer] == 0 { pending[peer] = nil }
    }

    public func progressed() {
        lastProgress = clocks.now
        onChange()
    }

    /// Makes the caller look again, because what its rows wait for may have changed.
    func changed() { onChange() }

    // MARK: Reports

    /// Rows with other ends than `stored` and `held` that nobody was told of yet.
    public func takeUnread() -> [Int64] {
        defer { unread = [] }
        return unread
    }

    /// The next rows to be told, at most so many, of lines that follow each other.
    public func nextUntold(_ limit: Int) -> [Int64] { lines.nextUntold(limit) }

    /// - Parameter count: of the rows `nextUntold` gave, from the first.
    /// - Returns: their lines.
    public func told(_ count: Int) -> [Int] { lines.told(count) }

    /// The line a new row came in.
    public func line(of row: Int64) -> Int? { lines.line(of: row) }
}
