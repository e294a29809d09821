internal import GRDB
internal import HexlistJSON
internal import HexlistModel

/// A hex that was deleted from My Hexlist and can be restored.
public struct BinnedHex: Sendable, Equatable {
    /// The id that the hex had.
    public var id: Int64
    /// The subject of the hex (`HexSubject`).
    public var subject: String
    /// Number of inner hexes and of links, at all levels.
    public var hexesInside: Int
    public var links: Int
    /// Milliseconds since 1970.
    public var deletedAt: Int64

    /// Number of days after which a deleted hex is removed.
    public static let days = 30
    /// Maximum bytes of all hexes in the bin together. Above it, the oldest are removed.
    static let maximumBytes = 64 << 20
}

extension StoreReader {
    /// Returns a page of the hexes in the bin, newest first.
    public func binPage(limit: Int, before: Int64?) throws -> Page<BinnedHex> {
        let limit = pageLimit(limit)
        let found = try all(
            """
            SELECT hex, subject, hexesInside, links, deletedAt FROM bin WHERE number < coalesce(
                (SELECT number FROM bin WHERE hex = ?1), CASE WHEN ?1 IS NULL THEN 1 << 62 ELSE 0 END) ORDER BY number DESC LIMIT ?2
            """, before, limit + 1
        ) { BinnedHex(id: $0.int64(0), subject: $0.text(1), hexesInside: $0.int(2), links: $0.int(3), deletedAt: $0.int64(4)) }
        return Page(items: Array(found.prefix(limit)), next: found.count > limit ? found[limit - 1].id : nil)
    }
}

extension HexStore {
    /// Restores a deleted hex with its inner hexes: into the hex that contained it, or at the top level if that no longer exists.
    /// - Returns: the new id.
    /// - Throws: `.notFound` if it is not in the bin; `.badRequest` if its former container has no room for it.
    public func restoreMine(_ id: Int64, at now: Int64) async throws -> Int64 { try await write { try $0.restoreMine(id, at: now) } }

    /// Removes all hexes from the bin, and the values of all deleted links.
    /// - Parameter now: milliseconds since 1970.
    /// - Returns: the number of hexes.
    public func emptyBin(at now: Int64) async throws -> Int {
        let count = try await write { writer in try writer.change { try writer.run("DELETE FROM bin") } }
        while try await write({ try $0.changeMine(at: now) { try $0.purge(deletedUntil: .max, limit: Self.linksPerPurge) } }) > 0 {}
        return count
    }

    /// Maximum number of links that one transaction purges.
    private static let linksPerPurge = 2_000
}

extension StoreWriter {
    func restoreMine(_ id: Int64, at now: Int64) throws -> Int64 {
        try change {
            let row = try first("SELECT parent, content FROM bin WHERE hex = ?", id) { (parent: $0.optionalInt64(0), json: $0.bytes(1)) }
            guard let row, let tree = try? BinnedTree(jsonBytes: row.json) else {
                throw HexlistError(.notFound, "Hex \(id) is not in the bin.", hint: "`hexlist mine bin` lists deleted hexes.")
            }
            let parent = try row.parent.flatMap { try summary(ofTop: $0)?.location == .mine ? $0 : nil }
            let new = try addMine(tree.content, into: parent, at: now)
            try run("DELETE FROM bin WHERE hex = ?", id)
            return new
        }
    }

    // MARK: - Inside `change`

    /// Copies hexes of My Hexlist into the bin, before they are deleted. Skips hexes in other locations, and inner hexes of a hex that is
    /// deleted too.
    /// - Parameter now: milliseconds since 1970.
    func bin(_ ids: [Int64], at now: Int64) throws {
        let all = Set(ids)
        for id in ids {
            guard let top = try summary(ofTop: id), top.location == .mine, try !hasAncestor(id, in: all), let hex = try hex(id) else {
                continue
            }
            try run(
                """
                INSERT OR REPLACE INTO bin (hex, parent, subject, hexesInside, links, deletedAt, lived, content)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?)
                """, id, hex.summary.parent, hex.summary.subject, hex.summary.hexesInside, hex.content.allLinkCount, now, lived,
                BinnedTree(hex.content).jsonBytes)
        }
        try run(
            """
            DELETE FROM bin WHERE number IN (
                SELECT number FROM (SELECT number, sum(length(content)) OVER (ORDER BY number DESC) AS total FROM bin) WHERE total > ?)
            """, BinnedHex.maximumBytes)
    }

    private func hasAncestor(_ id: Int64, in ids: Set<Int64>) throws -> Bool {
        var next = id
        for _ in 1..<ProtocolLimits.levels {
            guard let parent = try first("SELECT parent FROM hex WHERE id = ?", next, read: { $0.optionalInt64(0) }) ?? nil else {
                return false
            }
            if ids.contains(parent) { return true }
            next = parent
        }
        return false
    }
}

/// The content of a hex in the bin, as JSON.
private struct BinnedTree: JSONShape {
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

    init(_ content: HexContent) {
        func link(_ link: LinkContent) -> Link {
            Link(
                url: content.string(link.url), description: content.string(link.linkDescription), service: content.string(link.service),
                extra: content.string(link.extra))
        }
        top = Node(
            parent: nil, senderUUID: content.string(content.senderUUID), senderName: content.string(content.senderName),
            description: content.string(content.hexDescription), color: content.string(content.hexColor),
            extra: content.string(content.extra), links: content.links.map(link))
        children = content.children.map { child in
            Node(
                parent: child.parent, senderUUID: content.string(child.senderUUID), senderName: content.string(child.senderName),
                description: content.string(child.hexDescription), color: content.string(child.hexColor),
                extra: content.string(child.extra), links: content.childLinks[child.links].map(link))
        }
    }

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
