public import HexlistJSON

/// The result of `POST /v1/import`.
public struct ImportResult: JSONShape, Sendable, Equatable {
    /// Hexes added to My Hexlist, without those inside them.
    public var added: Int
    /// Hexes inside those that were added.
    @LeftOutEmpty public var addedInside: Int
    /// Hexes that were there before.
    public var unchanged: Int
    /// Hexes that were there before and got what is new, and the hexes and links they got.
    @LeftOutEmpty public var extended: Int
    @LeftOutEmpty public var newHexes: Int
    @LeftOutEmpty public var newLinks: Int
    /// Refused lines, in their order, with the codes of a stream that is sent.
    public var refused: [BulkRefusal]
    /// Refused lines that are not in `refused`: there is room for `LocalAPI.importRefusals`.
    @LeftOutEmpty public var untold: Int

    public init(
        added: Int = 0, addedInside: Int = 0, unchanged: Int = 0, extended: Int = 0, newHexes: Int = 0, newLinks: Int = 0,
        refused: [BulkRefusal] = [], untold: Int = 0
    ) {
        self.added = added
        self.addedInside = addedInside
        self.unchanged = unchanged
        self.extended = extended
        self.newHexes = newHexes
        self.newLinks = newLinks
        self.refused = refused
        self.untold = untold
    }
}

/// How far an import is.
public struct ImportProgress: JSONShape, Sendable, Equatable {
    /// Hexes that are looked at or stored, and all of them.
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
