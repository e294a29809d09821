public import HexlistModel

/// The peer whose session a batch of hexes came on.
public struct Sender: Sendable {
    public var peer: PeerID
    /// The key that the session proved; `nil` if none was (plain TCP). A sender without one is a stranger, whatever the store knows of that
    /// UUID.
    public var fingerprint: Fingerprint?
    /// The sender's own name. Peer text.
    public var name: String
    /// The numeric address of the sender, a link-local one with its interface. Held hexes are counted by it (`HeldSource`).
    public var address: String

    public init(peer: PeerID, fingerprint: Fingerprint?, name: String, address: String) {
        self.peer = peer
        self.fingerprint = fingerprint
        self.name = name
        self.address = address
    }
}

/// The store's result for one received hex, true once the piece's transaction is committed.
public enum ReceiveOutcome: Sendable, Equatable {
    /// In the inbox, with this local id.
    case stored(Int64)
    /// Held, with this local id.
    case held(Int64)
    /// There already, as `.stored` or `.held`.
    case duplicate(of: ReceiptStatus)
    /// Not kept. `retryAfter`: the seconds to wait after a temporary refusal.
    case refused(RefusalCode, retryAfter: Int?)
}

/// The quotas for strangers, and for the inbox as a whole (Docs/Reference.md, "Configuration").
public struct HeldQuotas: Sendable, Equatable {
    /// The most held hexes, and bytes of them, of one peer; with `receiveFrom: everyone`, of one stranger per day.
    public var hexesPerPeer: Int
    public var bytesPerPeer: Int
    /// The same for all strangers. Of held hexes, one source has at most a quarter, and a quarter is left to peers with an alias.
    public var hexes: Int
    public var bytes: Int
    /// The most hexes in the inbox; `nil` for no bound.
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

/// The seconds that a sender is asked to wait after a temporary refusal.
public enum RetryAfter {
    /// The user has to trust the sender first.
    public static let notAccepting = 3_600
    /// The user has to look through the held hexes, or their days have to pass.
    public static let quotaExceeded = 3_600
    /// Somebody has to free disk space, at an unknown time; meanwhile a sender asks with a single hex.
    public static let storageFull = 5
    /// An unexpected failure.
    public static let `internal` = 30
}
