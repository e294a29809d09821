public import HexlistModel

/// Whose session a batch of hexes came on.
public struct Sender: Sendable {
    public var peer: PeerID
    /// The key its session proved. `nil` where nothing was proved (plain TCP): such a sender is a stranger, whatever
    /// the store knows of that UUID.
    public var fingerprint: Fingerprint?
    /// What it calls itself.
    public var name: String
    /// The numeric address it came from, a link-local one with its interface. Held hexes are counted by it (`HeldSource`).
    public var address: String

    public init(peer: PeerID, fingerprint: Fingerprint?, name: String, address: String) {
        self.peer = peer
        self.fingerprint = fingerprint
        self.name = name
        self.address = address
    }
}

/// One received hex on its way into the store.
public struct IncomingHex: Sendable {
    public var content: HexContent
    public var messageID: MessageID?
    /// Bytes it takes at most (`HexContent.weight`): what quotas and the disk's reserve count.
    public var byteCount: Int
    /// Whether `messageID` deduplicates. Not on plain TCP, where nobody proved to be its sender; such a hex is also not
    /// taken in when that peer is trusted.
    public var deduplicates: Bool

    public init(content: HexContent, messageID: MessageID?, byteCount: Int, deduplicates: Bool = true) {
        self.content = content
        self.messageID = messageID
        self.byteCount = byteCount
        self.deduplicates = deduplicates
    }
}

/// What the store did with one received hex. True once the piece's transaction is committed, not before.
public enum ReceiveOutcome: Sendable, Equatable {
    /// In the inbox; the local id.
    case stored(Int64)
    /// Held; the local id.
    case held(Int64)
    /// It was there already: `.stored` or `.held`.
    case duplicate(of: ReceiptStatus)
    /// Not kept. `retryAfter`: seconds, for a temporary refusal.
    case refused(RefusalCode, retryAfter: Int?)
}

/// How much of strangers, and in all, is taken (Docs/Operations.md, "Configuration").
public struct HeldQuotas: Sendable, Equatable {
    /// Held hexes, and bytes of them, of one peer; for `receiveFrom: everyone` of one stranger a day.
    public var hexesPerPeer: Int
    public var bytesPerPeer: Int
    /// The same of all strangers. Of what is held one source has a quarter at most, and a quarter is left to peers with an alias.
    public var hexes: Int
    public var bytes: Int
    /// Hexes in the inbox; `nil`: no bound.
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

/// Seconds a sender is told to wait after a temporary refusal.
public enum RetryAfter {
    /// Somebody has to trust the sender first.
    public static let notAccepting = 3_600
    /// Somebody has to look through what is held, or its days have to pass.
    public static let quotaExceeded = 3_600
    /// Disk space comes back by somebody's hand, soon or late; a sender asks with one hex.
    public static let storageFull = 5
    /// A failure nobody expected.
    public static let `internal` = 30
}
