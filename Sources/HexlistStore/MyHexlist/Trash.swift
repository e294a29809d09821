internal import GRDB
internal import HexlistLists
internal import HexlistModel

/// A hex or link that was deleted from My Hexlist and can be restored: on its own, or as the topmost hex of a deletion.
public struct TrashedItem: Sendable, Equatable {
    /// The number by which users refer to it. It never changes.
    public var number: Int64
    /// The id of the hex, which it has again when it is restored; `nil` for a link.
    public var hex: Int64?
    /// The subject of the hex (`HexSubject`), or the description of the link.
    public var subject: String
    /// The URL of the link; `nil` for a hex.
    public var url: String?
    /// The id and subject of the hex in which it was, which may be deleted too; `nil` for the top level, or if that hex was removed for good.
    public var container: Int64?
    public var containerSubject: String?
    /// Numbers of inner hexes and links that were deleted together with the hex, at all levels. Of a link, numbers of further ones that were
    /// in the same deleted hex, which was restored without them: they are one item.
    public var hexesInside: Int
    public var links: Int
    /// Milliseconds since 1970.
    public var deletedAt: Int64

    /// Number of days after which a deleted item is removed.
    public static let days = 60
    /// Maximum bytes of the texts in the trash. Above it, the items deleted first are removed; the last one stays, also a larger one.
    static let maximumBytes = 64 << 20
}

/// An item that was restored from the trash.
public struct RestoredItem: Sendable, Equatable {
    /// The number that it had in the trash.
    public var number: Int64
    /// The id of the hex, or of the hex in which the link is.
    public var hex: Int64
    /// The position of the link in the hex, from 0; `nil` for a hex.
    public var link: Int?
    /// The hex in which a restored hex is; `nil` for a link, and for a hex at the top level.
    public var container: Int64?
    /// Whether the hex of a link was deleted, and is shown again with the restored links only.
    public var isHexRestored = false
    /// The hexes around that hex which were deleted too and are shown again for the same reason, the innermost first.
    public var around: [Int64] = []
    /// Numbers of further hexes and links that were restored with a link, because they were one item.
    public var otherHexes = 0
    public var otherLinks = 0
}

extension StoreReader {
    /// Returns a page of the trash, newest first.
    /// - Parameters:
    ///   - before: the number of the last item of the previous page.
    ///   - hexesOnly: whether to leave out links that were deleted on their own.
    public func trashPage(limit: Int, before: Int64?, hexesOnly: Bool = false) throws -> Page<TrashedItem> {
        let limit = pageLimit(limit)
        let found = try page(
            """
            SELECT node.trashNumber, node.uuid, node.kind, node.hex, node.title, node.url, node.deletedAt, parent.hex, parent.uuid
            FROM node INDEXED BY nodeTrash
            LEFT JOIN node AS parent ON parent.uuid = node.parent AND parent.hex IS NOT NULL
            WHERE node.trashNumber < ? AND node.goneWith IS NULL AND node.trashedWith IS NULL
                AND \(hexesOnly ? "node.kind = 1 AND node.hex IS NOT NULL" : "node.kind IN (1, 2)")
            ORDER BY node.trashNumber DESC
            """, before ?? .max, limit: limit
        ) { row in
            row.size(of: 4...5)
        } read: { row -> TrashedItem? in
            guard let id = row.nodeID(1) else { return nil }
            let isHex = id.kind == .hex
            let inside = try deletedTogether(with: id)
            return TrashedItem(
                number: row.int64(0), hex: isHex ? row.optionalInt64(3) : nil, subject: isHex ? try subject(of: id) : row.text(4),
                url: isHex ? nil : row.text(5), container: row.optionalInt64(7), containerSubject: try row.nodeID(8).map(subject),
                hexesInside: inside.hexes, links: inside.links, deletedAt: row.int64(6))
        }
        return Page(items: found.rows, next: found.hasMore ? found.rows.last?.number : nil)
    }

    /// The items of the trash, with the conditions of their index.
    fileprivate static let allItems = """
        node INDEXED BY nodeTrash WHERE trashNumber IS NOT NULL AND goneWith IS NULL AND trashedWith IS NULL
        """

    /// Returns the numbers of hexes and links that `trashPage` lists.
    public func trashCount() throws -> (hexes: Int, links: Int) {
        try first(
            "SELECT coalesce(sum(kind = 1), 0), coalesce(sum(kind = 2), 0) FROM \(Self.allItems)"
        ) { ($0.int(0), $0.int(1)) } ?? (0, 0)
    }

    /// Returns the number in the trash of a hex that was deleted on its own; `nil` if there is none.
    public func trashNumber(ofHex hex: Int64) throws -> Int64? {
        try first("SELECT trashNumber FROM node WHERE trashNumber IS NOT NULL AND goneWith IS NULL AND kind = 1 AND hex = ?", hex) {
            $0.int64(0)
        }
    }

    /// Returns the topmost hex together with which a hex was deleted; `nil` if it was not deleted, or on its own.
    fileprivate func hexDeletedWith(_ hex: Int64) throws -> Int64? {
        try first(
            """
            WITH RECURSIVE outer (uuid, hex, goneWith) AS (
                SELECT uuid, hex, goneWith FROM node WHERE kind = 1 AND hex = ? AND trashNumber IS NOT NULL
                UNION
                SELECT node.uuid, node.hex, node.goneWith FROM outer JOIN node ON node.uuid = outer.goneWith
            )
            SELECT hex FROM outer WHERE goneWith IS NULL AND hex <> ?
            """, hex, hex
        ) { $0.optionalInt64(0) } ?? nil
    }

    /// The table `item`: the node ?1, and the nodes that were deleted together with it, at all levels.
    /// - Parameter isWhole: whether to add the other nodes of its item (`trashedWith`).
    fileprivate static func item(isWhole: Bool = true) -> String {
        """
        WITH RECURSIVE item (uuid, kind) AS (
            SELECT uuid, kind FROM node WHERE uuid = ?1
            UNION
            SELECT node.uuid, node.kind FROM item CROSS JOIN node ON node.goneWith = item.uuid WHERE node.trashNumber IS NOT NULL
            \(isWhole
                ? "UNION SELECT node.uuid, node.kind FROM item CROSS JOIN node ON node.trashedWith = item.uuid WHERE node.trashNumber IS NOT NULL"
                : "")
        )
        """
    }

    /// Returns the numbers of hexes and links that were deleted together with a node, at all levels, without the node.
    /// - Parameter isWhole: whether to add those of the same item (`trashedWith`), which are restored together with it.
    func deletedTogether(with node: ListNode.ID, isWhole: Bool = true) throws -> (hexes: Int, links: Int) {
        try first(
            "\(Self.item(isWhole: isWhole)) SELECT coalesce(sum(kind = 1), 0), coalesce(sum(kind = 2), 0) FROM item WHERE uuid <> ?1",
            node.uuid
        ) { ($0.int(0), $0.int(1)) } ?? (0, 0)
    }

    /// Returns the nodes of the trash that are a part of the item of another node (`trashedWith`).
    fileprivate func trashed(with node: ListNode.ID) throws -> [ListNode.ID] {
        try all("SELECT uuid FROM node WHERE trashedWith = ? ORDER BY trashNumber", node.uuid) { $0.nodeID(0) }.compactMap(\.self)
    }
}

extension HexStore {
    /// Restores items from the trash, each at its place. A hex whose container was deleted is at the top level afterwards; if the hex of a
    /// link was deleted, it is shown again with the restored links only.
    /// - Parameter numbers: numbers of `TrashedItem`.
    /// - Returns: one item for each different number, in this order.
    /// - Throws: `.notFound` if one is not in the trash; `.badRequest` if a hex would exceed its bounds. Then nothing is restored.
    public func restoreMine(numbers: [Int64], at now: Int64) async throws -> [RestoredItem] {
        try await write(rows: numbers.count) { try $0.restoreMine(numbers: numbers, at: now) }
    }

    /// Restores a deleted hex with its inner hexes, as `restoreMine(numbers:at:)`.
    /// - Returns: its id, which it had before.
    /// - Throws: `.notFound` if it is not in the trash; `.badRequest` if a hex would exceed its bounds.
    public func restoreMine(_ hex: Int64, at now: Int64) async throws -> Int64 { try await restoreMine(hexes: [hex], at: now)[0].hex }

    /// Restores deleted hexes with their inner hexes, as `restoreMine(numbers:at:)`, by the ids that they had.
    /// - Throws: as `restoreMine(_:at:)`. Then nothing is restored.
    public func restoreMine(hexes: [Int64], at now: Int64) async throws -> [RestoredItem] {
        try await write(rows: hexes.count) { writer in
            try writer.restoreMine(numbers: hexes.map(writer.trashNumber(ofDeleted:)), at: now)
        }
    }

    /// Removes everything from the trash for good, and all changes from the change log, which has values of deleted hexes and links too.
    /// Hexes and links that are deleted meanwhile stay.
    /// - Returns: the numbers of hexes and links, as `trashPage` lists them.
    public func emptyTrash() async throws -> (hexes: Int, links: Int) {
        let (count, last) = try await write { writer in
            try writer.change {
                try writer.forgetChanges(upTo: .max)
                return (try writer.trashCount(), try ListRecord(on: writer).deletions)
            }
        }
        while try await write({ try $0.removeFromTrash(limit: Self.nodesPerPurge) { $0.number <= last } }).nodes > 0 {}
        while try await write({ try $0.purgeUnshown(deletedUntil: .max, limit: Self.nodesPerPurge) }) > 0 {}
        return count
    }

    /// The number of nodes after which a transaction that empties the trash ends.
    private static let nodesPerPurge = 2_000
}

extension StoreReader {
    /// Returns the number in the trash of a hex.
    /// - Throws: `.notFound` if it is not an item of the trash.
    fileprivate func trashNumber(ofDeleted hex: Int64) throws -> Int64 {
        if let number = try trashNumber(ofHex: hex) { return number }
        if let outer = try hexDeletedWith(hex) {
            throw HexlistError(
                .notFound, "Hex \(hex) was inside hex \(outer), and was deleted with it.",
                hint: "To restore hex \(outer) with everything inside: `hexlist mine restore \(outer)`.")
        }
        let isItem = try first("SELECT 1 FROM node WHERE trashNumber = ? AND goneWith IS NULL", hex) { _ in true } ?? false
        throw HexlistError(
            .notFound, "Hex \(hex) is not in the trash.",
            hint: isItem
                ? "To restore item \(hex): `hexlist mine trash --restore \(hex)`." : "`hexlist mine trash` lists deleted hexes and links.")
    }
}

extension StoreWriter {
    func restoreMine(numbers: [Int64], at now: Int64) throws -> [RestoredItem] {
        try change {
            var items: [(number: Int64, node: ListNode.ID)] = []
            for number in numbers where !items.contains(where: { $0.number == number }) {
                let found = try first("SELECT uuid FROM node WHERE trashNumber = ? AND goneWith IS NULL", number) { $0.nodeID(0) }
                guard let id = found ?? nil else {
                    let other = try trashNumber(ofHex: number)
                    throw HexlistError(
                        .notFound, "There is no item \(number) in the trash.",
                        hint: other.map { "Hex \(number) is item \($0): `hexlist mine trash --restore \($0)`." }
                            ?? "`hexlist mine trash` lists deleted hexes and links.")
                }
                items.append((number, id))
            }
            let ids = items.map(\.node)
            let others = try ids.map { try $0.kind == .link ? deletedTogether(with: $0) : (hexes: 0, links: 0) }
            let inDeletedHex = try ids.filter { try $0.kind == .link && isInDeletedHex($0, besides: Set(ids)) }
            let around = try inDeletedHex.map { ($0, try deletedHexes(around: $0)) }
            let changed = try changeMine(at: now) { mine in
                try mine.restore(ids)
                return mine.changedHexes
            }
            try checkBounds(of: changed)
            return try zip(items, others).map { found, others in
                let (number, id) = found
                var item = try restored(number, id)
                (item.otherHexes, item.otherLinks) = others
                item.isHexRestored = inDeletedHex.contains(id)
                item.around = try around.first { $0.0 == id }?.1.dropFirst().filter { try hex($0) != nil } ?? []
                return item
            }
        }
    }

    /// Whether the hex of a link is deleted, and is neither an item that is restored too nor inside one.
    private func isInDeletedHex(_ link: ListNode.ID, besides items: Set<ListNode.ID>) throws -> Bool {
        let hexes = try all(
            """
            WITH RECURSIVE hexes (uuid, goneWith) AS (
                SELECT hex.uuid, hex.goneWith FROM node JOIN node AS hex ON hex.uuid = node.parent WHERE node.uuid = ? AND hex.state <> 0
                UNION
                SELECT node.uuid, node.goneWith FROM hexes JOIN node ON node.uuid = hexes.goneWith
            )
            SELECT uuid FROM hexes
            """, link.uuid
        ) { $0.nodeID(0) }.compactMap(\.self)
        return !hexes.isEmpty && items.isDisjoint(with: hexes)
    }

    /// Returns the deleted hexes that contain a link: its own hex first, then those around it up to one that is not deleted.
    private func deletedHexes(around link: ListNode.ID) throws -> [Int64] {
        try all(
            """
            WITH RECURSIVE hexes (uuid, level) AS (
                SELECT parent, 0 FROM node WHERE uuid = ?
                UNION ALL
                SELECT node.parent, level + 1 FROM hexes JOIN node ON node.uuid = hexes.uuid
                    WHERE node.state <> 0 AND level < \(ProtocolLimits.levels)
            )
            SELECT node.hex FROM hexes JOIN node ON node.uuid = hexes.uuid
            WHERE node.kind = 1 AND node.state <> 0 AND node.hex IS NOT NULL ORDER BY level
            """, link.uuid
        ) { $0.int64(0) }
    }

    private func restored(_ number: Int64, _ id: ListNode.ID) throws -> RestoredItem {
        if id.kind == .hex {
            let row = try first(
                "SELECT node.hex, parent.hex FROM node LEFT JOIN node AS parent ON parent.uuid = node.container WHERE node.uuid = ?",
                id.uuid
            ) { (hex: $0.int64(0), container: $0.optionalInt64(1)) }
            return RestoredItem(number: number, hex: row?.hex ?? 0, container: row?.container)
        }
        let place = try first(
            """
            SELECT hex.hex, (SELECT count(*) FROM node AS other WHERE other.container = link.container AND other.state <> 1
                AND other.kind = 2 AND (other.orderKey, other.uuid) < (link.orderKey, link.uuid))
            FROM node AS link JOIN node AS hex ON hex.uuid = link.container WHERE link.uuid = ?
            """, id.uuid
        ) { (hex: $0.int64(0), link: $0.int(1)) }
        return RestoredItem(number: number, hex: place?.hex ?? 0, link: place?.link ?? 0)
    }

    /// Checks the bounds of the topmost hexes that contain changed hexes.
    func checkBounds(of changed: Set<ListNode.ID>) throws {
        var tops: Set<Int64> = []
        for id in changed {
            let row = try first(
                """
                SELECT node.hex, node.container <> node.parent AND parent.state = 0 FROM node
                LEFT JOIN node AS parent ON parent.uuid = node.parent AND parent.kind = 1 WHERE node.uuid = ? AND node.state <> 1
                """, id.uuid
            ) { (hex: $0.optionalInt64(0), isAboveParent: $0.int(1) == 1) }
            if let row, row.isAboveParent { throw HexlistError.tooDeep }  // the tree shows too deep hexes on the deepest level
            guard let hex = row?.hex, let top = try summary(ofTop: hex)?.id, tops.insert(top).inserted else { continue }
            try checkBounds(ofTop: top)
        }
    }

    /// Removes old items from the trash for good, and the oldest ones above the bound of its size.
    /// - Parameter limit: the number of nodes after which no further item is removed.
    func purgeTrash(limit: Int) throws -> (hexes: Int, links: Int) {
        let old = lived &- Self.days(TrashedItem.days)
        let newest = try first("SELECT max(trashNumber) FROM \(Self.allItems)") { $0.int64(0) } ?? 0
        var bytes = try first("SELECT coalesce(sum(trashBytes), 0) FROM node WHERE trashNumber IS NOT NULL") { $0.int(0) } ?? 0
        let removed = try removeFromTrash(limit: limit) { item in
            defer { bytes -= item.bytes }
            return item.lived <= old || bytes > trashBytes && item.number < newest
        }
        return (removed.hexes, removed.links + (try purgeUnshown(deletedUntil: old, limit: limit)))
    }

    /// Removes the values of links that were deleted before they arrived here.
    /// - Parameters:
    ///   - time: the latest time of their arrival, by `StoreOpenTimeClock`.
    ///   - limit: maximum number of links.
    /// - Returns: their number.
    fileprivate func purgeUnshown(deletedUntil time: Int64, limit: Int) throws -> Int {
        try change {
            let links = try all(
                "SELECT uuid FROM node INDEXED BY nodeUnshown WHERE trashNumber IS NULL AND lived <= ? ORDER BY lived LIMIT ?", time, limit
            ) { $0.nodeID(0) }.compactMap(\.self)
            try purge(links)
            return links.count
        }
    }

    /// Takes deleted nodes out of the trash, and removes the values of the links. Their ids and deletion marks stay, because other machines
    /// may have the nodes.
    private func purge(_ nodes: [ListNode.ID]) throws {
        guard !nodes.isEmpty else { return }
        try changeMine(at: 0) { mine in  // the time is not used
            for node in nodes { try mine.nodes.purge(node) }
            _ = mine.nodes.takeChanges()  // it changes nothing that is shown
        }
        for node in nodes {
            try run("UPDATE node SET trashNumber = NULL, trashedWith = NULL, deletedAt = NULL, lived = NULL WHERE uuid = ?", node.uuid)
        }
    }

    /// An item of the trash with everything that was deleted together with it.
    fileprivate struct WholeItem {
        var number: Int64
        var lived: Int64
        /// The nodes of the item, and the bytes of their texts.
        var nodes: [ListNode.ID]
        var bytes: Int
    }

    /// Removes the nodes of the oldest items, as long as `isDue`. A change log that names them cannot restore them any more. If there are or
    /// were own machines, ids, deletion marks, and the values of hexes stay.
    /// - Parameter limit: the number of nodes after which no further item is removed.
    /// - Returns: the numbers of removed nodes.
    fileprivate func removeFromTrash(
        limit: Int, while isDue: (WholeItem) -> Bool
    ) throws -> (hexes: Int, links: Int, nodes: Int) {
        try change {
            var removed = (hexes: 0, links: 0, nodes: 0)
            let isReplicated = try ListRecord(on: self).isReplicated
            while removed.nodes < limit, let item = try oldestItem(includingShown: isReplicated), isDue(item) {
                if isReplicated {
                    try purge(item.nodes)
                } else {
                    for node in item.nodes { try run("DELETE FROM node WHERE uuid = ?", node.uuid) }
                }
                removed.hexes += item.nodes.count { $0.kind == .hex }
                removed.links += item.nodes.count { $0.kind == .link }
                removed.nodes += item.nodes.count
            }
            return removed
        }
    }

    /// - Parameter includesShown: whether a hex that is shown because of later contents is included. Its other contents are in the trash.
    private func oldestItem(includingShown includesShown: Bool) throws -> WholeItem? {
        let top = try first(
            """
            SELECT trashNumber, lived, uuid FROM \(Self.allItems)\(includesShown ? "" : " AND state = 1") ORDER BY trashNumber LIMIT 1
            """
        ) { (number: $0.int64(0), lived: $0.int64(1), node: $0.bytes(2)) }
        guard let top else { return nil }
        let nodes = try all(
            "\(Self.item()) SELECT node.uuid, node.trashBytes FROM item CROSS JOIN node ON node.uuid = item.uuid", top.node
        ) { (id: $0.nodeID(0), bytes: $0.int(1)) }
        return WholeItem(
            number: top.number, lived: top.lived, nodes: nodes.compactMap(\.id), bytes: nodes.reduce(0) { $0 + $1.bytes })
    }
}

extension MyHexlistTransaction {
    /// Restores deleted nodes.
    fileprivate mutating func restore(_ items: [ListNode.ID]) throws {
        let ids = try items.flatMap { try [$0] + writer.trashed(with: $0) }
        for id in ids {
            try countRestoredInside(id)
            try nodes.restore(id)
        }
        try placeRestored(ids)
    }

    /// Adds the nodes that are restored together with a hex to the counts of the log.
    mutating func countRestoredInside(_ id: ListNode.ID) throws {
        guard id.kind == .hex else { return }
        let inside = try writer.deletedTogether(with: id, isWhole: false)
        draft.hexes.restored += inside.hexes
        draft.links.restored += inside.links
    }

    /// Moves restored hexes to the top level if their container is deleted.
    mutating func placeRestored(_ ids: [ListNode.ID]) throws {
        try deriveTree()
        for id in ids where id.kind == .hex {
            guard let row = try nodes.storage.row(id), row.state == .present, row.node.place?.parent != list.id else { continue }
            if let container = row.container, container != list.id, try nodes.storage.row(container)?.state == .present { continue }
            try moveToTop(id)
            try deriveTree()  // the next one gets its place beside this one
        }
    }
}

extension HexlistError {
    static func noMine(_ id: Int64) -> HexlistError {
        HexlistError(.notFound, "There is no hex \(id) in My Hexlist.", hint: "`hexlist mine --tree` lists your hexes.")
    }
}
