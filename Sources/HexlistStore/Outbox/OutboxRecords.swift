public import HexlistModel

/// The recipients of hexes to enqueue, and settings for their rows.
public struct EnqueueOptions: Sendable {
    /// The recipients, without duplicates. An unknown peer is recorded with its first row.
    public var recipients: [ContactInfo]
    /// Whether a hex without a key is refused if the same hex failed for a recipient less than `warningTime` ago.
    public var warns: Bool
    /// Milliseconds since 1970.
    public var now: Int64
    /// Milliseconds after which an undelivered row expires.
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

/// The row of an enqueued hex for one recipient.
public enum Enqueued: Sendable, Equatable {
    /// The id of a new row.
    case new(Int64)
    /// The row of an earlier send with the same key that had failed, expired or been rejected or cancelled. It is queued again, at its old
    /// position and with its failures reset.
    case requeued(Int64, from: OutboxState)
    /// The row of an earlier send with the same key that is queued or delivered. It is unchanged.
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

/// The result of enqueuing hexes.
public struct EnqueueReport: Sendable {
    /// The result for consecutive hexes.
    public enum Part: Sendable {
        /// New rows for these hexes. The rows of each recipient have consecutive ids, beginning with its element of `first`.
        case new(hexes: Int, first: [Int64])
        /// The rows, one for each recipient, of one hex whose key was used by earlier sends.
        case again([Enqueued])
        /// One hex without rows: `.keyConflict` if its key was used for other content, or `.recentlyFailed`.
        case refused(HexlistError)

        public var hexes: Int { if case .new(let hexes, _) = self { hexes } else { 1 } }
    }

    /// The results in the order of the hexes, up to the first hex for which the outbox was full.
    public var parts: [Part] = []
    /// `.outboxFull` if the outbox had no capacity for all rows of a hex. This hex and all later ones have no rows.
    public var full: HexlistError?

    /// The number of new rows.
    /// - Parameter recipients: the number of recipients.
    func newRows(for recipients: Int) -> Int64 {
        parts.reduce(0) { sum, part in
            switch part {
            case .new(let hexes, _): sum + Int64(hexes * recipients)
            case .again(let rows): sum + Int64(rows.count { if case .new = $0 { true } else { false } })
            case .refused: sum
            }
        }
    }

    /// The number of hexes with a result.
    public var hexes: Int { parts.reduce(0) { $0 + $1.hexes } }
}

/// The bounds of the outbox. Failed and rejected rows count too.
public struct OutboxBounds: Sendable, Equatable {
    public var rows: Int
    /// Maximum bytes of bodies, counted once for all recipients, plus `rowBytes` for each row.
    public var bytes: Int

    /// Maximum bytes of a row besides its body, if it is a row range of its own: `message` and `lastError` (some 520 bytes each), subject,
    /// numbers, entries in five indexes and in `outboxKey`.
    public static let rowBytes: Int64 = 1_664

    public init(rows: Int = 1_000_000, bytes: Int = 2 << 30) {
        self.rows = rows
        self.bytes = bytes
    }

    /// Whether an outbox may have this number of undelivered rows and bytes of their bodies.
    func take(rows: Int64, bytes: Int64) -> Bool {
        rows <= Int64(self.rows) && bytes &+ rows &* Self.rowBytes <= Int64(self.bytes)
    }
}

/// A row of the outbox without its body.
public struct OutboxRow: Sendable, Equatable {
    /// The id, in order of delivery; never reused.
    public var id: Int64
    public var messageID: MessageID
    public var peer: PeerID
    /// The SHA-256 of a hex with a key (`PreparedHexes.add`); zeros without one.
    public var digest: [UInt8]
    /// Never `.sending`.
    public var state: OutboxState
    /// The length of the body in bytes.
    public var bytes: Int
    /// Milliseconds since 1970.
    public var createdAt: Int64
    /// The time by `LivedClock` at which the row expires, if it keeps its body, or is deleted.
    public var dueAt: Int64
    public var settledAt: Int64?
    public var attempts: Int
    /// The number of attempts that the peer failed.
    public var failures: Int
    public var nextAttemptAt: Int64?
    public var waitingFor: String?
    public var lastError: String?
    /// The reason of a rejection or failure.
    public var code: String?
    public var message: String?
    /// `nil` in a row of a version without subjects.
    public var subject: String?
}

/// A filter for lists of outbox rows.
public struct OutboxFilter: Sendable, Equatable {
    /// `nil` for all peers.
    public var peer: PeerID?
    /// `nil` for all states.
    public var states: Set<OutboxState>?

    public init(peer: PeerID? = nil, states: Set<OutboxState>? = nil) {
        self.peer = peer
        self.states = states
    }

    /// The states in which a row needs its body: it is queued or can be queued again.
    public static let undelivered: Set<OutboxState> = [.queued, .rejected, .failed]
}

/// Outbox rows to change.
public enum OutboxSelection: Sendable {
    /// Rows by id. A missing row is an error.
    case ids([Int64])
    /// The rows of a peer after an id, up to `HexStore.outboxChangeLimit`.
    case peer(PeerID, after: Int64)
}

/// The result of a change of outbox rows.
public struct ChangedRows: Sendable {
    /// The changed rows, in their state before the change.
    public var rows: [OutboxRow]
    /// The number of rows selected by id whose state does not permit the change.
    public var passedOver = 0
    /// The value of `after` for the next rows of a peer; `nil` at the end.
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
