public import HexlistJSON
public import HexlistModel

/// What became of one hex for one peer, so far.
public struct SendShape: JSONShape, Sendable, Equatable {
    public var outboxID: Int64
    public var messageID: String
    /// UUID.
    public var peer: String
    public var tag: PeerTag?
    public var state: OutboxState
    /// An earlier send with the same key had made the row, and this one did nothing.
    public var earlier: Bool
    /// As those of `OutboxShape`; where it was waited for and has no end yet.
    public var waitingFor: String?
    public var nextAttemptAt: Timestamp?
    /// Why the peer refused.
    public var code: String?
    public var message: String?

    public init(
        outboxID: Int64, messageID: String, peer: String, tag: PeerTag? = nil, state: OutboxState, earlier: Bool = false,
        waitingFor: String? = nil, nextAttemptAt: Timestamp? = nil, code: String? = nil, message: String? = nil
    ) {
        self.outboxID = outboxID
        self.messageID = messageID
        self.peer = peer
        self.tag = tag
        self.state = state
        self.earlier = earlier
        self.waitingFor = waitingFor
        self.nextAttemptAt = nextAttemptAt
        self.code = code
        self.message = message
    }

    public func write(to json: inout JSONWriter) {
        json.object { writeMembers(to: &$0) }
    }

    func writeMembers(to json: inout JSONWriter) {
        json.member("outboxID", outboxID)
        json.member("messageID", messageID)
        json.member("peer", peer)
        tag?.writeMembers(to: &json)
        json.member("state", state.rawValue)
        if earlier { json.member("earlier", true) }
        json.member("waitingFor", waitingFor)
        json.member("nextAttemptAt", nextAttemptAt)
        json.member("code", code)
        json.member("message", message)
    }

    public init(json: JSONValue) throws(JSONFault) {
        let object = try JSONObject(json)
        outboxID = try object.value("outboxID")
        messageID = try object.value("messageID")
        peer = try object.value("peer")
        tag = try PeerTag(object)
        state = try object.choice("state")
        earlier = try object.optional("earlier") ?? false
        waitingFor = try object.optional("waitingFor")
        nextAttemptAt = try object.optional("nextAttemptAt")
        code = try object.optional("code")
        message = try object.optional("message")
    }
}

/// One row of the outbox.
public struct OutboxShape: JSONShape, Sendable, Equatable {
    public var outboxID: Int64
    public var messageID: String
    /// UUID.
    public var peer: String
    public var tag: PeerTag?
    /// What the hex is about (`HexSubject`): its description, else its first link's description or host, cut; `nil` in a row of an earlier
    /// version. Text of whoever made it: clean it where it is shown.
    public var subject: String?
    public var state: OutboxState
    public var attempts: Int
    /// `peer`, `turn`, `window`, `retry`, `trust`, `session` or `conflict`; `nil` where nothing is waited for.
    public var waitingFor: String?
    public var nextAttemptAt: Timestamp?
    public var lastError: String?
    /// Why it was rejected or failed, as `send` told it.
    public var code: String?
    public var message: String?
    public var createdAt: Timestamp
    public var bytes: Int
    /// Only in the answer to a cancellation: it was on its way, so the peer may have it.
    public var mayHaveArrived: Bool?

    public init(
        outboxID: Int64, messageID: String, peer: String, tag: PeerTag? = nil, subject: String? = nil, state: OutboxState, attempts: Int,
        waitingFor: String? = nil, nextAttemptAt: Timestamp? = nil, lastError: String? = nil, code: String? = nil, message: String? = nil,
        createdAt: Timestamp, bytes: Int, mayHaveArrived: Bool? = nil
    ) {
        self.outboxID = outboxID
        self.messageID = messageID
        self.peer = peer
        self.tag = tag
        self.subject = subject
        self.state = state
        self.attempts = attempts
        self.waitingFor = waitingFor
        self.nextAttemptAt = nextAttemptAt
        self.lastError = lastError
        self.code = code
        self.message = message
        self.createdAt = createdAt
        self.bytes = bytes
        self.mayHaveArrived = mayHaveArrived
    }

    public func write(to json: inout JSONWriter) {
        json.object {
            $0.member("outboxID", outboxID)
            $0.member("messageID", messageID)
            $0.member("peer", peer)
            tag?.writeMembers(to: &$0)
            $0.member("subject", subject)
            $0.member("state", state.rawValue)
            $0.member("attempts", attempts)
            $0.member("waitingFor", waitingFor)
            $0.member("nextAttemptAt", nextAttemptAt)
            $0.member("lastError", lastError)
            $0.member("code", code)
            $0.member("message", message)
            $0.member("createdAt", createdAt)
            $0.member("bytes", bytes)
            $0.member("mayHaveArrived", mayHaveArrived)
        }
    }

    public init(json: JSONValue) throws(JSONFault) {
        let object = try JSONObject(json)
        outboxID = try object.value("outboxID")
        messageID = try object.value("messageID")
        peer = try object.value("peer")
        tag = try PeerTag(object)
        subject = try object.optional("subject")
        state = try object.choice("state")
        attempts = try object.value("attempts")
        waitingFor = try object.optional("waitingFor")
        nextAttemptAt = try object.optional("nextAttemptAt")
        lastError = try object.optional("lastError")
        code = try object.optional("code")
        message = try object.optional("message")
        createdAt = try object.value("createdAt")
        bytes = try object.value("bytes")
        mayHaveArrived = try object.optional("mayHaveArrived")
    }
}

/// The body of `POST /v1/outbox/retry` and `POST /v1/outbox/cancel`: `{"ids":[1,2]}` or `{"peer":PEER,"after"?:cursor}`.
public enum OutboxRows: JSONShape, Sendable, Equatable {
    /// At most `LocalAPI.pageLimit`.
    case ids([Int64])
    /// All for this PEER that can be changed, from a cursor on.
    case peer(String, after: String?)

    public func write(to json: inout JSONWriter) {
        json.object {
            switch self {
            case .ids(let ids): $0.member("ids", ids)
            case .peer(let peer, let after):
                $0.member("peer", peer)
                $0.member("after", after)
            }
        }
    }

    public init(json: JSONValue) throws(JSONFault) {
        let object = try JSONObject(json, allowing: ["ids", "peer", "after"])
        let ids: [Int64]? = try object.optional("ids")
        let peer: String? = try object.optional("peer")
        switch (ids, peer) {
        case (let ids?, nil): self = .ids(ids)
        case (nil, let peer?): self = .peer(peer, after: try object.optional("after"))
        case (nil, nil): throw JSONFault("`ids` or `peer` is missing")
        case (_?, _?): throw JSONFault("`ids` and `peer` do not go together")
        }
    }
}

/// What a change of many rows did: `{"changed","mayHaveArrived","passedOver","next"}`.
public struct OutboxChange: JSONShape, Sendable, Equatable {
    public var changed: Int
    /// Of those cancelled: they were on their way before, so the peer may have them.
    public var mayHaveArrived: Int
    /// Named rows that cannot be changed: delivered, cancelled or expired ones.
    public var passedOver: Int
    /// What `after` takes to go on; `null` at the end. One request changes no more rows than one transaction should.
    public var next: String?

    public init(changed: Int = 0, mayHaveArrived: Int = 0, passedOver: Int = 0, next: String? = nil) {
        self.changed = changed
        self.mayHaveArrived = mayHaveArrived
        self.passedOver = passedOver
        self.next = next
    }

    public func write(to json: inout JSONWriter) {
        json.object {
            $0.member("changed", changed)
            $0.member("mayHaveArrived", mayHaveArrived)
            $0.member("passedOver", passedOver)
            $0.nullableMember("next", next)
        }
    }

    public init(json: JSONValue) throws(JSONFault) {
        let object = try JSONObject(json)
        changed = try object.value("changed")
        mayHaveArrived = try object.optional("mayHaveArrived") ?? 0
        passedOver = try object.optional("passedOver") ?? 0
        next = try object.optional("next")
    }
}
