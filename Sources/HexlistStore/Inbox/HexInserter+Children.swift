internal import GRDB
internal import HexlistModel

extension HexInserter {
    /// Inserts the inner hexes of a hex that was just inserted. Their ids follow the id of that hex, in the order of `content.children`.
    @inline(never)
    func insertChildren(of content: HexContent, _ row: Row, _ texts: HexTextBuffers) throws {
        let insert = try SQLStatement(
            """
            INSERT INTO hex (id, location, isProven, unread, linkCount, byteCount, receivedAt, senderUUID, senderName, description, color,
                extra, parent, position, hexesInside, linksInside)
            VALUES (?, 'inside', 0, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """, on: db)
        let inside = content.descendantCounts
        var positions: [Int?: Int64] = [:]
        for (index, child) in content.children.enumerated() {
            let id = row.id + 1 + Int64(index)
            let links = content.links(of: index)
            let position = positions[child.parent, default: 0]
            positions[child.parent] = position + 1
            try insert.check(id.bindValue(to: insert.handle, at: 1))
            try insert.check(links.count.bindValue(to: insert.handle, at: 2))
            try insert.check((child.byteCount + links.reduce(0) { $0 + $1.byteCount }).bindValue(to: insert.handle, at: 3))
            try insert.check(row.receivedAt.bindValue(to: insert.handle, at: 4))
            for (column, text) in [child.senderUUID, child.senderName, child.hexDescription, child.hexColor, child.extra].enumerated() {
                try insert.check(SQLStatement.bindText(texts[text], to: insert.handle, at: Int32(5 + column), nil))
            }
            let parent = child.parent.map { row.id + 1 + Int64($0) } ?? row.id
            try insert.check(parent.bindValue(to: insert.handle, at: 10))
            try insert.check(position.bindValue(to: insert.handle, at: 11))
            try insert.check(inside.children[index].hexes.bindValue(to: insert.handle, at: 12))
            try insert.check(inside.children[index].links.bindValue(to: insert.handle, at: 13))
            try insert.run()
            try self.insert(links, of: id, texts)
        }
        let update = try SQLStatement("UPDATE hex SET hexesInside = ?, linksInside = ? WHERE id = ?", on: db)
        try update.bind([inside.top.hexes, inside.top.links, row.id])
        try update.run()
    }
}

extension HexContent {
    /// The numbers of inner hexes of a hex and of their links, at all levels.
    fileprivate struct DescendantCounts {
        var hexes = 0
        var links = 0
    }

    /// The counts for the hex itself, and for each of its `children`.
    fileprivate var descendantCounts: (top: DescendantCounts, children: [DescendantCounts]) {
        var top = DescendantCounts()
        var counts = [DescendantCounts](repeating: DescendantCounts(), count: children.count)
        // Parents precede their children in `children`. In reverse order, the counts of a child are therefore complete before they are
        // added to its parent.
        for (index, child) in children.enumerated().reversed() {
            let hexes = counts[index].hexes + 1
            let links = counts[index].links + child.links.count
            if let parent = child.parent {
                counts[parent].hexes += hexes
                counts[parent].links += links
            } else {
                top.hexes += hexes
                top.links += links
            }
        }
        return (top, counts)
    }
}
