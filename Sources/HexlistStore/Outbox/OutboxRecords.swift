public import HexlistModel

/// The recipients of hexes to enqueue, and the properties of the new rows.
public struct EnqueueOptions: Sendable {
    /// The recipients, without duplicates. A peer without a record gets one when its first row is inserted.
    public var recipients: [PeerContact]
    /// Whether a hex without a key is refused if the same hex failed for a recipient less than `warningTime` ago.
    public var warns: Bool
    /// The current time, in milliseconds since 1970.
    public var now: Int64
    /// Milliseconds after which an undelivered row expires.
    public var lifetime: Int64
    public var bounds: OutboxBounds

    /// The time after a failure in which the same hex is refused (`warns`): 3 minutes, in milliseconds.
    static let warningTime: Int64 = 180_000

    public init(recipients: [PeerContact], warns: Bool = false, now: Int64, lifetime: Int64, bounds: OutboxBounds = OutboxBounds()) {
        self.recipients = recipients
        self.warns = warns
        self.now = now
        self.lifetime = lifetime
        self.bounds = bounds
    }
}

/// The result of enqueuing one hex for one recipient: the row, and whether it is new.
public enum EnqueuedRow: Sendable, Equatable {
    /// The id of a new row.
    case new(Int64)
    /// An earlier send with the same key had a row that failed, expired, or was rejected or cancelled. The row is queued again; it keeps
    /// its position in the order of delivery, and its failures are reset.
    case requeued(Int64, from: OutboxState)
    /// An earlier send with the same key has a row that is queued or delivered. The row is unchanged.
    indirect case existing(OutboxRow)

    public var id: Int64 {
        switch self {
        case .new(let id), .requeued(let id, _): id
        case .existing(let row): row.id
        }
    }

    public var state: OutboxState { if case .existing(let row) = self { row.state } else { .queued } }

    /// Whether the row belongs to an earlier send with the same key and was not changed.
    public var isEarlier: Bool { if case .existing = self { true } else { false } }
}

/// The result of enqueuing a batch of hexes.
public struct EnqueueReport: Sendable {
    /// The result for one or more consecutive hexes.
    public enum Part: Sendable {
        /// A number of hexes that got new rows. `first` has the first row id of each recipient; the ids of a recipient's other rows follow
        /// it.
        case new(hexes: Int, first: [Int64])
        /// One hex whose key was used by an earlier send to one of the recipients, with its row for each recipient.
        case again([EnqueuedRow])
        /// One hex that was refused and got no rows: `.keyConflict` if its key was used for other content, or `.recentlyFailed`.
        case refused(HexlistError)

        public var hexes: Int { if case .new(let hexes, _) = self { hexes } else { 1 } }
    }

    /// The results in the order of the hexes, up to the first hex for which the outbox was full.
    public var parts: [Part] = []
    /// `.outboxFull` if the outbox had no capacity for all rows of a hex. This hex and all later ones got no rows and have no result.
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

/// The maximum size of the outbox. Counts undelivered rows, including failed and rejected ones.
public struct OutboxBounds: Sendable, Equatable {
    public var rows: Int
    /// Maximum bytes of the bodies, each counted once for all its recipients, plus `rowBytes` for each row.
    public var bytes: Int

    /// Maximum bytes on disk of a row without its body, for a row that is stored as a row range of its own: `message` and `lastError`
    /// (about 520 bytes each), subject, numbers, and entries in five indexes and in `outboxKey`.
    public static let rowBytes: Int64 = 1_664

    public init(rows: Int = 1_000_000, bytes: Int = 2 << 30) {
        self.rows = rows
        self.bytes = bytes
    }

    /// Whether an outbox with this number of undelivered rows and this number of bytes of their bodies is within the bounds.
    func take(rows: Int64, bytes: Int64) -> Bool {
        rows <= Int64(self.rows) && bytes &+ rows &* Self.rowBytes <= Int64(self.bytes)
    }
}

/// A row of the outbox: one hex for one recipient, without its body.
public struct OutboxRow: Sendable, Equatable {
    /// The id of the row. Rows are delivered in the order of their ids; an id is never reused.
    public var id: Int64
    public var messageID: MessageID
    public var peer: PeerID
    /// The SHA-256 of the hex if it was sent with a key (`PreparedHexes.add`); otherwise usually zeros.
    public var digest: [UInt8]
    /// The stored state; never `.sending`.
    public var state: OutboxState
    /// The length of the body in bytes.
    public var bytes: Int
    /// Milliseconds since 1970.
    public var createdAt: Int64
    /// The time of `StoreOpenTimeClock` at which an undelivered row expires, or a delivered, cancelled or expired row is deleted.
    public var dueAt: Int64
    public var settledAt: Int64?
    public var attempts: Int
    /// The number of failed attempts that count towards `FailedAttempt.failureLimit`.
    public var failures: Int
    public var nextAttemptAt: Int64?
    public var waitingFor: String?
    public var lastError: String?
    /// The code of the reason of a rejection or failure.
    public var code: String?
    public var message: String?
    /// The subject of the hex (`HexSubject`); `nil` if a version without subjects inserted the row.
    public var subject: String?
}

/// A filter for lists of outbox rows.
public struct OutboxFilter: Sendable, Equatable {
    /// The required recipient; `nil` for all peers.
    public var peer: PeerID?
    /// The required states; `nil` for all states.
    public var states: Set<OutboxState>?
    /// A time of `StoreOpenTimeClock`. If set, the filter also matches stored rows whose files the peer can still fetch at that time, even if
    /// `states` does not contain `stored`.
    public var offeredAt: Int64?

    public init(peer: PeerID? = nil, states: Set<OutboxState>? = nil, offeredAt: Int64? = nil) {
        self.peer = peer
        self.states = states
        self.offeredAt = offeredAt
    }

    /// The states of undelivered rows, which are queued or can be queued again and therefore keep their body.
    public static let undelivered: Set<OutboxState> = [.queued, .rejected, .failed]
}

/// A selection of outbox rows to change.
public enum OutboxSelection: Sendable {
    /// Rows with these ids. A missing row is an error.
    case ids([Int64])
    /// The rows of a peer after an id, at most `HexStore.outboxChangeLimit` of them.
    case peer(PeerID, after: Int64)
}

/// The result of a change of outbox rows.
public struct ChangedRows: Sendable {
    /// The changed rows, with their state before the change.
    public var rows: [OutboxRow]
    /// The number of rows that were selected by id but not changed, because their state does not permit it.
    public var passedOver = 0
    /// The value of `after` in `OutboxSelection.peer(_:after:)` with which the peer's next rows are read; `nil` at the end.
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
