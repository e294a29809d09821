public import HexlistModel

/// One hex to one or more peers.
public struct SendRequest: Sendable {
    public enum Content: Sendable {
        /// A hex as decoded from what the caller gave.
        case hex(HexContent)
        /// A stored hex, forwarded with its claim of a sender and its unknown members.
        case forward(hexID: Int64)
    }

    public var content: Content
    public var peers: [PeerID]
    /// Makes a rerun idempotent: the same key gives the same `messageID`.
    public var key: String?
    /// Sends again what failed within the last 3 minutes.
    public var force: Bool

    public init(content: Content, peers: [PeerID], key: String? = nil, force: Bool = false) {
        self.content = content
        self.peers = peers
        self.key = key
        self.force = force
    }
}
