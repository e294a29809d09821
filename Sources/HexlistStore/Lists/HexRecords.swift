public import HexlistModel

/// The columns of one hex for lists.
public struct HexSummary: Sendable, Equatable {
    /// The local id, which users and scripts use; never reused.
    public var id: Int64
    public var location: HexLocation
    /// The position in the inbox, in order of arrival, independent of the wall clock.
    public var inboxNumber: Int64?
    /// The proven sender; `nil` in My Hexlist.
    public var peer: PeerID?
    /// The proven sender's own name, as last seen. Peer text.
    public var peerName: String
    public var peerAlias: String?
    public var peerTrust: Trust
    /// The sender's UUID that the hex claims, without proof.
    public var senderUUID: String
    public var senderName: String
    public var description: String
    /// The subject that a list shows (`HexSubject`).
    public var subject: String
    public var color: String
    /// The number of its own links, without those of the hexes inside.
    public var linkCount: Int
    /// The number of hexes inside, at all levels.
    public var hexesInside: Int
    /// The number of links of the hexes inside.
    public var linksInside: Int
    /// The hex that contains it; `nil` for a hex of a list. If there is a parent, location and sender are those of the topmost hex.
    public var parent: Int64?
    public var unread: Bool
    /// Milliseconds since 1970.
    public var receivedAt: Int64
    public var messageID: MessageID?
    /// Maximum bytes of the hex, as quotas count them; in a store of the first version, the bytes of its frame.
    public var byteCount: Int

    /// The label of the proven sender; `nil` in My Hexlist.
    public var peerLabel: PeerDisplayName? { peer.map { PeerDisplayName($0, name: peerName, alias: peerAlias, trust: peerTrust) } }
}

/// One hex with its whole content.
public struct HexDetail: Sendable {
    public var summary: HexSummary
    /// The content, with the hexes inside and with unknown members. All texts are in its arena.
    public var content: HexContent
    /// The ids of `content.children`.
    public var childIDs: [Int64] = []
}

/// A filter for lists of hexes.
public struct HexFilter: Sendable, Equatable {
    public var location: HexLocation
    /// Whether only unread hexes match.
    public var unread: Bool
    /// The proven sender; `nil` for all.
    public var peer: PeerID?

    public init(location: HexLocation = .inbox, unread: Bool = false, peer: PeerID? = nil) {
        self.location = location
        self.unread = unread
        self.peer = peer
    }
}

/// A group of hexes to change.
public enum HexGroup: Sendable, Equatable {
    /// All hexes with an id in a range, in one location or in any (`nil`), of one proven sender or of all (`nil`); lowest id first.
    case ids(ClosedRange<Int64>, in: HexLocation?, of: PeerID? = nil)
    /// All hexes of a list, newest first.
    case list(HexFilter)

    /// Maximum number of hexes that one transaction changes.
    public static let pageLimit = 1_000
}

/// Consecutive items of a list, and the position of the next page.
public struct Page<Item: Sendable>: Sendable {
    public var items: [Item]
    /// The value of `after` for the next page; `nil` at the end.
    public var next: Int64?
}
