public import HexlistModel

/// A request to send one hex to one or more peers.
public struct SendRequest: Sendable {
    public enum Content: Sendable {
        /// A new hex.
        case hex(HexContent)
        /// A stored hex, forwarded with its original sender and its unknown members.
        case forward(hexID: Int64)
    }

    public var content: Content
    public var peers: [PeerID]
    /// An idempotency key: the same key results in the same `messageID`.
    public var key: String?
    /// Whether to send a hex that failed within the last 3 minutes.
    public var force: Bool

    public init(content: Content, peers: [PeerID], key: String? = nil, force: Bool = false) {
        self.content = content
        self.peers = peers
        self.key = key
        self.force = force
    }
}
