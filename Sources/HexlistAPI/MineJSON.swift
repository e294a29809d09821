public import HexlistJSON

/// The body of `PATCH /v1/mine/{id}`: the changes of a hex of My Hexlist. A missing member stays unchanged.
public struct MineEditRequest: JSONShape, Sendable, Equatable {
    public var description: String?
    public var color: String?
    /// The new list of tags of the hex itself.
    public var tags: [String]?
    /// The new list of links, in order.
    public var links: [LinkEdit]?

    private enum CodingKeys: String, RequestKey {
        case description, color, tags, links
    }

    public init(description: String? = nil, color: String? = nil, tags: [String]? = nil, links: [LinkEdit]? = nil) {
        self.description = description
        self.color = color
        self.tags = tags
        self.links = links
    }
}

/// One link in `MineEditRequest.links`: an existing link, possibly changed, or a new one.
public struct LinkEdit: JSONShape, Sendable, Equatable {
    /// The current number of the link, from 1; `nil` for a new link. Members of an existing link that are missing in the request keep their
    /// values, and so do its unknown members.
    public var from: Int?
    /// The new URL; required for a new link.
    public var url: String?
    public var linkDescription: String?
    public var service: String?
    /// The new list of tags of the link.
    public var tags: [String]?
    /// Whether the daemon reads the title of the linked page for a new link without a description; `nil` means yes. The page of `hexlist
    /// web` sends `false` for a moved link, because the link may be from a peer.
    public var title: Bool?

    private enum CodingKeys: String, RequestKey {
        case from, url, linkDescription, service, tags, title
    }

    public init(
        from: Int? = nil, url: String? = nil, linkDescription: String? = nil, service: String? = nil, tags: [String]? = nil,
        title: Bool? = nil
    ) {
        self.from = from
        self.url = url
        self.linkDescription = linkDescription
        self.service = service
        self.tags = tags
        self.title = title
    }
}

/// The body of `POST /v1/mine/{id}/move`: the destination of a hex of My Hexlist.
public struct MineMoveRequest: JSONShape, Sendable, Equatable {
    /// The id of the hex that contains the moved hex afterwards; `nil` for the top level.
    public var parent: Int64?
    /// The id of the inner hex before which the moved hex is inserted; `nil` for the end.
    public var before: Int64?

    private enum CodingKeys: String, RequestKey {
        case parent = "in"
        case before
    }

    public init(into parent: Int64?, before: Int64? = nil) {
        self.parent = parent
        self.before = before
    }
}

/// The body of `POST /v1/mine/save`: the ids of hexes to copy to My Hexlist.
public struct MineCopyRequest: JSONShape, Sendable, Equatable {
    public var ids: [Int64]
    /// The id of the hex of My Hexlist that contains the copies; `nil` for the top level.
    public var parent: Int64?

    private enum CodingKeys: String, RequestKey {
        case ids
        case parent = "in"
    }

    public init(_ ids: [Int64], into parent: Int64? = nil) {
        self.ids = ids
        self.parent = parent
    }
}

/// A hex that was deleted from My Hexlist and can be restored.
public struct BinnedHexJSON: JSONShape, Sendable, Equatable {
    /// The id that the hex had before its deletion.
    public var id: Int64
    public var subject: String
    /// Number of inner hexes and number of links, both at all levels.
    @OmittedIfEmpty public var hexesInside: Int
    public var links: Int
    public var deletedAt: Timestamp
    /// The time after which the daemon deletes the hex permanently.
    public var ends: Timestamp

    public init(id: Int64, subject: String, hexesInside: Int, links: Int, deletedAt: Timestamp, ends: Timestamp) {
        self.id = id
        self.subject = subject
        self.links = links
        self.deletedAt = deletedAt
        self.ends = ends
        self.hexesInside = hexesInside
    }
}

/// The reply to `POST /v1/mine/save`: the ids of the new hexes, and the number of copied hexes and links at all levels.
public struct MineSaveResult: JSONShape, Sendable, Equatable {
    public var ids: [Int64]
    public var hexes: Int
    public var links: Int

    public init(ids: [Int64], hexes: Int, links: Int) {
        self.ids = ids
        self.hexes = hexes
        self.links = links
    }
}
