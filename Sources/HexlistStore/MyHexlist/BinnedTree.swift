internal import HexlistJSON
internal import HexlistModel

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

    var content: HexContent {
        var content = HexContent()
        func links(_ node: Node) -> [LinkContent] {
            node.links.map { link in
                LinkContent(
                    url: content.add(link.url), linkDescription: content.add(link.description), service: content.add(link.service),
                    extra: content.add(link.extra))
            }
        }
        content.senderUUID = content.add(top.senderUUID)
        content.senderName = content.add(top.senderName)
        content.hexDescription = content.add(top.description)
        content.hexColor = content.add(top.color)
        content.extra = content.add(top.extra)
        content.links = links(top)
        for node in children {
            var child = ChildContent(parent: node.parent)
            child.senderUUID = content.add(node.senderUUID)
            child.senderName = content.add(node.senderName)
            child.hexDescription = content.add(node.description)
            child.hexColor = content.add(node.color)
            child.extra = content.add(node.extra)
            let first = content.childLinks.count
            let new = links(node)
            content.childLinks += new
            child.links = first..<content.childLinks.count
            content.add(child: child)
        }
        return content
    }
}
