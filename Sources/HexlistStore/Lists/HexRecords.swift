public import HexlistModel

/// The values of one hex that lists show.
public struct HexSummary: Sendable, Equatable {
    /// The local id, by which people and scripts name the hex; never reused.
    public var id: Int64
    public var location: HexLocation
    /// The position in the inbox, given on arrival there: greater is later, whatever the clock did.
    public var inboxNumber: Int64?
    /// The proven sender; `nil` in My Hexlist.
    public var peer: PeerID?
    /// The proven sender's own name, as last seen. Peer text.
    public var peerName: String
    public var peerAlias: String?
    public var peerTrust: Trust
    /// The sender's UUID according to the hex: only a claim.
    public var senderUUID: String
    public var senderName: String
    public var description: String
    /// The subject that a list shows (`HexSubject`).
    public var subject: String
    public var color: String
    /// The number of its own links, without those of the hexes inside it.
    public var linkCount: Int
    /// The hexes inside it at all levels, and their links.
    public var hexesInside: Int
    public var linksInside: Int
    /// The hex it is in; `nil` for one of a list. Location and sender are then those of the topmost hex it is in.
    public var parent: Int64?
    public var unread: Bool
    /// Milliseconds since 1970.
    public var receivedAt: Int64
    public var messageID: MessageID?
    /// The most bytes the hex takes, as quotas count them; in a store of the first version, the bytes of its frame.
    public var byteCount: Int

    /// The label of the proven sender; `nil` in My Hexlist.
    public var peerLabel: PeerDisplayName? { peer.map { PeerDisplayName($0, name: peerName, alias: peerAlias, trust: peerTrust) } }
}

/// One hex with its whole content.
public struct HexDetail: Sendable {
    public var summary: HexSummary
    /// The content, with the hexes inside. All texts lie in its arena; unknown members are included.
    public var content: HexContent
    /// The ids of `content.children`.
    public var childIDs: [Int64] = []
}

/// The hexes that a list shows.
public struct HexFilter: Sendable, Equatable {
    public var location: HexLocation
    /// Whether only unread hexes are shown.
    public var unread: Bool
    /// The proven sender whose hexes are shown; `nil` for all.
    public var peer: PeerID?

    public init(location: HexLocation = .inbox, unread: Bool = false, peer: PeerID? = nil) {
        self.location = location
        self.unread = unread
        self.peer = peer
    }
}

/// A group of hexes to change, without naming each.
public enum HexGroup: Sendable, Equatable {
    /// All hexes with an id in a range, in one location or in any (`nil`), of one proven sender or of all (`nil`); the lowest first.
    case ids(ClosedRange<Int64>, in: HexLocation?, of: PeerID? = nil)
    /// All hexes of a list, newest first.
    case list(HexFilter)

    /// The most hexes of one page of a group, and so of one transaction that changes it.
    public static let pageLimit = 1_000
}

/// Some items of a list, and the position to continue from.
public struct Page<Item: Sendable>: Sendable {
    public var items: [Item]
    /// The value of `after` for the next page; `nil` at the end.
    public var next: Int64?
}
