public import HexlistJSON

/// The result of `POST /v1/import`.
public struct ImportResult: JSONShape, Sendable, Equatable {
    /// Hexes added to My Hexlist.
    public var added: Int
    /// Hexes that were there before.
    public var unchanged: Int
    /// Refused lines, in their order, with the codes of a stream that is sent.
    public var refused: [BulkRefusal]
    /// Refused lines that are not in `refused`: there is room for `LocalAPI.importRefusals`.
    @LeftOutEmpty public var untold: Int

    public init(added: Int = 0, unchanged: Int = 0, refused: [BulkRefusal] = [], untold: Int = 0) {
        self.added = added
        self.unchanged = unchanged
        self.refused = refused
        self.untold = untold
    }
}
