public import HexlistJSON
public import HexlistModel

/// The current outcome of one hex for one peer. JSON coding is written by hand for speed, because a bulk send has many outcomes.
public struct SendOutcome: JSONCoded, Sendable, Equatable {
    public var outboxID: Int64
    public var messageID: MessageID
    public var peer: PeerID
    public var tag: PeerSummary?
    public var state: OutboxState
    /// Whether an earlier send with the same idempotency key had created the row, so that this send added nothing.
    public var earlier: Bool
    /// The condition that the row waits for, as in `OutboxView`; set only if the send timed out before it had an outcome.
    public var waitingFor: ForwardCompatibleEnum<OutboxWaitReason>?
    public var nextAttemptAt: Timestamp?
    /// The name of the route on which the row was last posted, and the time of that; `nil` if it was never posted.
    public var via: String?
    public var postedAt: Timestamp?
    /// The reason why the peer refused the hex: an error code of the protocol.
    public var code: String?
    public var message: String?
    /// The counts of the files that the hex offers to the peer; `nil` for a hex without files, and in a stream of hexes.
    public var files: OutboxFiles?

    public init(
        outboxID: Int64, messageID: MessageID, peer: PeerID, tag: PeerSummary? = nil, state: OutboxState, earlier: Bool = false,
        waitingFor: OutboxWaitReason? = nil, nextAttemptAt: Timestamp? = nil, code: String? = nil, message: String? = nil
    ) {
        self.outboxID = outboxID
        self.messageID = messageID
        self.peer = peer
        self.tag = tag
        self.state = state
        self.earlier = earlier
        self.waitingFor = waitingFor.map { ForwardCompatibleEnum($0) }
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
        json.member("name", tag?.name)
        json.member("alias", tag?.alias)
        json.member("trust", tag?.trust)
        json.member("state", state)
        if earlier { json.member("earlier", true) }
        json.member("waitingFor", waitingFor)
        json.member("nextAttemptAt", nextAttemptAt)
        json.member("via", via)
        json.member("postedAt", postedAt)
        json.member("code", code)
        json.member("message", message)
        json.member("files", files)
    }

    public init(json: JSONValue) throws(JSONFault) {
        let object = try JSONObject(json)
        outboxID = try object.value("outboxID")
        messageID = try object.value("messageID")
        peer = try object.value("peer")
        tag = try PeerSummary(object)
        state = try object.value("state")
        earlier = try object.optional("earlier") ?? false
        waitingFor = try object.optional("waitingFor")
        nextAttemptAt = try object.optional("nextAttemptAt")
        via = try object.optional("via")
        postedAt = try object.optional("postedAt")
        code = try object.optional("code")
        message = try object.optional("message")
        files = try object.optional("files")
    }
}
