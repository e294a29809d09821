public import HexlistJSON

/// The result of `POST /v1/import`.
public struct ImportResult: JSONShape, Sendable, Equatable {
    /// Number of hexes added at the top level.
    public var added: Int
    /// Number of hexes inside the added ones.
    @LeftOutEmpty public var addedInside: Int
    /// Number of links in the added hexes and in those inside them.
    @LeftOutEmpty public var addedLinks: Int
    /// Number of hexes that existed before.
    public var unchanged: Int
    /// Number of existing hexes that were extended, and of the hexes and links added to them.
    @LeftOutEmpty public var extended: Int
    @LeftOutEmpty public var newHexes: Int
    @LeftOutEmpty public var newLinks: Int
    /// Number of links that were not added, because the existing hex has their address in another spelling; and the first 5 of them.
    @LeftOutEmpty public var respelled: Int
    @LeftOutEmpty public var respellings: [EquivalentLinkJSON]
    /// Refused lines in order. They have the same error codes as in bulk sends.
    public var refused: [BulkRefusal]
    /// Number of refused lines beyond the `LocalAPI.importRefusals` in `refused`.
    @LeftOutEmpty public var untold: Int
    /// Number of entries of an imported file that are not links.
    @LeftOutEmpty public var skipped: Int

    public init(
        added: Int = 0, addedInside: Int = 0, addedLinks: Int = 0, unchanged: Int = 0, extended: Int = 0, newHexes: Int = 0,
        newLinks: Int = 0, respelled: Int = 0, respellings: [EquivalentLinkJSON] = [], refused: [BulkRefusal] = [], untold: Int = 0,
        skipped: Int = 0
    ) {
        self.added = added
        self.addedInside = addedInside
        self.addedLinks = addedLinks
        self.unchanged = unchanged
        self.extended = extended
        self.newHexes = newHexes
        self.newLinks = newLinks
        self.respelled = respelled
        self.respellings = respellings
        self.refused = refused
        self.untold = untold
        self.skipped = skipped
    }
}

/// A link of an import that was not added, and the equal address that exists.
public struct EquivalentLinkJSON: JSONShape, Sendable, Equatable {
    public var url: String
    public var stored: String

    public init(url: String, stored: String) {
        self.url = url
        self.stored = stored
    }
}

public struct ImportProgress: JSONShape, Sendable, Equatable {
    /// Number of processed hexes, and number of all hexes.
    public var done: Int
    public var total: Int

    private enum CodingKeys: String, CodingKey {
        case done
        case total = "of"
    }

    public init(done: Int, total: Int) {
        self.done = done
        self.total = total
    }
}

extension ImportResult: ProgressResult {
    public typealias Progress = ImportProgress

    public static var member: String { "result" }
}
