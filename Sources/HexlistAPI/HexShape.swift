public import HexlistJSON

/// A stored hex as lists show it, and with its links as `show` does.
public struct HexShape: JSONShape, Sendable, Equatable {
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
    public var peerUUID: String?
    /// Of the proven sender.
    public var tag: PeerTag?
    public var description: String
    /// What lists show of it: the description, or what stands for one; `nil` from an older daemon.
    public var subject: String?
    public var color: String
    public var linkCount: Int
    public var unread: Bool
    public var receivedAt: Timestamp
    public var messageID: String?
    /// In their order; `nil` in lists.
    public var links: [LinkShape]?
    /// Unknown members as they came: `{"hex":{…},"links":{"0":{…}}}`, empty levels left out; `nil` in lists.
    public var extra: JSONValue?

    public init(
        id: Int64, location: String, senderUUID: String, senderName: String, senderAlias: String? = nil, peerUUID: String? = nil,
        tag: PeerTag? = nil, description: String, subject: String? = nil, color: String, linkCount: Int, unread: Bool,
        receivedAt: Timestamp,
        messageID: String? = nil,
        links: [LinkShape]? = nil, extra: JSONValue? = nil
    ) {
        self.id = id
        self.location = location
        self.senderUUID = senderUUID
        self.senderName = senderName
        self.senderAlias = senderAlias
        self.peerUUID = peerUUID
        self.tag = tag
        self.description = description
        self.subject = subject
        self.color = color
        self.linkCount = linkCount
        self.unread = unread
        self.receivedAt = receivedAt
        self.messageID = messageID
        self.links = links
        self.extra = extra
    }

    public func write(to json: inout JSONWriter) {
        json.object {
            $0.member("id", id)
            $0.member("location", location)
            $0.member("senderUUID", senderUUID)
            $0.member("senderName", senderName)
            $0.member("senderAlias", senderAlias)
            $0.member("peerUUID", peerUUID)
            tag?.writeMembers(to: &$0, .ofSender)
            $0.member("description", description)
            $0.member("subject", subject)
            $0.member("color", color)
            $0.member("linkCount", linkCount)
            $0.member("unread", unread)
            $0.member("receivedAt", receivedAt)
            $0.member("messageID", messageID)
            $0.member("links", links)
            $0.member("extra", extra)
        }
    }

    public init(json: JSONValue) throws(JSONFault) {
        let object = try JSONObject(json)
        id = try object.value("id")
        location = try object.value("location")
        senderUUID = try object.value("senderUUID")
        senderName = try object.value("senderName")
        senderAlias = try object.optional("senderAlias")
        peerUUID = try object.optional("peerUUID")
        tag = try PeerTag(object, .ofSender)
        description = try object.value("description")
        subject = try object.optional("subject")
        color = try object.value("color")
        linkCount = try object.value("linkCount")
        unread = try object.value("unread")
        receivedAt = try object.value("receivedAt")
        messageID = try object.optional("messageID")
        links = try object.optional("links")
        extra = try object.optional("extra")
    }
}

/// One link of a hex, with the member names it has on the wire.
public struct LinkShape: JSONShape, Sendable, Equatable {
    public var url: String
    public var linkDescription: String
    public var service: String
    /// What opening it leads to: the host in ASCII, as browsers have it, or a scheme; `nil` where it is not to be offered.
    public var opens: String?
    /// Why it is not to be offered for opening; `nil` where it may be.
    public var notOpened: String?

    public init(
        url: String, linkDescription: String = "", service: String = "Unknown", opens: String? = nil, notOpened: String? = nil
    ) {
        self.url = url
        self.linkDescription = linkDescription
        self.service = service
        self.opens = opens
        self.notOpened = notOpened
    }

    public func write(to json: inout JSONWriter) {
        json.object {
            $0.member("url", url)
            $0.member("linkDescription", linkDescription)
            $0.member("service", service)
            $0.member("opens", opens)
            $0.member("notOpened", notOpened)
        }
    }

    public init(json: JSONValue) throws(JSONFault) {
        let object = try JSONObject(json)
        url = try object.value("url")
        linkDescription = try object.value("linkDescription")
        service = try object.value("service")
        opens = try object.optional("opens")
        notOpened = try object.optional("notOpened")
    }
}
