public import HexlistModel

/// The recipients of queued hexes, and what holds for their rows.
public struct EnqueueOptions: Sendable {
    /// The recipients, each once. One that the store does not remember is remembered with its first row.
    public var recipients: [ContactInfo]
    /// Whether a hex without a key is refused if the same one failed for a recipient less than `warningTime` ago.
    public var warns: Bool
    /// Milliseconds since 1970.
    public var now: Int64
    /// Milliseconds after which a row that was not delivered expires.
    public var lifetime: Int64
    public var bounds: OutboxBounds

    /// 3 minutes in milliseconds.
    static let warningTime: Int64 = 180_000

    public init(recipients: [ContactInfo], warns: Bool = false, now: Int64, lifetime: Int64, bounds: OutboxBounds = OutboxBounds()) {
        self.recipients = recipients
        self.warns = warns
        self.now = now
        self.lifetime = lifetime
        self.bounds = bounds
    }
}

/// The row of a queued hex for one recipient.
public enum Enqueued: Sendable, Equatable {
    /// A new row, by its id.
    case new(Int64)
    /// The row of an earlier send with the same key, which had failed, was rejected, cancelled or expired. It waits again, at its old position
    /// in the order, with no failures counted.
    case requeued(Int64, from: OutboxState)
    /// The row of an earlier send with the same key, which waits or was delivered. It is unchanged.
    indirect case existing(OutboxRow)

    /// The id of the row.
    public var id: Int64 {
        switch self {
        case .new(let id), .requeued(let id, _): id
        case .existing(let row): row.id
        }
    }

    public var state: OutboxState { if case .existing(let row) = self { row.state } else { .queued } }

    /// Whether it is the unchanged row of an earlier send.
    public var isEarlier: Bool { if case .existing = self { true } else { false } }
}

/// The outcome of queuing hexes.
public struct EnqueueReport: Sendable {
    /// The outcome of some hexes that follow one another.
    public enum Part: Sendable {
        /// New rows: each recipient has one for each of these hexes, with consecutive ids, of which `first` has the first, in the order of the
        /// recipients.
        case new(hexes: Int, first: [Int64])
        /// One hex that earlier sends with the same key made rows of: its rows, in the order of the recipients.
        case again([Enqueued])
        /// One hex without rows: `.keyConflict` if its key stands for other content, or `.recentlyFailed`.
        case refused(HexlistError)

        public var hexes: Int { if case .new(let hexes, _) = self { hexes } else { 1 } }
    }

    /// The hexes in their order, as far as there was room.
    public var parts: [Part] = []
    /// `.outboxFull` if there was no room for all rows of a hex. That hex and all later ones have no rows then.
    public var full: HexlistError?

    /// The number of new rows.
    /// - Parameter recipients: how many there are.
    func newRows(for recipients: Int) -> Int64 {
        parts.reduce(0) { sum, part in
            switch part {
            case .new(let hexes, _): sum + Int64(hexes * recipients)
            case .again(let rows): sum + Int64(rows.count { if case .new = $0 { true } else { false } })
            case .refused: sum
            }
        }
    }

    /// The number of hexes that are told of.
    public var hexes: Int { parts.reduce(0) { $0 + $1.hexes } }
}

/// The bounds of the outbox, including failed and rejected rows.
public struct OutboxBounds: Sendable, Equatable {
    public var rows: Int
    /// The most bytes of bodies, each once for all its recipients, with `rowBytes` for each row.
    public var bytes: Int

    /// The most bytes of a row besides its body, where it is a run of its own: the last texts of the peer and of this side (`message`,
    /// `lastError`: 512 and a few words each), its subject, its numbers, its entries in five indexes, and that of its key.
    public static let rowBytes: Int64 = 1_664

    public init(rows: Int = 1_000_000, bytes: Int = 2 << 30) {
        self.rows = rows
        self.bytes = bytes
    }

    /// Whether an outbox may have so many undelivered rows, and bytes of their bodies.
    func take(rows: Int64, bytes: Int64) -> Bool {
        rows <= Int64(self.rows) && bytes &+ rows &* Self.rowBytes <= Int64(self.bytes)
    }
}

/// A row of the outbox without its body. Its state is never `.sending`.
public struct OutboxRow: Sendable, Equatable {
    /// The row's id, which is also the order of delivery; never reused.
    public var id: Int64
    public var messageID: MessageID
    public var peer: PeerID
    /// The SHA-256 of a hex with a key (`PreparedHexes.add`); zeros without one.
    public var digest: [UInt8]
    public var state: OutboxState
    /// The length of the body in bytes.
    public var bytes: Int
    /// Milliseconds since 1970.
    public var createdAt: Int64
    /// The time by `LivedClock` at which the row expires while it keeps its body, else the time at which it is forgotten.
    public var dueAt: Int64
    public var settledAt: Int64?
    public var attempts: Int
    /// The number of attempts that failed because of the peer.
    public var failures: Int
    public var nextAttemptAt: Int64?
    public var waitingFor: String?
    public var lastError: String?
    /// The code of the reason why it was rejected or failed.
    public var code: String?
    public var message: String?
    /// The subject; `nil` in a row of a version that kept none.
    public var subject: String?
}

/// The rows of the outbox that a list shows.
public struct OutboxFilter: Sendable, Equatable {
    /// The peer whose rows are shown; `nil` for all peers.
    public var peer: PeerID?
    /// The states that are shown; `nil` for all states.
    public var states: Set<OutboxState>?

    public init(peer: PeerID? = nil, states: Set<OutboxState>? = nil) {
        self.peer = peer
        self.states = states
    }

    /// The states in which a row needs its body: it waits or can be sent again.
    public static let undelivered: Set<OutboxState> = [.queued, .rejected, .failed]
}

/// The rows of the outbox that a change applies to.
public enum OutboxSelection: Sendable {
    /// Rows by their ids, none of which may be missing.
    case ids([Int64])
    /// The rows of a peer after an id, up to `HexStore.outboxChangeLimit`.
    case peer(PeerID, after: Int64)
}

/// The rows of the outbox that a change applied to.
public struct ChangedRows: Sendable {
    /// The rows as they were before.
    public var rows: [OutboxRow]
    /// The number of rows selected by id whose state does not permit the change.
    public var passedOver = 0
    /// The id to continue after in the rows of a peer; `nil` if there are no more.
    public var next: Int64?
}

/// The number of outbox rows in each state.
public struct OutboxCounts: Sendable, Equatable {
    public var queued: Int64 = 0
    public var stored: Int64 = 0
    public var held: Int64 = 0
    public var rejected: Int64 = 0
    public var expired: Int64 = 0
    public var cancelled: Int64 = 0
    public var failed: Int64 = 0

    /// The number of rows in a state; 0 for `.sending`, which is never stored.
    public subscript(state: OutboxState) -> Int64 {
        get {
            switch state {
            case .queued: queued
            case .sending: 0
            case .stored: stored
            case .held: held
            case .rejected: rejected
            case .expired: expired
            case .cancelled: cancelled
            case .failed: failed
            }
        }
        set {
            switch state {
            case .queued: queued = newValue
            case .sending: break
            case .stored: stored = newValue
            case .held: held = newValue
            case .rejected: rejected = newValue
            case .expired: expired = newValue
            case .cancelled: cancelled = newValue
            case .failed: failed = newValue
            }
        }
    }

    /// The number of rows that keep their body.
    public var undelivered: Int64 { queued + rejected + failed }
}
