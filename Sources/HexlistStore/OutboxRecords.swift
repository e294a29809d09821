public import HexlistModel

/// A hex as it goes into the outbox, for whichever peers.
public struct PreparedHex: Sendable {
    /// The line of a stream it came in; 0 for a single one.
    public var line: Int
    public var messageID: MessageID
    /// Whether the id comes from a caller's key, so that an earlier row may have it. Without one it was minted just now, and no row has it.
    public var hasKey: Bool
    /// The HexJM as it travels.
    public var body: [UInt8]
    /// SHA-256 of the hex as it was given, without an own name that was filled in: tells the same key with other content.
    public var digest: [UInt8]
    /// What it is about (`HexSubject`); kept when the body is gone.
    public var subject: String

    public init(line: Int = 0, messageID: MessageID, hasKey: Bool, body: [UInt8], digest: [UInt8], subject: String = "") {
        self.line = line
        self.messageID = messageID
        self.hasKey = hasKey
        self.body = body
        self.digest = digest
        self.subject = subject
    }
}

/// For whom hexes are queued, and what holds for their rows.
public struct OutboxTerms: Sendable {
    /// Each once. One the store does not remember is remembered with its first row.
    public var recipients: [PeerSighting]
    /// Whether a hex without a key is refused where the same one failed for a recipient less than `warningTime` ago.
    public var warns: Bool
    /// Milliseconds since 1970.
    public var now: Int64
    public var expiresAt: Int64
    public var bounds: OutboxBounds

    /// 3 minutes, in milliseconds.
    static let warningTime: Int64 = 180_000

    public init(recipients: [PeerSighting], warns: Bool = false, now: Int64, expiresAt: Int64, bounds: OutboxBounds = OutboxBounds()) {
        self.recipients = recipients
        self.warns = warns
        self.now = now
        self.expiresAt = expiresAt
        self.bounds = bounds
    }
}

/// The row a queued hex has for one recipient.
public enum Enqueued: Sendable, Equatable {
    /// A new one; its id.
    case new(Int64)
    /// The one that an earlier send with the same key made, which was failed, rejected, cancelled or expired. It waits again, at the place it
    /// had and with nothing counted against it.
    case requeued(Int64, from: OutboxState)
    /// The one that an earlier send with the same key made, which waits or was delivered. Nothing was done.
    case existing(OutboxRow)
}

/// What became of hexes that were to be queued.
public struct EnqueueReport: Sendable {
    /// For each hex, as far as there was room: its rows, in the order of the recipients, or why it was refused: `.keyConflict` where its key
    /// stands for other content, `.recentlyFailed`.
    public var results: [Result<[Enqueued], HexlistError>] = []
    /// `.outboxFull`, where there was no room for all rows of a hex. It has none then, nor have those behind it.
    public var full: HexlistError?
}

/// Bounds on what waits, failed and rejected rows included.
public struct OutboxBounds: Sendable, Equatable {
    public var rows: Int
    /// Of bodies, and `rowBytes` for each row.
    public var bytes: Int

    /// Bytes a row may come to hold besides its body: what the peer and this side said of it last (`message`, `lastError`: 512 and a few
    /// words each), its subject, its numbers, and its place in six indexes.
    public static let rowBytes: Int64 = 1_664

    public init(rows: Int = 1_000_000, bytes: Int = 2 << 30) {
        self.rows = rows
        self.bytes = bytes
    }
}

/// A row of the outbox without its body. Never `.sending`.
public struct OutboxRow: Sendable, Equatable {
    /// The order of delivery; never used twice.
    public var id: Int64
    public var messageID: MessageID
    public var peer: PeerID
    public var digest: [UInt8]
    public var state: OutboxState
    /// Of its body.
    public var bytes: Int
    /// Milliseconds since 1970.
    public var createdAt: Int64
    /// While it keeps its body: when it expires; after that: when it is forgotten.
    public var dueAt: Int64
    public var settledAt: Int64?
    public var attempts: Int
    /// What counts against it: the peer failed on it.
    public var failures: Int
    public var nextAttemptAt: Int64?
    public var waitingFor: String?
    public var lastError: String?
    /// Why it was rejected or failed.
    public var code: String?
    public var message: String?
    /// `nil` in a row of a version that kept none.
    public var subject: String?
}

/// A row of the outbox on its way out.
public struct OutboxItem: Sendable, Equatable {
    public var id: Int64
    public var messageID: MessageID
    /// HexJM JSON.
    public var body: [UInt8]
}

/// The next rows of the outbox for one peer.
public struct OutboxBatch: Sendable, Equatable {
    public var items: [OutboxItem]
    /// A bound was reached: there may be more behind the last one.
    public var hasMore: Bool
}

/// Which rows of the outbox a list shows.
public struct OutboxFilter: Sendable, Equatable {
    /// `nil`: of every peer.
    public var peer: PeerID?
    /// `nil`: in every state.
    public var states: Set<OutboxState>?

    public init(peer: PeerID? = nil, states: Set<OutboxState>? = nil) {
        self.peer = peer
        self.states = states
    }

    /// What keeps its body: it waits or can be sent again.
    public static let undelivered: Set<OutboxState> = [.queued, .rejected, .failed]
}

/// Rows of the outbox a change is for.
public enum OutboxSelection: Sendable {
    /// Named ones: all have to be there.
    case ids([Int64])
    /// Those of a peer behind one, `HexStore.outboxChangeLimit` at most.
    case peer(PeerID, after: Int64)
}

/// Rows of the outbox that a change was made to.
public struct ChangedRows: Sendable {
    /// As they were before.
    public var rows: [OutboxRow]
    /// Named ones whose state does not permit it.
    public var passedOver = 0
    /// Where to go on in those of a peer; `nil` where that was all.
    public var next: Int64?
}

/// How one row of the outbox ended.
public struct Settlement: Sendable, Equatable {
    public var id: Int64
    /// `.stored`, `.held`, `.rejected` or `.failed`.
    public var state: OutboxState
    public var code: String?
    public var message: String?

    public init(id: Int64, state: OutboxState, code: String? = nil, message: String? = nil) {
        self.id = id
        self.state = state
        self.code = code
        self.message = message
    }
}

/// A row of the outbox that changed its state.
public struct OutboxMove: Sendable, Equatable {
    public var id: Int64
    public var from: OutboxState
    public var to: OutboxState

    public init(id: Int64, from: OutboxState, to: OutboxState) {
        self.id = id
        self.from = from
        self.to = to
    }
}

/// What is known of a row that still waits.
public struct AttemptNote: Sendable, Equatable {
    public var id: Int64
    /// Added to `attempts`.
    public var attempts: Int
    /// Added to `failures`.
    public var failures: Int
    /// Milliseconds since 1970.
    public var nextAttemptAt: Int64?
    public var waitingFor: String?
    public var lastError: String?

    /// Failures that count against one row before it is given up, with nothing delivered in between.
    static let failureLimit = 5

    public init(
        id: Int64, attempts: Int = 0, failures: Int = 0, nextAttemptAt: Int64? = nil, waitingFor: String? = nil,
        lastError: String? = nil
    ) {
        self.id = id
        self.attempts = attempts
        self.failures = failures
        self.nextAttemptAt = nextAttemptAt
        self.waitingFor = waitingFor
        self.lastError = lastError
    }
}

/// Rows of the outbox by state.
public struct OutboxCounts: Sendable, Equatable {
    public var queued: Int64 = 0
    public var stored: Int64 = 0
    public var held: Int64 = 0
    public var rejected: Int64 = 0
    public var expired: Int64 = 0
    public var cancelled: Int64 = 0
    public var failed: Int64 = 0

    /// 0 for `.sending`, which is never stored.
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

    /// Rows that keep their body.
    public var undelivered: Int64 { queued + rejected + failed }
}
