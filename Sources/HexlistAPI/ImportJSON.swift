public import HexlistJSON

/// The result of `POST /v1/import`.
public struct ImportResult: JSONShape, Sendable, Equatable {
    /// Number of hexes added at the top level.
    public var added: Int
    /// Number of hexes inside the added ones.
    @OmittedIfEmpty public var addedInside: Int
    /// Number of links in the added hexes and in those inside them.
    @OmittedIfEmpty public var addedLinks: Int
    /// Number of imported hexes that exist already, and were not changed.
    public var unchanged: Int
    /// Number of existing hexes that were extended, and numbers of inner hexes and links that were added to them.
    @OmittedIfEmpty public var extended: Int
    @OmittedIfEmpty public var newHexes: Int
    @OmittedIfEmpty public var newLinks: Int
    /// Number of links that were not added, because the existing hex has an equal address in another spelling, such as `http://A.example/`
    /// and `http://a.example`; and the first 5 of these links.
    @OmittedIfEmpty public var respelled: Int
    @OmittedIfEmpty public var respellings: [EquivalentLinkJSON]
    /// The first refused lines, in order; at most `LocalAPI.importRefusals`. Their error codes are those of bulk sends.
    public var refused: [BulkRefusal]
    /// Number of further refused lines, which are not in `refused`.
    @OmittedIfEmpty public var untold: Int
    /// Number of entries of an imported file that are not links.
    @OmittedIfEmpty public var skipped: Int

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

/// A link of an import that was not added (`url`), and the equal address that is in the store (`stored`).
public struct EquivalentLinkJSON: JSONShape, Sendable, Equatable {
    public var url: String
    public var stored: String

    public init(url: String, stored: String) {
        self.url = url
        self.stored = stored
    }
}

public struct ImportProgress: JSONShape, Sendable, Equatable {
    /// Number of hexes that were processed, and number of all hexes of the import.
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
