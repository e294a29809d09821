public import HexlistModel

/// What became of one hex for one peer, so far.
public struct SendShape: JSONShape, Sendable, Equatable {
    public var outboxID: Int64
    public var messageID: String
    /// UUID.
    public var peer: String
    public var state: OutboxState
    /// Why the peer refused.
    public var code: String?
    public var message: String?

    public init(outboxID: Int64, messageID: String, peer: String, state: OutboxState, code: String? = nil, message: String? = nil) {
        self.outboxID = outboxID
        self.messageID = messageID
        self.peer = peer
        self.state = state
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
        json.member("state", state.rawValue)
        json.member("code", code)
        json.member("message", message)
    }

    public init(json: JSONValue) throws(JSONFault) {
        let object = try JSONObject(json)
        outboxID = try object.value("outboxID")
        messageID = try object.value("messageID")
        peer = try object.value("peer")
        state = try object.choice("state")
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
    public var state: OutboxState
    public var attempts: Int
    /// `peer`, `turn`, `window`, `retry` or `trust`; `nil` where nothing is waited for.
    public var waitingFor: String?
    public var nextAttemptAt: Timestamp?
    public var lastError: String?
    public var createdAt: Timestamp
    public var bytes: Int
    /// Only in the answer to a cancellation: it was on its way, so the peer may have it.
    public var mayHaveArrived: Bool?

    public init(
        outboxID: Int64, messageID: String, peer: String, state: OutboxState, attempts: Int, waitingFor: String? = nil,
        nextAttemptAt: Timestamp? = nil, lastError: String? = nil, createdAt: Timestamp, bytes: Int, mayHaveArrived: Bool? = nil
    ) {
        self.outboxID = outboxID
        self.messageID = messageID
        self.peer = peer
        self.state = state
        self.attempts = attempts
        self.waitingFor = waitingFor
        self.nextAttemptAt = nextAttemptAt
        self.lastError = lastError
        self.createdAt = createdAt
        self.bytes = bytes
        self.mayHaveArrived = mayHaveArrived
    }

    public func write(to json: inout JSONWriter) {
        json.object {
            $0.member("outboxID", outboxID)
            $0.member("messageID", messageID)
            $0.member("peer", peer)
            $0.member("state", state.rawValue)
            $0.member("attempts", attempts)
            $0.member("waitingFor", waitingFor)
            $0.member("nextAttemptAt", nextAttemptAt)
            $0.member("lastError", lastError)
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
        state = try object.choice("state")
        attempts = try object.value("attempts")
        waitingFor = try object.optional("waitingFor")
        nextAttemptAt = try object.optional("nextAttemptAt")
        lastError = try object.optional("lastError")
        createdAt = try object.value("createdAt")
        bytes = try object.value("bytes")
        mayHaveArrived = try object.optional("mayHaveArrived")
    }
}
