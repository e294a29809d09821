public import HexlistModel

/// One hex for one peer, to be kept until it is delivered.
public struct OutboxInsert: Sendable {
    public var peer: PeerID
    public var messageID: MessageID
    /// HexJM JSON.
    public var body: [UInt8]
    /// SHA-256 of the body as its sender gave it: tells the same key with other content.
    public var digest: [UInt8]
    /// What it is about (`HexSubject`); kept when the body is gone.
    public var subject: String
    /// The message id was minted just now, so no row has it: none is looked for.
    public var isFresh: Bool
    /// Milliseconds since 1970.
    public var createdAt: Int64
    public var expiresAt: Int64

    public init(
        peer: PeerID, messageID: MessageID, body: [UInt8], digest: [UInt8], subject: String = "", isFresh: Bool = false, createdAt: Int64,
        expiresAt: Int64
    ) {
        self.peer = peer
        self.messageID = messageID
        self.body = body
        self.digest = digest
        self.subject = subject
        self.isFresh = isFresh
        self.createdAt = createdAt
        self.expiresAt = expiresAt
    }
}

/// What became of an `OutboxInsert`.
public enum Enqueued: Sendable, Equatable {
    /// A new row; its id.
    case new(Int64)
    /// The same message for the same peer is there already.
    case existing(OutboxRow)
    /// `.keyConflict`: the same message id has other content. `.outboxFull`: a bound is reached.
    case refused(HexlistError)
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
