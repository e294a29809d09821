public import HexlistJSON
public import HexlistModel

/// A stored hex as lists show it, and with its links as `show` does.
public struct HexJSON: JSONShape, Sendable, Equatable {
    /// Local: it does not travel.
    public var id: Int64
    /// `inbox`, `held` or `mine`.
    public var location: String
    /// The sender's claim. Texts of a peer: clean them where they are shown.
    public var senderUUID: String
    public var senderName: String
    /// The alias here of the peer with `senderUUID`, where that is another than the proven sender. Who wrote the hex stays a claim.
    public var senderAlias: String?
    /// The proven sender; on every received hex.
    public var peerUUID: PeerID?
    /// The name of the proven sender; this and the next two are the members of a `PeerSummary`.
    public var peerName: String?
    public var peerAlias: String?
    public var trust: ForwardCompatibleEnum<Trust>?
    public var description: String
    /// The text that lists show for the hex: the description, or a substitute for it; `nil` from an older daemon.
    public var subject: String?
    public var color: String
    public var linkCount: Int
    public var unread: Bool
    public var receivedAt: Timestamp
    public var messageID: MessageID?
    /// The links in their order; `nil` in lists.
    public var links: [LinkJSON]?
    /// Unknown members as they came: `{"hex":{…},"links":{"0":{…}},"children":{"0":{…}}}`, empty levels left out; `nil` in lists.
    public var extra: JSONValue?
    /// The hex it is in; `nil` for one of a list.
    public var parent: Int64?
    /// The hexes inside it at all levels, and their links; `nil` for none.
    public var hexesInside: Int?
    public var linksInside: Int?
    /// The hexes inside it in their order; `nil` for none, and in lists.
    public var children: [ChildJSON]?
    /// The place of what was searched for; `nil` unless it is a result of a search.
    public var match: MatchJSON?
    /// The topmost hex it is in; `nil` unless it is a result of a search and inside another.
    public var top: TopJSON?

    public init(
        id: Int64, location: String, senderUUID: String, senderName: String, senderAlias: String? = nil, peerUUID: PeerID? = nil,
        tag: PeerSummary? = nil, description: String, subject: String? = nil, color: String, linkCount: Int, unread: Bool,
        receivedAt: Timestamp,
        messageID: MessageID? = nil,
        links: [LinkJSON]? = nil, extra: JSONValue? = nil, parent: Int64? = nil, hexesInside: Int? = nil, linksInside: Int? = nil,
        children: [ChildJSON]? = nil
    ) {
        self.id = id
        self.location = location
        self.senderUUID = senderUUID
        self.senderName = senderName
        self.senderAlias = senderAlias
        self.peerUUID = peerUUID
        peerName = tag?.name
        peerAlias = tag?.alias
        trust = tag?.trust
        self.description = description
        self.subject = subject
        self.color = color
        self.linkCount = linkCount
        self.unread = unread
        self.receivedAt = receivedAt
        self.messageID = messageID
        self.links = links
        self.extra = extra
        self.parent = parent
        self.hexesInside = hexesInside
        self.linksInside = linksInside
        self.children = children
    }

    /// The label of the proven sender; `nil` on what this machine made.
    public var label: PeerDisplayName? {
        peerUUID.map { PeerDisplayName(uuid: $0.description, name: peerName ?? "", alias: peerAlias, trust: trust?.text ?? "") }
    }
}

/// One link of a hex, with the member names it has on the wire.
public struct LinkJSON: JSONShape, Sendable, Equatable {
    public var url: String
    public var linkDescription: String
    public var service: String
    /// The target of opening the link: the host in ASCII, as browsers show it, or a scheme; `nil` where it is not to be offered.
    public var opens: String?
    /// The reason why the link is not to be offered for opening; `nil` where it may be.
    public var notOpened: String?
    /// The newest earlier hex of the inbox with the same URL; `nil` if there is none, and in what is no hex by itself.
    public var before: EarlierLinkJSON?

    public init(
        url: String, linkDescription: String = "", service: String = "Unknown", opens: String? = nil, notOpened: String? = nil
    ) {
        self.url = url
        self.linkDescription = linkDescription
        self.service = service
        self.opens = opens
        self.notOpened = notOpened
    }
}
