public import HexlistJSON

/// The body of `POST /v1/feeds`: the links that the feed contains. Without `hex` and `text`, these are the newest links of `location`.
public struct FeedRequest: JSONShape, Sendable, Equatable {
    /// The id of a hex whose links, and those of the hexes inside it, are in the feed. Excludes `text` and `location`.
    public var hex: Int64?
    /// A search query, as in the parameter `text` of `GET /v1/links`.
    public var text: String?
    /// `inbox`, `held` or `mine`. By default, a search includes the inbox and My Hexlist; a feed without a search has links of My Hexlist.
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

/// A feed address: a URL from which feed readers on this machine read links.
public struct FeedAddressJSON: JSONShape, Sendable, Equatable {
    public var id: Int64
    /// The URL with its key. Set only in the reply to `POST /v1/feeds`, because the store has only a hash of the key.
    public var url: String?
    /// The title of the feed: the subject of the hex, the search query, or the name of the location. It may be text of a peer: clean it
    /// before display.
    public var title: String
    /// The members of the `FeedRequest` that made the address.
    public var hex: Int64?
    public var text: String?
    public var location: String?
    public var createdAt: Timestamp
    /// The time at which the feed was last read, accurate to an hour; `nil` if it was never read.
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
