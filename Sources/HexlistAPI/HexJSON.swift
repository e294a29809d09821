public import HexlistJSON
public import HexlistModel

/// A stored hex. Lists contain it without its links and inner hexes; the reply to a request for a single hex has them too.
public struct HexJSON: JSONShape, Sendable, Equatable {
    /// The id of the hex on this machine; other machines have their own ids.
    public var id: Int64
    /// The location of the hex: `inbox`, `held` or `mine`.
    public var location: String
    /// The UUID and name of the sender, as the hex claims them without proof. Text of a peer: clean it before display.
    public var senderUUID: String
    public var senderName: String
    /// The alias of the peer with `senderUUID`, if that peer is not the proven sender.
    public var senderAlias: String?
    /// The proven sender: the peer whose key was verified when the hex was received; `nil` for a hex made on this machine.
    public var peerUUID: PeerID?
    /// The name of the proven sender. `peerName`, `peerAlias` and `trust` are the members of a `PeerSummary`.
    public var peerName: String?
    public var peerAlias: String?
    public var trust: ForwardCompatibleEnum<Trust>?
    public var description: String
    /// The text that represents the hex in lists: its description, or text of its first link; `nil` from an older daemon.
    public var subject: String?
    public var color: String
    public var linkCount: Int
    public var unread: Bool
    public var receivedAt: Timestamp
    public var messageID: MessageID?
    /// The tags and the note of the hex itself; `nil` if there are none, and in lists. Text of a peer.
    public var tags: [String]?
    public var note: String?
    /// The links in order; `nil` in lists.
    public var links: [LinkJSON]?
    /// Unknown members as received, without empty objects: those of the hex, and those of its links and inner hexes by position, as
    /// `{"hex":{…},"links":{"0":{…}},"children":{"0":{…}}}`; `nil` in lists.
    public var extra: JSONValue?
    /// The id of the hex that contains this one; `nil` at the top level.
    public var parent: Int64?
    /// Number of hexes inside this one at all levels, and number of links of those hexes; `nil` if there are none.
    public var hexesInside: Int?
    public var linksInside: Int?
    /// The hexes inside this one, in order; `nil` if there are none, and in lists.
    public var children: [InnerHexJSON]?
    /// The text that a search matched; `nil` if this is not a search result.
    public var match: SearchMatchJSON?
    /// The outermost hex around this one; `nil` if it is at the top level, or not a search result.
    public var top: OutermostHexJSON?
    /// Number and total bytes of the linked files, at all levels; `nil` if there are none, or if the request had no parameter `files`.
    public var files: Int?
    public var fileBytes: Int64?
    /// Number of different URLs of this hex, without those of inner hexes, that are marked as dead. Set only in lists of My Hexlist; `nil`
    /// if there are none.
    public var deadLinks: Int?
    /// The sharing of a hex of My Hexlist; `nil` for a hex that is not shared, and in replies of search. Of a hex inside a shared one, it
    /// is that of the outer hex (`HexSharingJSON.hex`).
    public var shared: HexSharingJSON?
    /// In the reply to a change of a hex of My Hexlist: the number of the change in the change log; `nil` if nothing changed.
    public var change: Int64?
    /// A text that changes when links of the hex itself are added, removed or moved (`MineEditRequest.version`). Set only in the reply to a
    /// request for one hex of My Hexlist.
    public var version: String?
    /// The id of the hex on all machines, by which `MineNodeChange` names it. Set with `version`.
    public var node: String?

    public init(
        id: Int64, location: String, senderUUID: String, senderName: String, senderAlias: String? = nil, peerUUID: PeerID? = nil,
        tag: PeerSummary? = nil, description: String, subject: String? = nil, color: String, linkCount: Int, unread: Bool,
        receivedAt: Timestamp,
        messageID: MessageID? = nil,
        links: [LinkJSON]? = nil, extra: JSONValue? = nil, parent: Int64? = nil, hexesInside: Int? = nil, linksInside: Int? = nil,
        children: [InnerHexJSON]? = nil
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

    /// The display name of the proven sender; `nil` if this machine made the hex.
    public var label: PeerDisplayName? {
        peerUUID.map { PeerDisplayName(uuid: $0.description, name: peerName ?? "", alias: peerAlias, trust: trust?.text ?? "") }
    }
}

/// The sharing of a hex with other persons (Docs/Sharing.md).
public struct HexSharingJSON: JSONShape, Sendable, Equatable {
    /// The UUID of the list that the hex shows. It is the same on all machines.
    public var list: String
    /// Whether the user shares the hex. If not, it belongs to another person.
    public var owned: Bool
    /// The access of the user; `none` after another person has ended the sharing.
    public var access: ForwardCompatibleEnum<ShareAccess>
    /// The number of members with access, if `owned`.
    @OmittedIfEmpty public var members: Int
    /// The machine of the owner with the smallest UUID, if the hex is not `owned`, with its `name`, `alias` and `trust`; `nil` if the
    /// owner's machines were forgotten.
    public var owner: PeerID?
    @InlinedMembers public var tag: PeerSummary?
    /// Number of links that others added, also in the hexes inside, and that the user has not seen (`POST /v1/mine/{id}/seen`); 1 000
    /// stands for 1 000 or more.
    @OmittedIfEmpty public var new: Int
    /// The number of the last change of the list on this machine, for `SeenRequest`. Set only in the reply to a request for one hex.
    public var sequence: Int64?
    /// The shared hex around this one; `nil` for the shared hex itself.
    public var hex: Int64?

    public init(
        list: String, owned: Bool, access: ShareAccess, members: Int, owner: PeerID? = nil, tag: PeerSummary? = nil, new: Int = 0
    ) {
        self.list = list
        self.owned = owned
        self.access = ForwardCompatibleEnum(access)
        self.members = members
        self.owner = owner
        self.tag = tag
        self.new = new
    }
}

/// One link of a hex. The member names are those of the wire format.
public struct LinkJSON: JSONShape, Sendable, Equatable {
    public var url: String
    public var linkDescription: String
    public var service: String
    /// The tags and the note of the link; `nil` if there are none. Text of a peer.
    public var tags: [String]?
    public var note: String?
    /// `false` if the link was read although its hex is unread; otherwise `nil`.
    public var unread: Bool?
    /// The target of the link, for display: the host in ASCII, as browsers show it, or the scheme; `nil` if the link must not be opened.
    public var opens: String?
    /// The reason why the link must not be opened; `nil` if it may be.
    public var notOpened: String?
    /// The newest earlier hex of the inbox that has an equal address (Docs/Files.md, "Equal addresses"); `nil` if there is none, and in
    /// lists.
    public var before: EarlierLinkJSON?
    /// The mark of a dead link of My Hexlist (`POST /v1/mine/check`); `nil` for other links.
    public var dead: DeadLinkJSON?
    /// The id of the link on all machines, with a `version` of its hex; `nil` for others, and for links of inner hexes.
    public var node: String?
    /// `true` if another person added the link to a shared hex since the user saw its links; otherwise `nil`.
    public var new: Bool?

    public init(
        url: String, linkDescription: String = "", service: String = "Unknown", tags: [String]? = nil, note: String? = nil,
        opens: String? = nil, notOpened: String? = nil
    ) {
        self.url = url
        self.linkDescription = linkDescription
        self.service = service
        self.tags = tags
        self.note = note
        self.opens = opens
        self.notOpened = notOpened
    }
}
