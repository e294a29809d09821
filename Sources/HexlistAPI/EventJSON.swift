public import HexlistJSON
public import HexlistModel

/// One event of the event log.
public struct EventJSON: JSONShape, Sendable, Equatable {
    /// The sequence number, without gaps: the event after `n` is `n + 1`.
    public var number: Int64
    public var at: Timestamp
    /// The event type, such as `peer.up` or `hex.received`.
    public var type: String
    public var peer: PeerID?
    /// Name, alias and trust of the peer; `nil` if the peer is this machine.
    @InlinedMembers public var tag: PeerSummary?
    /// The id, on this machine, of the hex that the event is about.
    public var hex: Int64?
    /// The subject of the hex; `nil` if the hex was deleted. Text of a peer: clean it before display.
    public var subject: String?
    public var outboxID: Int64?
    public var data: JSONValue?

    public init(
        number: Int64, at: Timestamp, type: String, peer: PeerID? = nil, tag: PeerSummary? = nil, hex: Int64? = nil,
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
}
