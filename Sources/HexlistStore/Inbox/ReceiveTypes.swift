public import HexlistModel

/// The sender of a batch of hexes.
public struct Sender: Sendable {
    public var peer: PeerID
    /// The kind of peer, which its connection shows. If the peer's record has another kind, the hexes are refused.
    public var kind: PeerKind
    /// The key that the sender proved in the session; `nil` on plain TCP. Without a proved key the sender is treated as a stranger, even if
    /// its UUID is that of a trusted peer.
    public var fingerprint: Fingerprint?
    /// The name that the sender gives itself. Untrusted text of a peer.
    public var name: String
    /// The numeric address of the sender, with the interface if it is link-local. Quotas of held hexes are counted by address
    /// (`HeldSource`).
    public var address: String
    /// Whether the sender is a stranger whose hex the user has accepted, so that no quota of strangers applies.
    public var isAccepted: Bool

    public init(
        peer: PeerID, kind: PeerKind = .hexlist, fingerprint: Fingerprint?, name: String, address: String, isAccepted: Bool = false
    ) {
        self.peer = peer
        self.kind = kind
        self.fingerprint = fingerprint
        self.name = name
        self.address = address
        self.isAccepted = isAccepted
    }
}

/// The quotas for strangers, and for the inbox as a whole (Docs/Reference.md, "Configuration").
public struct HeldQuotas: Sendable, Equatable {
    /// Maximum number of held hexes of one peer. With `receiveFrom: everyone`, also the maximum number of hexes that one stranger can send
    /// into the inbox per day.
    public var hexesPerPeer: Int
    /// Maximum bytes of the hexes that `hexesPerPeer` counts.
    public var bytesPerPeer: Int
    /// Maximum number of held hexes of all peers together; with `receiveFrom: everyone`, also of hexes of all strangers per day. Peers
    /// without an alias may use at most a quarter of the quota of held hexes per source (`HeldSource`), and three quarters together.
    public var hexes: Int
    /// Maximum bytes of the hexes that `hexes` counts.
    public var bytes: Int
    /// Maximum number of hexes in the inbox; `nil` for no limit.
    public var inboxHexes: Int?

    public init(
        hexesPerPeer: Int = 20, bytesPerPeer: Int = 1 << 20, hexes: Int = 200, bytes: Int = 10 << 20, inboxHexes: Int? = nil
    ) {
        self.hexesPerPeer = hexesPerPeer
        self.bytesPerPeer = bytesPerPeer
        self.hexes = hexes
        self.bytes = bytes
        self.inboxHexes = inboxHexes
    }
}

/// Seconds that a sender is asked to wait before it sends again, by reason of the refusal.
public enum RetryAfter {
    /// The sender is not accepted. This usually changes only if the user trusts the sender.
    public static let notAccepting = 3_600
    /// The quota of held hexes is used up, until the user accepts or deletes some, or they are deleted because of their age.
    public static let quotaExceeded = 3_600
    /// The disk or the inbox is full. Short, because the sender tries again with a single hex, which costs little.
    public static let storageFull = 5
    /// Storing the hex failed unexpectedly.
    public static let `internal` = 30
}
