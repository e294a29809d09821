internal import HexlistJSON

/// The content of a row of the table `bin`, which versions before migration 30 had, as JSON.
struct BinnedTree: JSONShape {
    struct Link: JSONShape {
        var url: String
        var description: String
        var service: String
        var extra: String
    }

    struct Node: JSONShape {
        /// Index of the containing hex in `children`; `nil` for the top hex, and for the hexes directly inside it.
        var parent: Int?
        var senderUUID: String
        var senderName: String
        var description: String
        var color: String
        var extra: String
        var links: [Link]
    }

    var top: Node
    /// The inner hexes, level by level.
    var children: [Node]

    /// Whether each hex is after the one that contains it.
    var isOrdered: Bool {
        children.indices.allSatisfy { index in children[index].parent.map { (0..<index).contains($0) } ?? true }
    }
}
