public import HexlistJSON
public import HexlistModel

/// One change in `MineEditRequest.changes`. It has exactly one of `node`, `remove`, `add` and `move`. Links that no change names stay as
/// they are.
public struct MineNodeChange: JSONShape, Sendable, Equatable {
    /// The link, or the hex itself, that gets new values: those that are given.
    public var node: String?
    /// A new URL makes a new link, with a new `node`, which takes over the place and the other values.
    public var url: String?
    public var title: String?
    public var service: String?
    /// The new color of the hex; links have none.
    public var color: String?
    /// The complete new list of tags.
    public var tags: [String]?
    public var note: String?
    /// The link that is deleted.
    public var remove: String?
    public var add: MineNewLink?
    /// The link that is moved.
    public var move: String?
    /// The link of the hex behind which `add` or `move` puts a link: its `node`, or that of the hex for the beginning; `nil` for the end.
    public var after: String?

    private enum CodingKeys: String, RequestKey {
        case node, url, title, service, color, tags, note, remove, add, move, after
    }

    public init(
        node: String? = nil, url: String? = nil, title: String? = nil, service: String? = nil, color: String? = nil, tags: [String]? = nil,
        note: String? = nil, remove: String? = nil, add: MineNewLink? = nil, move: String? = nil, after: String? = nil
    ) {
        self.node = node
        self.url = url
        self.title = title
        self.service = service
        self.color = color
        self.tags = tags
        self.note = note
        self.remove = remove
        self.add = add
        self.move = move
        self.after = after
    }
}

/// A new link in `MineNodeChange.add`.
public struct MineNewLink: JSONShape, Sendable, Equatable {
    public var url: String
    public var title: String?
    public var service: String?
    public var tags: [String]?
    public var note: String?
    /// Whether the daemon reads the title of the linked page if `title` is missing or empty; `nil` means yes. The page of `hexlist web`
    /// sends `false` for a link from another hex, because the link may be from a peer.
    public var readTitle: Bool?

    private enum CodingKeys: String, RequestKey {
        case url, title, service, tags, note, readTitle
    }

    public init(
        url: String, title: String? = nil, service: String? = nil, tags: [String]? = nil, note: String? = nil, readTitle: Bool? = nil
    ) {
        self.url = url
        self.title = title
        self.service = service
        self.tags = tags
        self.note = note
        self.readTitle = readTitle
    }
}
