public import HexlistJSON

/// The body of `POST /v1/mine/tidy`.
public struct MineTidyRequest: JSONShape, Sendable, Equatable {
    /// Only in this hex and the hexes inside; `nil` for all of My Hexlist.
    public var hex: Int64?
    /// Whether only links are merged, not hexes with the same title; `nil` means no.
    public var linksOnly: Bool?

    private enum CodingKeys: String, RequestKey {
        case hex, linksOnly
    }

    public init(hex: Int64? = nil, linksOnly: Bool? = nil) { (self.hex, self.linksOnly) = (hex, linksOnly) }
}

/// The reply to `POST /v1/mine/tidy`: the duplicates that were merged, or with `dryRun` those that would be.
public struct MineTidyResult: JSONShape, Sendable, Equatable {
    /// Numbers of hexes and links that are merged into another one.
    public var hexes: Int
    public var links: Int
    /// Number of further ones with the same title or URL that stay as they are, because another value differs or the hex would be too large.
    public var different: Int
    /// The hexes with duplicates, at most 100.
    public var items: [MineTidyItem]
    /// The numbers of the changes in the change log; `nil` if nothing was changed.
    public var changes: [Int64]?

    public init(hexes: Int, links: Int, different: Int, items: [MineTidyItem], changes: [Int64]? = nil) {
        self.hexes = hexes
        self.links = links
        self.different = different
        self.items = items
        self.changes = changes
    }

    public var isEmpty: Bool { hexes == 0 && links == 0 }
}

/// A hex with duplicates.
public struct MineTidyItem: JSONShape, Sendable, Equatable {
    public var hex: Int64
    public var subject: String
    /// The hexes with the same title that become one with this one; `nil` for none.
    public var others: [Int64]?
    /// Number of links in it that are merged into another one.
    public var links: Int

    public init(hex: Int64, subject: String, others: [Int64]?, links: Int) {
        self.hex = hex
        self.subject = subject
        self.others = others
        self.links = links
    }
}
