public import HexlistJSON

/// One event of the log.
public struct EventShape: JSONShape, Sendable, Equatable {
    /// Gap-free: the event after `n` is `n + 1`.
    public var number: Int64
    public var at: Timestamp
    /// `peer.up`, `hex.received`, …
    public var type: String
    /// UUID.
    public var peer: String?
    /// Of the peer; `nil` where that is this machine.
    public var tag: PeerTag?
    /// The local id of a hex.
    public var hex: Int64?
    /// What that hex is about, as lists show it; `nil` where it is gone. Text of a peer.
    public var subject: String?
    public var outboxID: Int64?
    public var data: JSONValue?

    public init(
        number: Int64, at: Timestamp, type: String, peer: String? = nil, tag: PeerTag? = nil, hex: Int64? = nil,
        subject: String? = nil, outboxID: Int64? = nil, data: JSONValue? = nil
    ) {
        self.number = number
        self.at = at
        self.type = type
        self.peer = peer
        self.tag = tag
        self.hex = hex
        self.subject = subject
        self.outboxID = outboxID
        self.data = data
    }

    public func write(to json: inout JSONWriter) {
        json.object {
            $0.member("number", number)
            $0.member("at", at)
            $0.member("type", type)
            $0.member("peer", peer)
            tag?.writeMembers(to: &$0)
            $0.member("hex", hex)
            $0.member("subject", subject)
            $0.member("outboxID", outboxID)
            $0.member("data", data)
        }
    }

    public init(json: JSONValue) throws(JSONFault) {
        let object = try JSONObject(json)
        number = try object.value("number")
        at = try object.value("at")
        type = try object.value("type")
        peer = try object.optional("peer")
        tag = try PeerTag(object)
        hex = try object.optional("hex")
        subject = try object.optional("subject")
        outboxID = try object.optional("outboxID")
        data = try object.optional("data")
    }
}
