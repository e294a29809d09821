public import HexlistModel

/// One hex as lists show it.
public struct HexSummary: Sendable, Equatable {
    /// The local id people and scripts name it by; never used twice.
    public var id: Int64
    public var location: HexLocation
    /// Its place in the inbox, given on arrival there: greater is later, whatever the clock did.
    public var inboxNumber: Int64?
    /// The proven sender; `nil` in My Hexlist.
    public var peer: PeerID?
    /// What the proven sender calls itself, as last seen.
    public var peerName: String
    public var peerAlias: String?
    public var peerTrust: Trust
    /// Whom it says it is from: a claim.
    public var senderUUID: String
    public var senderName: String
    public var description: String
    /// What a list shows of it (`HexSubject`).
    public var subject: String
    public var color: String
    public var linkCount: Int
    public var unread: Bool
    /// Milliseconds since 1970.
    public var receivedAt: Int64
    public var messageID: MessageID?
    /// Bytes it takes at most, as quotas count them; of its frame in a store of the first version.
    public var byteCount: Int

    /// The proven sender; `nil` in My Hexlist.
    public var peerLabel: PeerLabel? { peer.map { PeerLabel($0, name: peerName, alias: peerAlias, trust: peerTrust) } }
}

/// One hex with everything it carries.
public struct HexDetail: Sendable {
    public var summary: HexSummary
    /// All texts lie in its arena; unknown members are kept.
    public var content: HexContent
}

/// Which hexes a list shows.
public struct HexFilter: Sendable, Equatable {
    public var location: HexLocation
    /// Only unread ones.
    public var unread: Bool
    /// Only those of one proven sender.
    public var peer: PeerID?

    public init(location: HexLocation = .inbox, unread: Bool = false, peer: PeerID? = nil) {
        self.location = location
        self.unread = unread
        self.peer = peer
    }
}

/// Hexes a change is for that it does not name one by one.
public enum HexGroup: Sendable, Equatable {
    /// Those there are with an id in a range, in one place or wherever they are, of one proven sender or of all; the lowest first.
    case ids(ClosedRange<Int64>, in: HexLocation?, of: PeerID? = nil)
    /// Those of a list, newest first.
    case list(HexFilter)

    /// Hexes of one page of a group at most, so as many as one transaction changes.
    public static let pageLimit = 1_000
}

/// Some items of a list, and where it goes on.
public struct Page<Item: Sendable>: Sendable {
    public var items: [Item]
    /// Give it as `after` for the next page; `nil` at the end.
    public var next: Int64?
}
