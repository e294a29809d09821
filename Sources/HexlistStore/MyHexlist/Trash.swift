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
    /// The id and subject of the hex in which it was; `nil` for the top level. The hex may be deleted too.
    public var container: Int64?
    public var containerSubject: String?
    /// Numbers of inner hexes and links that were deleted together with the hex, at all levels.
    public var hexesInside: Int
    public var links: Int
    /// Milliseconds since 1970.
    public var deletedAt: Int64

    /// Number of days after which a deleted item is removed.
    public static let days = 60
    /// Maximum bytes of the texts in the trash. Above it, the items deleted first are removed; the last one stays, whatever its size.
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
            WHERE node.trashNumber < ? AND node.goneWith IS NULL AND \(hexesOnly ? "node.kind = 1 AND node.hex IS NOT NULL" : "node.kind IN (1, 2)")
            ORDER BY node.trashNumber DESC
            """, before ?? .max, limit: limit
        ) { row in
            row.size(of: 4...5)
        } read: { row -> TrashedItem? in
            guard let id = row.nodeID(1) else { return nil }
            let isHex = id.kind == .hex
            let inside = isHex ? try deletedTogether(with: id) : (hexes: 0, links: 0)
            return TrashedItem(
                number: row.int64(0), hex: isHex ? row.optionalInt64(3) : nil, subject: isHex ? try subject(of: id) : row.text(4),
                url: isHex ? nil : row.text(5), container: row.optionalInt64(7), containerSubject: try row.nodeID(8).map(subject),
                hexesInside: inside.hexes, links: inside.links, deletedAt: row.int64(6))
        }
        return Page(items: found.rows, next: found.hasMore ? found.rows.last?.number : nil)
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

    /// Returns the numbers of hexes and links that were deleted together with a hex and are restored with it.
    func deletedTogether(with hex: ListNode.ID) throws -> (hexes: Int, links: Int) {
        try first(
            """
            WITH RECURSIVE inside (uuid, kind) AS (
                SELECT uuid, kind FROM node WHERE goneWith = ? AND trashNumber IS NOT NULL
                UNION
                SELECT node.uuid, node.kind FROM inside CROSS JOIN node ON node.goneWith = inside.uuid WHERE node.trashNumber IS NOT NULL
            )
            SELECT coalesce(sum(kind = 1), 0), coalesce(sum(kind = 2), 0) FROM inside
            """, hex.uuid
        ) { ($0.int(0), $0.int(1)) } ?? (0, 0)
    }
}

extension HexStore {
    /// Restores items from the trash, each at its place. A hex whose container was deleted is at the top level afterwards; if the hex of a
    /// link was deleted, it is shown again with this link only.
    /// - Parameter numbers: numbers of `TrashedItem`.
    /// - Returns: one item for each different number, in this order.
    /// - Throws: `.notFound` if one is not in the trash; `.badRequest` if a hex would exceed its bounds. Then nothing is restored.
    public func restoreMine(numbers: [Int64], at now: Int64) async throws -> [RestoredItem] {
        try await write(rows: numbers.count) { try $0.restoreMine(numbers: numbers, at: now) }
    }

    /// Restores a deleted hex with its inner hexes, as `restoreMine(numbers:at:)`.
    /// - Returns: its id, which it had before.
    /// - Throws: `.notFound` if it is not in the trash; `.badRequest` if a hex would exceed its bounds.
    public func restoreMine(_ hex: Int64, at now: Int64) async throws -> Int64 {
        try await write { writer in
            guard let number = try writer.trashNumber(ofHex: hex) else {
                guard let outer = try writer.hexDeletedWith(hex) else {
                    throw HexlistError(
                        .notFound, "Hex \(hex) is not in the trash.", hint: "`hexlist mine trash` lists deleted hexes and links.")
                }
                throw HexlistError(
                    .notFound, "Hex \(hex) was deleted together with hex \(outer), in which it was.",
                    hint: "To restore both: `hexlist mine restore \(outer)`.")
            }
            return try writer.restoreMine(numbers: [number], at: now)[0].hex
        }
    }

    /// Removes everything from the trash for good, and all changes from the change log, which has values of deleted hexes and links too.
    /// What is deleted meanwhile stays.
    /// - Returns: the numbers of hexes and links, as `trashPage` lists them.
    public func emptyTrash() async throws -> (hexes: Int, links: Int) {
        let (count, last) = try await write { writer in
            try writer.change {
                try writer.forgetChanges(upTo: .max)
                let count = try writer.first(
                    "SELECT coalesce(sum(kind = 1), 0), coalesce(sum(kind = 2), 0) FROM node WHERE trashNumber IS NOT NULL AND goneWith IS NULL"
                ) { (hexes: $0.int(0), links: $0.int(1)) }
                return (count ?? (0, 0), try ListRecord(on: writer).deletions)
            }
        }
        while try await write({ try $0.removeFromTrash(limit: Self.nodesPerPurge) { $0.number <= last } }).nodes > 0 {}
        return count
    }

    /// The number of nodes after which a transaction that empties the trash ends.
    private static let nodesPerPurge = 2_000

    /// Reverts changes of My Hexlist. Values that were changed again later stay.
    /// - Parameter numbers: numbers of `MyHexlistChange`.
    /// - Throws: `.notFound` if a change is not in the log; `.badRequest` if one was undone before, nothing can be reverted, or a hex would
    ///   exceed its bounds. Then nothing is reverted.
    public func undoMine(_ numbers: [Int64], at now: Int64) async throws -> MyHexlistUndo {
        try await write { try $0.undoMine(numbers, at: now) }
    }
}

extension StoreWriter {
    func restoreMine(numbers: [Int64], at now: Int64) throws -> [RestoredItem] {
        try change {
            var items: [(number: Int64, node: ListNode.ID)] = []
            for number in numbers where !items.contains(where: { $0.number == number }) {
                let found = try first("SELECT uuid FROM node WHERE trashNumber = ? AND goneWith IS NULL", number) { $0.nodeID(0) }
                guard let id = found ?? nil else {
                    throw HexlistError(
                        .notFound, "Number \(number) is not in the trash.", hint: "`hexlist mine trash` lists deleted hexes and links.")
                }
                items.append((number, id))
            }
            let ids = items.map(\.node)
            let inDeletedHex = try ids.filter(isInDeletedHex)
            let changed = try changeMine(at: now) { mine in
                try mine.restore(ids)
                return mine.changedHexes
            }
            try checkBounds(of: changed)
            return try items.map { number, id in
                var item = try restored(number, id)
                item.isHexRestored = id.kind == .link && inDeletedHex.contains(id)
                return item
            }
        }
    }

    private func isInDeletedHex(_ id: ListNode.ID) throws -> Bool {
        try first("SELECT 1 FROM node JOIN node AS hex ON hex.uuid = node.parent WHERE node.uuid = ? AND hex.state <> 0", id.uuid) { _ in
            true
        } ?? false
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
    private func checkBounds(of changed: Set<ListNode.ID>) throws {
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

    func undoMine(_ numbers: [Int64], at now: Int64) throws -> MyHexlistUndo {
        try change {
            let numbers = Set(numbers).sorted()
            for number in numbers { try checkIsUndoable(number) }
            let listed = "number IN (SELECT value FROM json_each(?))"
            let bytes = try first("SELECT sum(bytes) FROM mineChange WHERE \(listed)", jsonArray(Set(numbers))) { $0.int(0) } ?? 0
            guard bytes <= MyHexlistChange.maximumNodeBytes + 1 << 20 else {
                throw HexlistError(
                    .badRequest, "These \(numbers.count) changes are too large to be undone together.",
                    hint: "Undo some of them first, the newest ones.")
            }
            let (result, changed) = try changeMine(at: now, as: .undo) { mine in
                let result = try mine.undo(numbers)
                return (result, mine.changedHexes)
            }
            try checkBounds(of: changed)
            try run("UPDATE mineChange SET undoneBy = ? WHERE \(listed)", result.number, jsonArray(result.undone))
            return result
        }
    }

    private func checkIsUndoable(_ number: Int64) throws {
        let row = try first(
            "SELECT undoneBy, nodes IS NOT NULL FROM mineChange WHERE number = ?", number
        ) { (undoneBy: $0.optionalInt64(0), hasNodes: $0.bool(1)) }
        guard let row else {
            throw HexlistError(
                .notFound, "There is no change \(number) in the log.",
                hint: "`hexlist mine log` lists the changes of the last \(MyHexlistChange.days) days.")
        }
        if let other = row.undoneBy {
            throw HexlistError(
                .badRequest, "Change \(number) was already undone, by change \(other).", hint: "To redo it: `hexlist mine undo \(other)`.")
        }
        guard row.hasNodes else {
            throw HexlistError(
                .badRequest, "Change \(number) is too large to be undone.",
                hint: "`hexlist mine trash` lists deleted hexes and links, and can restore them.")
        }
    }

    /// Removes old items from the trash for good, and the oldest ones above the bound of its size.
    /// - Parameter limit: the number of nodes after which no further item is removed.
    func purgeTrash(limit: Int) throws -> (hexes: Int, links: Int) {
        let old = lived &- Self.days(TrashedItem.days)
        let newest = try first("SELECT max(trashNumber) FROM node WHERE trashNumber IS NOT NULL AND goneWith IS NULL") { $0.int64(0) } ?? 0
        var bytes = try first("SELECT coalesce(sum(trashBytes), 0) FROM node WHERE trashNumber IS NOT NULL") { $0.int(0) } ?? 0
        let removed = try removeFromTrash(limit: limit) { item in
            defer { bytes -= item.bytes }
            return item.lived <= old || bytes > trashBytes && item.number < newest
        }
        return (removed.hexes, removed.links)
    }

    /// An item of the trash with everything that was deleted together with it.
    fileprivate struct WholeItem {
        var number: Int64
        var lived: Int64
        /// The nodes of the item, and the bytes of their texts.
        var nodes: [ListNode.ID]
        var bytes: Int
    }

    /// Removes the nodes of the oldest items, as long as `isDue`. A change log that names them cannot restore them any more.
    /// - Parameter limit: the number of nodes after which no further item is removed.
    /// - Returns: the numbers of removed nodes.
    fileprivate func removeFromTrash(
        limit: Int, while isDue: (WholeItem) -> Bool
    ) throws -> (hexes: Int, links: Int, nodes: Int) {
        try change {
            var removed = (hexes: 0, links: 0, nodes: 0)
            while removed.nodes < limit, let item = try oldestItem(), isDue(item) {
                for node in item.nodes { try run("DELETE FROM node WHERE uuid = ?", node.uuid) }
                removed.hexes += item.nodes.count { $0.kind == .hex }
                removed.links += item.nodes.count { $0.kind == .link }
                removed.nodes += item.nodes.count
            }
            return removed
        }
    }

    private func oldestItem() throws -> WholeItem? {
        let top = try first(
            "SELECT trashNumber, lived, uuid FROM node WHERE trashNumber IS NOT NULL AND goneWith IS NULL AND state = 1 ORDER BY trashNumber LIMIT 1"
        ) { (number: $0.int64(0), lived: $0.int64(1), node: $0.bytes(2)) }
        guard let top else { return nil }
        let nodes = try all(
            """
            WITH RECURSIVE inside (uuid) AS (
                SELECT ?
                UNION
                SELECT node.uuid FROM inside CROSS JOIN node ON node.goneWith = inside.uuid WHERE node.trashNumber IS NOT NULL
            )
            SELECT node.uuid, node.trashBytes FROM inside CROSS JOIN node ON node.uuid = inside.uuid
            """, top.node
        ) { (id: $0.nodeID(0), bytes: $0.int(1)) }
        return WholeItem(
            number: top.number, lived: top.lived, nodes: nodes.compactMap(\.id), bytes: nodes.reduce(0) { $0 + $1.bytes })
    }
}

extension MyHexlistTransaction {
    /// Restores deleted nodes.
    fileprivate mutating func restore(_ ids: [ListNode.ID]) throws {
        for id in ids {
            try countTogether(with: id)
            try nodes.restore(id)
        }
        try placeRestored(ids)
    }

    /// Adds the nodes that are restored together with a hex to the counts of the log.
    private mutating func countTogether(with id: ListNode.ID) throws {
        guard id.kind == .hex else { return }
        let inside = try writer.deletedTogether(with: id)
        draft.hexes.restored += inside.hexes
        draft.links.restored += inside.links
    }

    /// Moves restored hexes to the top level if their container is deleted. At the top level, gives them a key that is in the order of ids.
    private mutating func placeRestored(_ ids: [ListNode.ID]) throws {
        try deriveTree()
        // `moveToTop` reads the rows of hexes, which do not include those of hexes restored here.
        let rows = try ids.filter { $0.kind == .hex }.map { id in
            (id: id, hex: try writer.hex(ofNode: id) ?? 0)
        }
        for (id, _) in rows.sorted(by: { $0.hex > $1.hex }) {
            guard let row = try nodes.storage.row(id), row.state == .present else { continue }
            if let container = row.container, container != list.id, try nodes.storage.row(container)?.state == .present { continue }
            try moveToTop(id)
        }
        try deriveTree()
    }

    /// Reverts changes of the log, newest first.
    /// - Parameter numbers: ascending.
    fileprivate mutating func undo(_ numbers: [Int64]) throws -> MyHexlistUndo {
        var undone = nodes.undoneVersions(of: [])
        var records: [(number: Int64, records: [ChangeRecord])] = []
        for number in numbers { records.append((number, Array(try self.records(of: number)))) }
        for record in records.lazy.flatMap(\.records) {
            if case .node(let change, _) = record { undone.insert(change) }
        }
        for number in try writer.changesWithoutEffect(after: numbers.first ?? .max) {
            for case .node(let change, _) in try self.records(of: number) { undone.insert(change) }
        }

        var result = MyHexlistUndo(
            number: list.changes + 1, undone: [], hexes: MyHexlistChange.Counts(), links: MyHexlistChange.Counts(), kept: [], keptCount: 0)
        var restored: [ListNode.ID] = []
        for (number, records) in records.reversed() {
            let (isReverted, kept) = try revert(records, undone, &restored)
            if isReverted { result.undone.insert(number, at: 0) }
            for (id, part) in kept {
                result.keptCount += 1
                if result.kept.count < MyHexlistUndo.listedValues { result.kept.append(try self.kept(part, of: id, by: number)) }
            }
            draft.add(nodes.takeChanges())
        }
        try placeRestored(restored)
        guard !draft.isEmpty else {
            let what = numbers.count == 1 ? "change \(numbers[0]) wrote" : "these changes wrote"
            throw HexlistError(.badRequest, "Nothing was undone: everything that \(what) was changed again or is no longer in the trash.")
        }
        (result.hexes, result.links) = (draft.hexes, draft.links)
        return result
    }

    private func records(of change: Int64) throws -> ChangeRecordDecoder {
        let bytes = try writer.first("SELECT nodes FROM mineChange WHERE number = ?", change) { $0.bytes(0) } ?? []
        return ChangeRecordDecoder(bytes, numbers: nodes.storage.numbers)
    }

    /// Reverts one change of the log.
    /// - Parameters:
    ///   - undone: the versions of all changes that are undone together, and of those that were undone before.
    ///   - restored: gets the restored nodes.
    /// - Returns: whether a part was reverted, and the parts that were not.
    private mutating func revert(
        _ records: [ChangeRecord], _ undone: ListTransaction<SQLListStorage>.UndoneVersions, _ restored: inout [ListNode.ID]
    ) throws -> (isReverted: Bool, kept: [(ListNode.ID, ListChange.Part)]) {
        var kept: [(ListNode.ID, ListChange.Part)] = []
        var changes: [ListChange] = []
        var (deletions, deleted): ([ListNode.ID], Set<ListNode.ID>) = ([], [])
        for record in records {
            guard case .node(let change, _) = record else { continue }
            if change.parts.contains(.deletion) {
                guard try isInTrash(change.after.id) else {
                    kept.append((change.after.id, .deletion))
                    continue
                }
                deleted.insert(change.after.id)
                // What was deleted together with a hex is restored with it.
                if let hex = change.after.deletion?.with, deleted.contains(hex) { continue }
                deletions.append(change.after.id)
            } else if change.parts.contains(.restoring), change.after.id.kind == .hex {
                // The hex is deleted again, with what was restored with it.
                if let hex = try writer.hex(ofNode: change.after.id) { try countDeletedInside(hex) }
            }
            changes.append(change)
        }
        let renumbered = Self.renumberedTags(of: changes)
        let unreverted = try nodes.undo(changes, undone)
        for (id, parts) in unreverted { kept += parts.subtracting(renumbered[id] ?? []).map { (id, $0) } }
        for id in deletions where unreverted[id]?.contains(.deletion) != true {
            try countTogether(with: id)
            restored.append(id)
        }
        var isReverted = !nodes.changes.isEmpty
        let hasAdditions = records.contains { if case .node = $0 { false } else { true } }
        if hasAdditions || !restored.isEmpty { try deriveTree() }
        for record in records.reversed() {
            switch record {
            case .node: break
            case .tree(let id, _, let version):
                kept += try undoAddition(of: id, version, undone)
            case .links(let hex, let version):
                for link in try nodes.storage.links(in: hex, at: version) { kept += try undoAddition(of: link, version, undone) }
            }
        }
        isReverted = isReverted || !nodes.changes.isEmpty
        return (isReverted, kept)
    }

    /// Returns the tags that only got another number, because another tag was added or removed.
    private static func renumberedTags(of changes: [ListChange]) -> [ListNode.ID: Set<ListChange.Part>] {
        Dictionary(changes.map { ($0.after.id, $0.parts.filter($0.isRenumberedTag)) }) { $0.union($1) }
    }

    private mutating func undoAddition(
        of id: ListNode.ID, _ version: ListVersion, _ undone: ListTransaction<SQLListStorage>.UndoneVersions
    ) throws -> [(ListNode.ID, ListChange.Part)] {
        let (inside, kept) = try nodes.undoAddition(of: id, version: version, undone)
        draft.countDeleted(
            hexes: inside.count { $0.kind == .hex }, links: inside.count { $0.kind == .link })
        return kept.map { ($0, .addition) }
    }

    private func isInTrash(_ id: ListNode.ID) throws -> Bool {
        try writer.first("SELECT 1 FROM node WHERE uuid = ? AND trashNumber IS NOT NULL", id.uuid) { _ in true } ?? false
    }

    private func kept(_ part: ListChange.Part, of id: ListNode.ID, by number: Int64) throws -> KeptValue {
        let found = try writer.first(
            "SELECT CASE kind WHEN 1 THEN hex ELSE (SELECT hex FROM node AS parent WHERE uuid = node.parent) END, url FROM node WHERE uuid = ?",
            id.uuid
        ) { (hex: $0.optionalInt64(0), url: $0.text(1)) }
        return KeptValue(change: number, hex: found?.hex, link: id.kind == .hex ? nil : found?.url ?? "", name: part.valueName)
    }
}

extension HexlistError {
    static func noMine(_ id: Int64) -> HexlistError {
        HexlistError(.notFound, "There is no hex \(id) in My Hexlist.", hint: "`hexlist mine --tree` lists your hexes.")
    }
}
