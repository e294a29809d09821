public import HexlistJSON
public import HexlistModel

/// One row of the outbox.
public struct OutboxView: JSONShape, Sendable, Equatable {
    public var outboxID: Int64
    public var messageID: MessageID
    public var peer: PeerID
    @InlinedMembers public var tag: PeerSummary?
    /// The subject of the hex (`HexSubject`): its description, or text of its first link, shortened; `nil` in rows of an earlier version.
    /// Possibly text of a peer: clean it before display.
    public var subject: String?
    public var state: OutboxState
    public var attempts: Int
    /// The condition that the row waits for; `nil` if it does not wait.
    public var waitingFor: ForwardCompatibleEnum<OutboxWaitReason>?
    public var nextAttemptAt: Timestamp?
    /// The name of the route on which the row was last posted, the time of that, and the number of posts; `nil` if it was never posted.
    public var via: String?
    public var postedAt: Timestamp?
    public var posts: Int?
    public var lastError: String?
    /// The error code of a rejected or failed row, as in `SendOutcome`.
    public var code: String?
    public var message: String?
    public var createdAt: Timestamp
    public var bytes: Int
    /// Whether the row was in flight when it was cancelled, so that the peer may have the hex; set only in the reply to a cancellation.
    public var mayHaveArrived: Bool?
    /// The counts of the files that the row offers to its peer; `nil` for a row without files.
    public var files: OutboxFiles?
    /// The files that the row offers to its peer; set only if a single row is requested.
    public var offers: [OutboxOffer]?
    /// The hex, a HexJM; set only if a single row is requested, and missing once it is delivered.
    public var hex: JSONValue?

    public init(
        outboxID: Int64, messageID: MessageID, peer: PeerID, tag: PeerSummary? = nil, subject: String? = nil, state: OutboxState,
        attempts: Int,
        waitingFor: OutboxWaitReason? = nil, nextAttemptAt: Timestamp? = nil, lastError: String? = nil, code: String? = nil,
        message: String? = nil,
        createdAt: Timestamp, bytes: Int, mayHaveArrived: Bool? = nil
    ) {
        self.outboxID = outboxID
        self.messageID = messageID
        self.peer = peer
        self.tag = tag
        self.subject = subject
        self.state = state
        self.attempts = attempts
        self.waitingFor = waitingFor.map { ForwardCompatibleEnum($0) }
        self.nextAttemptAt = nextAttemptAt
        self.lastError = lastError
        self.code = code
        self.message = message
        self.createdAt = createdAt
        self.bytes = bytes
        self.mayHaveArrived = mayHaveArrived
    }
}

/// The reason why an offered file can no longer be fetched.
public enum OfferProblem: String, CaseIterable, Sendable {
    /// The file was replaced or changed after it was offered.
    case changed
    /// The file no longer exists.
    case missing
    /// This user may no longer read the file.
    case notAllowed
}

/// A file offered to the peer of an outbox row.
public struct OutboxOffer: JSONShape, Sendable, Equatable {
    public var name: String
    public var size: Int64
    public var ends: Timestamp
    /// The reason why the file can no longer be fetched; `nil` if it can.
    public var problem: ForwardCompatibleEnum<OfferProblem>?
    /// Whether the peer has the file.
    @OmittedIfEmpty public var fetched: Bool

    public init(name: String, size: Int64, ends: Timestamp, problem: OfferProblem? = nil, fetched: Bool = false) {
        self.fetched = fetched
        self.problem = problem.map { ForwardCompatibleEnum($0) }
        self.name = name
        self.size = size
        self.ends = ends
    }
}

/// The rows to retry or cancel: the body of `POST /v1/outbox/retry` and `POST /v1/outbox/cancel`, `{"ids":[1,2]}` or
/// `{"peer":PEER,"after"?:cursor}`.
public enum OutboxRowsRequest: JSONShape, Sendable, Equatable {
    /// Row ids, at most `LocalAPI.pageLimit`.
    case ids([Int64])
    /// All rows for this PEER that can still be changed, beginning after the cursor `after`, which is `OutboxChange.next` of an earlier
    /// reply.
    case peer(String, after: String?)

    private enum CodingKeys: String, RequestKey {
        case ids, peer, after
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        switch self {
        case .ids(let ids): try container.encode(ids, forKey: .ids)
        case .peer(let peer, let after):
            try container.encode(peer, forKey: .peer)
            try container.encodeIfPresent(after, forKey: .after)
        }
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let ids = try container.decodeIfPresent([Int64].self, forKey: .ids)
        let peer = try container.decodeIfPresent(String.self, forKey: .peer)
        switch (ids, peer) {
        case (let ids?, nil): self = .ids(ids)
        case (nil, let peer?): self = .peer(peer, after: try container.decodeIfPresent(String.self, forKey: .after))
        case (nil, nil): throw JSONFault("`ids` or `peer` is missing")
        case (_?, _?): throw JSONFault("`ids` and `peer` do not go together")
        }
    }
}

/// The result of a change of many rows: `{"changed","mayHaveArrived","passedOver","next"}`.
public struct OutboxChange: JSONShape, Sendable, Equatable {
    public var changed: Int
    /// Number of cancelled rows that were in flight, so that the peer may have them.
    @EmptyIfMissing public var mayHaveArrived: Int
    /// Number of named rows that cannot be changed, because they are delivered, cancelled or expired.
    @EmptyIfMissing public var passedOver: Int
    /// The value of `after` for the next request; `null` at the end. A request changes a bounded number of rows.
    @NullIfNone public var next: String?

    public init(changed: Int = 0, mayHaveArrived: Int = 0, passedOver: Int = 0, next: String? = nil) {
        self.changed = changed
        self.mayHaveArrived = mayHaveArrived
        self.passedOver = passedOver
        self.next = next
    }
}
