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
            SELECT node.trashNumber, node.uuid, node.kind, node.hex, node.title, node.url, node.deletedAt, parent.hex, parent.uuid, node.list
            FROM node INDEXED BY nodeTrash
            LEFT JOIN node AS parent ON parent.uuid = node.parent AND parent.list = node.list AND parent.hex IS NOT NULL
            WHERE node.trashNumber < ? AND node.goneWith IS NULL AND node.trashedWith IS NULL
                AND \(hexesOnly ? "node.kind IN (1, 3) AND node.hex IS NOT NULL" : "node.kind IN (1, 2, 3)")
            ORDER BY node.trashNumber DESC
            """, before ?? .max, limit: limit
        ) { row in
            row.size(of: 4...5)
        } read: { row -> TrashedItem? in
            guard let id = row.nodeID(1) else { return nil }
            // A hex of another person that was deleted, and joined again.
            if id.kind == .sharedList, let shared = try sharedList(of: id), try entry(ofList: shared.row) != nil { return nil }
            let isHex = id.kind != .link
            let list = row.int64(9)
            let inside = try id.kind == .sharedList ? shownInside(listOf: id) : deletedTogether(with: id, in: list)
            return TrashedItem(
                number: row.int64(0), hex: isHex ? row.optionalInt64(3) : nil, subject: isHex ? try subject(of: id, in: list) : row.text(4),
                url: isHex ? nil : row.text(5), container: row.optionalInt64(7),
                containerSubject: try row.nodeID(8).map { try subject(of: $0, in: list) }, hexesInside: inside.hexes, links: inside.links,
                deletedAt: row.int64(6))
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
            "SELECT coalesce(sum(kind <> 2), 0), coalesce(sum(kind = 2), 0) FROM \(Self.allItems)"
        ) { ($0.int(0), $0.int(1)) } ?? (0, 0)
    }

    /// Returns the number in the trash of a hex that was deleted on its own; `nil` if there is none.
    public func trashNumber(ofHex hex: Int64) throws -> Int64? {
        try first("SELECT trashNumber FROM node WHERE trashNumber IS NOT NULL AND goneWith IS NULL AND kind = 1 AND hex = ?", hex) {
            $0.int64(0)
        } ?? first("SELECT trashNumber FROM node WHERE trashNumber IS NOT NULL AND kind = 3 AND hex = ?", hex) { $0.int64(0) }
    }

    /// Returns the topmost hex together with which a hex was deleted; `nil` if it was not deleted, or on its own.
    fileprivate func hexDeletedWith(_ hex: Int64) throws -> Int64? {
        try first(
            """
            WITH RECURSIVE outer (uuid, hex, goneWith, list) AS (
                SELECT uuid, hex, goneWith, list FROM node WHERE kind = 1 AND hex = ? AND trashNumber IS NOT NULL
                UNION
                SELECT node.uuid, node.hex, node.goneWith, node.list FROM outer
                    JOIN node ON node.uuid = outer.goneWith AND node.list = outer.list
            )
            SELECT hex FROM outer WHERE goneWith IS NULL AND hex <> ?
            """, hex, hex
        ) { $0.optionalInt64(0) } ?? nil
    }

    /// The table `item`: the node ?1 of the list ?2, and the nodes of the trash that were deleted together with it, at all levels. Between
    /// them may be hexes that arrived deleted, which are not in the trash.
    /// - Parameter isWhole: whether to add the other nodes of its item (`trashedWith`).
    fileprivate static func item(isWhole: Bool = true) -> String {
        """
        WITH RECURSIVE reached (uuid, kind, isListed) AS (
            SELECT uuid, kind, 1 FROM node WHERE uuid = ?1 AND list = ?2
            UNION
            SELECT node.uuid, node.kind, node.trashNumber IS NOT NULL FROM reached CROSS JOIN node ON node.goneWith = reached.uuid
                WHERE (node.trashNumber IS NOT NULL OR node.state = 1) AND node.list = ?2
            \(isWhole
                ? """
                UNION SELECT node.uuid, node.kind, 1 FROM reached CROSS JOIN node ON node.trashedWith = reached.uuid
                    WHERE node.trashNumber IS NOT NULL AND node.list = ?2
                """
                : "")
        ), item (uuid, kind) AS (SELECT uuid, kind FROM reached WHERE isListed)
        """
    }

    /// Returns the numbers of hexes and links that were deleted together with a node, at all levels, without the node.
    /// - Parameters:
    ///   - list: `ListRecord.row`.
    ///   - isWhole: whether to add those of the same item (`trashedWith`), which are restored together with it.
    func deletedTogether(with node: ListNode.ID, in list: Int64, isWhole: Bool = true) throws -> (hexes: Int, links: Int) {
        try first(
            "\(Self.item(isWhole: isWhole)) SELECT coalesce(sum(kind = 1), 0), coalesce(sum(kind = 2), 0) FROM item WHERE uuid <> ?1",
            node.uuid, list
        ) { ($0.int(0), $0.int(1)) } ?? (0, 0)
    }

    /// Returns the numbers of shown hexes and links of the shared list that an entry names, without the root.
    private func shownInside(listOf entry: ListNode.ID) throws -> (hexes: Int, links: Int) {
        guard let list = try sharedList(of: entry) else { return (0, 0) }
        return try first(
            """
            SELECT coalesce(sum(kind = 1 AND uuid <> ?1), 0), coalesce(sum(kind = 2), 0) FROM node INDEXED BY nodeChanged
            WHERE list = ?2 AND seq IS NOT NULL AND state <> 1
            """,
            list.id.uuid, list.row
        ) { ($0.int(0), $0.int(1)) } ?? (0, 0)
    }

    /// Returns the nodes of the trash that are a part of the item of another node (`trashedWith`).
    /// - Parameter list: `ListRecord.row`.
    fileprivate func trashed(with node: ListNode.ID, in list: Int64) throws -> [ListNode.ID] {
        try all("SELECT uuid FROM node WHERE trashedWith = ? AND list = ? ORDER BY trashNumber", node.uuid, list) { $0.nodeID(0) }
            .compactMap(\.self)
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
    /// Removes the hexes of which shared lists are copies from the trash, with everything that was deleted together with them.
    /// `purgeUnshown` removes the values of the links later.
    func removeCopiedFromTrash() throws {
        let storage = try SQLListStorage(ListRecord(on: self), on: self)
        for (hex, time) in try copiedHexes() {
            // Later changes restored it, so a later deletion is no part of the sharing.
            guard let version = try storage.row(hex)?.node.version, version.clock < time else { continue }
            let nodes = try all("\(Self.item()) SELECT uuid FROM item", hex.uuid, ListRecord.mine) { $0.nodeID(0) }.compactMap(\.self)
            for node in nodes { try takeFromTrash(node) }
        }
    }

    /// Takes a node of My Hexlist out of the trash, which cannot restore it any more.
    func takeFromTrash(_ node: ListNode.ID) throws {
        try run(
            "UPDATE node SET trashNumber = NULL, trashedWith = NULL WHERE uuid = ? AND list = ? AND trashNumber IS NOT NULL", node.uuid,
            ListRecord.mine)
    }

    func restoreMine(numbers: [Int64], at now: Int64) throws -> [RestoredItem] {
        try change {
            var items: [TrashedNode] = []
            for number in numbers where !items.contains(where: { $0.number == number }) {
                let found = try first("SELECT uuid, list FROM node WHERE trashNumber = ? AND goneWith IS NULL", number) { row in
                    row.nodeID(0).map { TrashedNode(number: number, id: $0, list: row.int64(1)) }
                }
                guard let item = found ?? nil else {
                    let other = try trashNumber(ofHex: number)
                    throw HexlistError(
                        .notFound, "There is no item \(number) in the trash.",
                        hint: other.map { "Hex \(number) is item \($0): `hexlist mine trash --restore \($0)`." }
                            ?? "`hexlist mine trash` lists deleted hexes and links.")
                }
                items.append(item)
            }
            let links = items.filter { $0.id.kind == .link }
            let others = try items.map { try $0.id.kind == .link ? deletedTogether(with: $0.id, in: $0.list) : (hexes: 0, links: 0) }
            let inDeletedHex = try links.filter { try isInDeletedHex($0, besides: items) }
            let around = try inDeletedHex.map { ($0, try deletedHexes(around: $0)) }
            for (list, items) in Dictionary(grouping: items, by: \.list).sorted(by: { $0.key < $1.key }) {
                let changed = try changeMine(at: now, in: list) { mine in
                    try mine.restore(items.map(\.id))
                    return mine.changedHexes
                }
                try checkBounds(of: changed, in: list)
            }
            return try zip(items, others).map { item, others in
                var restored = try restored(item)
                (restored.otherHexes, restored.otherLinks) = others
                restored.isHexRestored = inDeletedHex.contains(item)
                restored.around = try around.first { $0.0 == item }?.1.dropFirst().filter { try hex($0) != nil } ?? []
                return restored
            }
        }
    }

    /// The node of an item of the trash.
    private struct TrashedNode: Equatable {
        var number: Int64
        var id: ListNode.ID
        /// `ListRecord.row`.
        var list: Int64
    }

    /// Whether the hex of a link is deleted, and is neither an item that is restored too nor inside one.
    private func isInDeletedHex(_ link: TrashedNode, besides items: [TrashedNode]) throws -> Bool {
        let hexes = try all(
            """
            WITH RECURSIVE hexes (uuid, goneWith) AS (
                SELECT hex.uuid, hex.goneWith FROM node JOIN node AS hex ON hex.uuid = node.parent AND hex.list = node.list
                    WHERE node.uuid = ?1 AND node.list = ?2 AND hex.state <> 0
                UNION
                SELECT node.uuid, node.goneWith FROM hexes JOIN node ON node.uuid = hexes.goneWith AND node.list = ?2
            )
            SELECT uuid FROM hexes
            """, link.id.uuid, link.list
        ) { $0.nodeID(0) }.compactMap(\.self)
        return !hexes.isEmpty && !items.contains { $0.list == link.list && hexes.contains($0.id) }
    }

    /// Returns the deleted hexes that contain a link: its own hex first, then those around it up to one that is not deleted.
    private func deletedHexes(around link: TrashedNode) throws -> [Int64] {
        try all(
            """
            WITH RECURSIVE hexes (uuid, level) AS (
                SELECT parent, 0 FROM node WHERE uuid = ?1 AND list = ?2
                UNION ALL
                SELECT node.parent, level + 1 FROM hexes JOIN node ON node.uuid = hexes.uuid AND node.list = ?2
                    WHERE node.state <> 0 AND level < \(ProtocolLimits.levels)
            )
            SELECT node.hex FROM hexes JOIN node ON node.uuid = hexes.uuid AND node.list = ?2
            WHERE node.kind = 1 AND node.state <> 0 AND node.hex IS NOT NULL ORDER BY level
            """, link.id.uuid, link.list
        ) { $0.int64(0) }
    }

    private func restored(_ item: TrashedNode) throws -> RestoredItem {
        if item.id.kind != .link {
            let row = try first(
                """
                SELECT node.hex, parent.hex FROM node LEFT JOIN node AS parent ON parent.uuid = node.container AND parent.list = node.list
                WHERE node.uuid = ? AND node.list = ?
                """, item.id.uuid, item.list
            ) { (hex: $0.int64(0), container: $0.optionalInt64(1)) }
            return RestoredItem(number: item.number, hex: row?.hex ?? 0, container: row?.container)
        }
        let place = try first(
            """
            SELECT hex.hex, (SELECT count(*) FROM node AS other WHERE other.container = link.container AND other.state <> 1
                AND other.kind = 2 AND other.list = link.list AND (other.orderKey, other.uuid) < (link.orderKey, link.uuid))
            FROM node AS link JOIN node AS hex ON hex.uuid = link.container AND hex.list = link.list
            WHERE link.uuid = ? AND link.list = ?
            """, item.id.uuid, item.list
        ) { (hex: $0.int64(0), link: $0.int(1)) }
        return RestoredItem(number: item.number, hex: place?.hex ?? 0, link: place?.link ?? 0)
    }

    /// Checks the bounds of the topmost hexes that contain changed hexes.
    /// - Parameter list: `ListRecord.row`.
    func checkBounds(of changed: Set<ListNode.ID>, in list: Int64) throws {
        var tops: Set<Int64> = []
        for id in changed {
            let row = try first(
                """
                SELECT node.hex, node.container <> node.parent AND parent.state = 0 FROM node
                LEFT JOIN node AS parent ON parent.uuid = node.parent AND parent.list = node.list AND parent.kind = 1
                WHERE node.uuid = ? AND node.list = ? AND node.state <> 1
                """, id.uuid, list
            ) { (hex: $0.optionalInt64(0), isAboveParent: $0.int(1) == 1) }
            if let row, row.isAboveParent { throw HexlistError.tooDeep }  // the tree shows too deep hexes on the deepest level
            guard let hex = row?.hex, let top = try summary(ofTop: hex)?.id, tops.insert(top).inserted else { continue }
            try checkBounds(ofTop: top)
        }
    }

    /// Removes old items from the trash for good, and the oldest ones of My Hexlist above the bound of its size. Those of a shared list count to
    /// the texts of the list (`ListLimits.sharedListTextBytes`), so no member can remove items of My Hexlist.
    /// - Parameter limit: the number of nodes after which no further item is removed.
    func purgeTrash(limit: Int) throws -> (hexes: Int, links: Int) {
        let old = lived &- Self.days(TrashedItem.days)
        let aged = try removeFromTrash(limit: limit) { $0.lived <= old }
        let mine = "list = \(ListRecord.mine)"
        let newest = try first("SELECT max(trashNumber) FROM \(Self.allItems) AND \(mine)") { $0.int64(0) } ?? 0
        var bytes = try first("SELECT coalesce(sum(trashBytes), 0) FROM node WHERE trashNumber IS NOT NULL AND \(mine)") { $0.int(0) } ?? 0
        let large = try removeFromTrash(limit: max(0, limit - aged.nodes), of: ListRecord.mine) { item in
            defer { bytes -= item.bytes }
            return bytes > trashBytes && item.number < newest
        }
        return (aged.hexes + large.hexes, aged.links + large.links + (try purgeUnshown(deletedUntil: old, limit: limit)))
    }

    /// Removes the values of links that were deleted before they arrived here.
    /// - Parameters:
    ///   - time: the latest time of their arrival, by `StoreOpenTimeClock`.
    ///   - limit: maximum number of links.
    /// - Returns: their number.
    fileprivate func purgeUnshown(deletedUntil time: Int64, limit: Int) throws -> Int {
        try change {
            let links = try all(
                "SELECT uuid, list FROM node INDEXED BY nodeUnshown WHERE trashNumber IS NULL AND lived <= ? ORDER BY lived LIMIT ?", time,
                limit
            ) { (id: $0.nodeID(0), list: $0.int64(1)) }
            for (list, links) in Dictionary(grouping: links, by: \.list) { try purge(links.compactMap(\.id), in: list) }
            return links.count
        }
    }

    /// Takes deleted nodes out of the trash, and removes the values of the links. Their ids and deletion marks stay, because other machines
    /// may have the nodes.
    private func purge(_ nodes: [ListNode.ID], in list: Int64) throws {
        guard !nodes.isEmpty else { return }
        let before = list == ListRecord.mine ? 0 : try textBytes(of: nodes, in: list)
        try changeMine(at: 0, in: list) { mine in  // the time is not used
            let isWritable = try isWritable(list)
            for node in nodes {
                // This would write a mark that the owner of a read-only list does not receive.
                if !isWritable, try mine.nodes.storage.row(node)?.node.deletion?.with != nil { continue }
                try mine.nodes.purge(node)
            }
            _ = mine.nodes.takeChanges()  // it changes nothing that is shown
        }
        if list != ListRecord.mine {
            let removed = try before - textBytes(of: nodes, in: list)
            try run("UPDATE list SET textBytes = max(0, textBytes - ?) WHERE id = ?", removed, list)
        }
        for node in nodes {
            // The new id moves the row to the end of the table. SQLite does not merge pages when their rows become smaller, so rows that stay
            // would take three times their size (the bound for deleted rows in Docs/Lists.md). 0 in `via` takes no space, in the row and in
            // an index; if the machine from which the row came requests all rows, it is sent there, too.
            try run(
                """
                UPDATE node SET id = (SELECT max(id) + 1 FROM node), trashNumber = NULL, trashedWith = NULL, deletedAt = NULL, lived = NULL,
                    addedClock = NULL, addedBy = NULL, via = iif(list = \(ListRecord.mine) AND via IS NOT NULL, \(SQLListStorage.severalReplicas), via)
                WHERE uuid = ? AND list = ?
                """, node.uuid, list)
            if node.kind == .sharedList { try removeSharedList(of: node) }
        }
    }

    /// An item of the trash with everything that was deleted together with it.
    fileprivate struct WholeItem {
        var number: Int64
        var lived: Int64
        /// `ListRecord.row`.
        var list: Int64
        /// The nodes of the item, and the bytes of their texts.
        var nodes: [ListNode.ID]
        var bytes: Int
    }

    /// Removes the nodes of the oldest items, as long as `isDue`. A change log that names them cannot restore them any more. In a list that is
    /// or was on other machines, ids, deletion marks, and the values of hexes stay.
    /// - Parameters:
    ///   - limit: the number of nodes after which no further item is removed.
    ///   - list: `ListRecord.row`; `nil` for all lists.
    /// - Returns: the numbers of removed nodes.
    fileprivate func removeFromTrash(
        limit: Int, of list: Int64? = nil, while isDue: (WholeItem) -> Bool
    ) throws -> (hexes: Int, links: Int, nodes: Int) {
        try change {
            var removed = (hexes: 0, links: 0, nodes: 0)
            let isReplicated = try ListRecord(on: self).isReplicated
            while removed.nodes < limit, let item = try oldestItem(of: list, includingShown: isReplicated), isDue(item) {
                if isReplicated || item.list != ListRecord.mine {
                    try purge(item.nodes, in: item.list)
                } else {
                    for node in item.nodes {
                        if node.kind == .sharedList { try removeSharedList(of: node) }
                        try run("DELETE FROM node WHERE uuid = ? AND list = ?", node.uuid, item.list)
                    }
                }
                removed.hexes += item.nodes.count { $0.kind != .link }
                removed.links += item.nodes.count { $0.kind == .link }
                removed.nodes += item.nodes.count
            }
            return removed
        }
    }

    /// - Parameters:
    ///   - list: `ListRecord.row`; `nil` for all lists.
    ///   - includesShown: whether a hex of My Hexlist that is shown because of later contents is included, as those of shared lists
    ///     are. Its other contents are in the trash.
    private func oldestItem(of list: Int64?, includingShown includesShown: Bool) throws -> WholeItem? {
        let isIncluded = includesShown ? "" : " AND (state = 1 OR list <> \(ListRecord.mine))"
        let top = try first(
            "SELECT trashNumber, lived, uuid, list FROM \(Self.allItems)\(isIncluded) AND list = coalesce(?, list) ORDER BY trashNumber LIMIT 1",
            list
        ) { (number: $0.int64(0), lived: $0.int64(1), node: $0.bytes(2), list: $0.int64(3)) }
        guard let top else { return nil }
        let nodes = try all(
            "\(Self.item()) SELECT node.uuid, node.trashBytes FROM item CROSS JOIN node ON node.uuid = item.uuid AND node.list = ?2",
            top.node,
            top.list
        ) { (id: $0.nodeID(0), bytes: $0.int(1)) }
        return WholeItem(
            number: top.number, lived: top.lived, list: top.list, nodes: nodes.compactMap(\.id),
            bytes: nodes.reduce(0) { $0 + $1.bytes })
    }
}

extension MyHexlistTransaction {
    /// Restores deleted nodes.
    fileprivate mutating func restore(_ items: [ListNode.ID]) throws {
        let ids = try items.flatMap { try [$0] + writer.trashed(with: $0, in: list.row) }
        for id in ids {
            try countRestoredInside(id)
            try nodes.restore(id)
        }
        try placeRestored(ids)
    }

    /// Adds the nodes that are restored together with a hex to the counts of the log.
    mutating func countRestoredInside(_ id: ListNode.ID) throws {
        guard id.kind == .hex else { return }
        let inside = try writer.deletedTogether(with: id, in: list.row, isWhole: false)
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
