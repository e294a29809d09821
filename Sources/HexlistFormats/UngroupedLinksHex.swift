/// The hex for links outside folders, which is added to a forest when the first such link is read.
struct UngroupedLinksHex {
    /// The index of the hex; `nil` until it is added.
    private(set) var index: Int?

    /// Returns the index of the hex, and adds the hex first if needed.
    mutating func index(in forest: inout HexTree, description: String) -> Int {
        if let index { return index }
        index = forest.hexes.count
        forest.hexes.append(HexTree.Hex(description: description))
        return forest.hexes.count - 1
    }
}
