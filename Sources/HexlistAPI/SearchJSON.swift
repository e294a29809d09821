public import HexlistJSON
public import HexlistModel

/// The text that a search matched. Text of a peer: clean it before display.
public struct MatchJSON: JSONShape, Sendable, Equatable {
    /// `description`, `linkDescription`, `url` or `sender`.
    public var field: String
    /// The number of the link, from 1.
    public var link: Int?
    /// The text before and after the match, shortened.
    public var before: String
    public var found: String
    public var after: String

    private enum CodingKeys: String, CodingKey {
        case field = "in"
        case link, before, found, after
    }

    public init(field: String, link: Int? = nil, before: String, found: String, after: String) {
        self.field = field
        self.link = link
        self.before = before
        self.found = found
        self.after = after
    }
}

/// The outermost hex around a hex.
public struct TopJSON: JSONShape, Sendable, Equatable {
    public var id: Int64
    /// The text shown in lists. Text of a peer.
    public var subject: String

    public init(id: Int64, subject: String) {
        self.id = id
        self.subject = subject
    }
}

/// An earlier hex in the inbox with the same link.
public struct EarlierLinkJSON: JSONShape, Sendable, Equatable {
    /// Its local id.
    public var hex: Int64
    public var receivedAt: Timestamp
    /// Its proven sender.
    public var peer: PeerID?
    @Inlined public var tag: PeerSummary?

    public init(hex: Int64, receivedAt: Timestamp, peer: PeerID? = nil, tag: PeerSummary? = nil) {
        self.hex = hex
        self.receivedAt = receivedAt
        self.peer = peer
        self.tag = tag
    }

    public var label: PeerDisplayName? { peer.map { PeerDisplayName($0, tag) } }
}

/// One link of a list of links.
public struct ListedLinkJSON: JSONShape, Sendable, Equatable {
    public var url: String
    public var linkDescription: String
    public var service: String
    /// The same as `LinkJSON.opens` and `notOpened`.
    public var opens: String?
    public var notOpened: String?
    /// The local id of its hex, and its number there, from 1, as `hexlist open` takes them.
    public var hex: Int64
    public var number: Int
    public var unread: Bool
    public var receivedAt: Timestamp
    /// The proven sender.
    public var peer: PeerID?
    @Inlined public var tag: PeerSummary?

    public init(
        _ link: LinkJSON, hex: Int64, number: Int, unread: Bool, receivedAt: Timestamp, peer: PeerID? = nil, tag: PeerSummary? = nil
    ) {
        url = link.url
        linkDescription = link.linkDescription
        service = link.service
        opens = link.opens
        notOpened = link.notOpened
        self.hex = hex
        self.number = number
        self.unread = unread
        self.receivedAt = receivedAt
        self.peer = peer
        self.tag = tag
    }

    public var label: PeerDisplayName? { peer.map { PeerDisplayName($0, tag) } }
}

/// The state of the search index.
public struct SearchState: JSONShape, Sendable, Equatable {
    /// Maximum number of hexes that are not indexed yet, and so not found.
    public var behind: Int

    public init(behind: Int) { self.behind = behind }
}
