public import HexlistJSON
public import HexlistModel

/// The text that a search matched. Text of a peer: clean it before display.
public struct SearchMatchJSON: JSONShape, Sendable, Equatable {
    /// The searched field: `description`, `linkDescription`, `url`, `sender`, `note` or `tags`.
    public var field: String
    /// The number of the link in which the match is, from 1; `nil` for texts of the hex.
    public var link: Int?
    /// The text before the match (shortened), the match, and the text after the match (shortened).
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

/// The outermost of the hexes that contain a hex.
public struct OutermostHexJSON: JSONShape, Sendable, Equatable {
    public var id: Int64
    /// The text that represents the outermost hex in lists. Text of a peer: clean it before display.
    public var subject: String

    public init(id: Int64, subject: String) {
        self.id = id
        self.subject = subject
    }
}

/// An earlier hex in the inbox with a link to the same address.
public struct EarlierLinkJSON: JSONShape, Sendable, Equatable {
    /// The id of the earlier hex on this machine.
    public var hex: Int64
    public var receivedAt: Timestamp
    /// The proven sender of the earlier hex.
    public var peer: PeerID?
    @InlinedMembers public var tag: PeerSummary?

    public init(hex: Int64, receivedAt: Timestamp, peer: PeerID? = nil, tag: PeerSummary? = nil) {
        self.hex = hex
        self.receivedAt = receivedAt
        self.peer = peer
        self.tag = tag
    }

    public var label: PeerDisplayName? { peer.map { PeerDisplayName($0, tag) } }
}

/// One link in the reply to `GET /v1/links`, with data about its hex.
public struct ListedLinkJSON: JSONShape, Sendable, Equatable {
    public var url: String
    public var linkDescription: String
    public var service: String
    /// The same as `opens` and `notOpened` of `LinkJSON`.
    public var opens: String?
    public var notOpened: String?
    /// The same as `tags` and `note` of `LinkJSON`.
    public var tags: [String]?
    public var note: String?
    /// The same as `dead` of `LinkJSON`.
    public var dead: DeadLinkJSON?
    /// The id of the link's hex on this machine, and the number of the link in that hex, from 1. `hexlist open` accepts these numbers.
    public var hex: Int64
    public var number: Int
    public var unread: Bool
    public var receivedAt: Timestamp
    /// The proven sender of the link's hex.
    public var peer: PeerID?
    @InlinedMembers public var tag: PeerSummary?
    /// The location of the hex; set only in the results of a search.
    public var location: String?
    /// The descriptions of the hexes that contain the link, from the outermost to the link's own hex; set only in the results of a search.
    public var folders: [String]?
    /// The text that the search matched; `nil` in other lists.
    public var match: SearchMatchJSON?

    public init(
        _ link: LinkJSON, hex: Int64, number: Int, unread: Bool, receivedAt: Timestamp, peer: PeerID? = nil, tag: PeerSummary? = nil
    ) {
        url = link.url
        linkDescription = link.linkDescription
        service = link.service
        opens = link.opens
        notOpened = link.notOpened
        tags = link.tags
        note = link.note
        dead = link.dead
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
public struct SearchIndexState: JSONShape, Sendable, Equatable {
    /// Upper bound of the number of hexes that are not indexed yet, and that a search therefore does not find.
    public var behind: Int

    public init(behind: Int) { self.behind = behind }
}
