public import HexlistModel

/// The sender of a batch of hexes.
public struct Sender: Sendable {
    public var peer: PeerID
    /// The key that the session proved; `nil` on plain TCP. Without a key the sender is a stranger, even if the store knows its UUID.
    public var fingerprint: Fingerprint?
    /// The sender's own name. Peer text.
    public var name: String
    /// The numeric address, with the interface if it is link-local. Held hexes are counted by it (`HeldSource`).
    public var address: String

    public init(peer: PeerID, fingerprint: Fingerprint?, name: String, address: String) {
        self.peer = peer
        self.fingerprint = fingerprint
        self.name = name
        self.address = address
    }
}

/// The quotas for strangers, and for the inbox as a whole (Docs/Reference.md, "Configuration").
public struct HeldQuotas: Sendable, Equatable {
    /// Maximum number of held hexes of one peer; with `receiveFrom: everyone`, of hexes of one stranger per day.
    public var hexesPerPeer: Int
    /// Maximum bytes of the same hexes.
    public var bytesPerPeer: Int
    /// Maximum number for all strangers. One source may hold at most a quarter, and a quarter is reserved for peers with an alias.
    public var hexes: Int
    /// Maximum bytes for all strangers.
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

/// The pauses, in seconds, that a sender is asked to make after a temporary refusal.
public enum RetryAfter {
    /// Ends when the user trusts the sender.
    public static let notAccepting = 3_600
    /// Ends when the user accepts or deletes held hexes, or they are too old.
    public static let quotaExceeded = 3_600
    /// Ends when disk space is free again. Short, because the sender probes with a single hex.
    public static let storageFull = 5
    /// After an unexpected failure.
    public static let `internal` = 30
}
