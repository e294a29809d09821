public import HexlistJSON

/// The body of `POST /v1/feeds`: the links of the feed. Without `hex` and `text`, the newest links of `location`.
public struct FeedRequest: JSONShape, Sendable, Equatable {
    /// A hex, with the hexes inside it; without the other members.
    public var hex: Int64?
    /// A search, as `text` of `GET /v1/links`.
    public var text: String?
    /// By default the inbox and My Hexlist for a search, else My Hexlist.
    public var location: String?

    private enum CodingKeys: String, RequestKey {
        case hex, text, location
    }

    public init(hex: Int64? = nil, text: String? = nil, location: String? = nil) {
        self.hex = hex
        self.text = text
        self.location = location
    }
}

/// An address from which feed readers of this machine read links.
public struct FeedAddressJSON: JSONShape, Sendable, Equatable {
    public var id: Int64
    /// The address with its key; `nil` except in the reply to `POST /v1/feeds`, because only a hash of the key is stored.
    public var url: String?
    /// The title of the feed: that of the hex, the search, or the place. Text of a peer.
    public var title: String
    /// The members of the request.
    public var hex: Int64?
    public var text: String?
    public var location: String?
    public var createdAt: Timestamp
    /// The time at which it was read, within an hour; `nil` before the first time.
    public var usedAt: Timestamp?

    public init(
        id: Int64, url: String? = nil, title: String, hex: Int64? = nil, text: String? = nil, location: String? = nil, createdAt: Timestamp,
        usedAt: Timestamp? = nil
    ) {
        self.id = id
        self.url = url
        self.title = title
        self.hex = hex
        self.text = text
        self.location = location
        self.createdAt = createdAt
        self.usedAt = usedAt
    }
}
