internal import GRDB
internal import HexlistLists
internal import HexlistModel

/// A value that an undo did not revert: it was changed again later, or the deleted hex or link is no longer in the trash.
public struct KeptValue: Sendable, Equatable {
    /// The number of the change that was to be undone.
    public var change: Int64
    /// The hex, or the hex that contains the link; `nil` if it has no number.
    public var hex: Int64?
    /// The URL of the link; `nil` for a hex.
    public var link: String?
    /// The name of the value, such as `title`; `added`, `deleted` and `restored` for the hex or link itself.
    public var name: String
}

/// The result of an undo.
public struct MyHexlistUndo: Sendable, Equatable {
    /// The number of the undo itself in the change log.
    public var number: Int64
    /// The changes of which at least one value was reverted, ascending.
    public var undone: [Int64]
    public var hexes: MyHexlistChange.Counts
    public var links: MyHexlistChange.Counts
    /// The first values that stayed as they are, and the number of all of them.
    public var kept: [KeptValue]
    public var keptCount: Int

    static let listedValues = 100

    /// Adds the undo of changes of another list. The number stays that of the first one.
    fileprivate mutating func add(_ other: MyHexlistUndo) {
        undone = (undone + other.undone).sorted()
        hexes.add(other.hexes)
        links.add(other.links)
        kept = Array((kept + other.kept).prefix(Self.listedValues))
        keptCount += other.keptCount
    }
}

extension HexStore {
    /// Reverts changes of My Hexlist. Values that were changed again later stay.
    /// - Parameter numbers: numbers of `MyHexlistChange`.
    /// - Throws: `.notFound` if a change is not in the log; `.badRequest` if one was undone before, nothing can be reverted, or a hex would
    ///   exceed its bounds. Then nothing is reverted.
    public func undoMine(_ numbers: [Int64], at now: Int64) async throws -> MyHexlistUndo {
        try await write { try $0.undoMine(numbers, at: now) }
    }
}

extension StoreReader {
    /// Returns the numbers of changes that were undone, and of the undos that undid them. Together they changed nothing, so they do not keep
    /// an added hex or link from being deleted by an undo.
    /// - Parameters:
    ///   - number: later changes are returned.
    ///   - list: `ListRecord.row`.
    fileprivate func changesWithoutEffect(after number: Int64, in list: Int64) throws -> [Int64] {
        let rows = try all(
            """
            SELECT number, kind = \(MyHexlistChange.Kind.undo.rawValue), undoneBy FROM mineChange
            WHERE number > ? AND list = ? AND (kind = \(MyHexlistChange.Kind.undo.rawValue) OR undoneBy IS NOT NULL) ORDER BY number DESC
            """, number, list
        ) { (number: $0.int64(0), isUndo: $0.bool(1), undoneBy: $0.optionalInt64(2)) }
        var undone: Set<Int64> = []
        for row in rows { if let other = row.undoneBy, !undone.contains(other) { undone.insert(row.number) } }
        // An undo of an undo makes a change again.
        let redos = Set(rows.lazy.filter(\.isUndo).compactMap(\.undoneBy))
        return rows.filter { undone.contains($0.number) || $0.isUndo && !redos.contains($0.number) }.map(\.number)
    }
}

extension StoreWriter {
    func undoMine(_ numbers: [Int64], at now: Int64) throws -> MyHexlistUndo {
        try change {
            let numbers = Set(numbers).sorted()
            for number in numbers { try checkIsUndoable(number) }
            let listed = "number IN (SELECT value FROM json_each(?))"
            let bytes = try first("SELECT sum(bytes) FROM mineChange WHERE \(listed)", jsonArray(numbers)) { $0.int(0) } ?? 0
            guard bytes <= MyHexlistChange.maximumUndoBytes else {
                throw HexlistError(
                    .badRequest, "These \(numbers.count) changes are too large to be undone together.",
                    hint: "Undo some of them first, the newest ones.")
            }
            let lists = try all("SELECT list, number FROM mineChange WHERE \(listed)", jsonArray(numbers)) {
                (list: $0.int64(0), number: $0.int64(1))
            }
            var results: [MyHexlistUndo] = []
            for (list, changes) in Dictionary(grouping: lists, by: \.list).sorted(by: { $0.key < $1.key }) {
                let (result, complete, changed) = try changeMine(at: now, as: .undo, in: list) { mine in
                    let (result, complete) = try mine.undo(changes.map(\.number).sorted())
                    return (result, complete, mine.changedHexes)
                }
                try checkBounds(of: changed, in: list)
                try run("UPDATE mineChange SET undoneBy = ? WHERE \(listed)", result.number, jsonArray(complete))
                results.append(result)
            }
            return results.dropFirst().reduce(into: results[0]) { $0.add($1) }
        }
    }

    private func checkIsUndoable(_ number: Int64) throws {
        let row = try first(
            "SELECT undoneBy, nodes IS NOT NULL, kind, list FROM mineChange WHERE number = ?", number
        ) {
            (
                undoneBy: $0.optionalInt64(0), hasNodes: $0.bool(1), isJoining: $0.int(2) == MyHexlistChange.Kind.joined.rawValue,
                isShared: $0.int64(3) != ListRecord.mine
            )
        }
        guard let row else {
            throw HexlistError(
                .notFound, "There is no change \(number) in the log.",
                hint: "`hexlist mine log` lists the changes of the last \(MyHexlistChange.days) days.")
        }
        if let other = row.undoneBy {
            let (last, isUndone) = try lastUndo(from: other)
            throw isUndone
                ? HexlistError(
                    .badRequest, "Change \(number) was already undone, by change \(last).", hint: "To redo it: `hexlist mine undo \(last)`."
                )
                : HexlistError(
                    .badRequest, "Change \(number) was undone, and made again by change \(last).",
                    hint: "To undo it again: `hexlist mine undo \(last)`.")
        }
        guard !row.isJoining else {
            throw HexlistError(
                .badRequest,
                row.isShared
                    ? "Change \(number) added the contents of a hex of another person, which cannot be undone."
                    : "Change \(number) added the collection of another machine, which cannot be undone.",
                hint: row.isShared
                    ? "To leave a hex of another person: `hexlist mine rm HEX`."
                    : "The folder of the store has a copy of My Hexlist from before: `before-join-….ndjson`.")
        }
        guard row.hasNodes else {
            throw HexlistError(
                .badRequest, "Change \(number) is too large to be undone.",
                hint: "`hexlist mine trash` lists deleted hexes and links, and can restore them.")
        }
    }
}

extension ChangeRecord {
    /// Whether its undo deletes nodes, which depends on later changes of these nodes.
    fileprivate var undoesByDeletion: Bool {
        switch self {
        case .tree, .links: true
        case .merged: false
        case .node(let change, _): !change.parts.isDisjoint(with: [.addition, .restoring])
        }
    }
}

extension MyHexlistTransaction {
    /// Reverts changes of the log, newest first.
    /// - Parameter numbers: ascending.
    /// - Returns: the result, and the changes of which everything was reverted.
    fileprivate mutating func undo(_ numbers: [Int64]) throws -> (MyHexlistUndo, complete: [Int64]) {
        var undone = nodes.ignoredVersions(of: [])
        var records: [(number: Int64, records: [ChangeRecord])] = []
        for number in numbers { records.append((number, Array(try self.records(of: number)))) }
        for record in records.lazy.flatMap(\.records) {
            if case .node(let change, _) = record { undone.insert(change) }
        }
        if records.contains(where: { $0.records.contains(where: \.undoesByDeletion) }) {
            for number in try writer.changesWithoutEffect(after: numbers.first ?? .max, in: list.row) {
                for case .node(let change, _) in try self.records(of: number) { undone.insert(change) }
            }
        }

        var result = MyHexlistUndo(
            number: try ListRecord(on: writer).changes + 1, undone: [], hexes: MyHexlistChange.Counts(), links: MyHexlistChange.Counts(),
            kept: [], keptCount: 0)
        var (restored, complete): ([ListNode.ID], [Int64]) = ([], [])
        for (number, records) in records.reversed() {
            let (isReverted, kept) = try revert(number, records, undone, &restored)
            if isReverted { result.undone.insert(number, at: 0) }
            if isReverted, kept.isEmpty { complete.append(number) }
            for (id, part) in kept {
                result.keptCount += 1
                if result.kept.count < MyHexlistUndo.listedValues { result.kept.append(try self.kept(part, of: id, by: number)) }
            }
            try deriveTree()  // the next, earlier change is reverted in the tree and the trash as this one leaves them
        }
        try placeRestored(restored)
        try deriveTreeAndRevive()
        guard !result.undone.isEmpty, !draft.isEmpty else {
            if numbers.count == 1, records[0].records.contains(where: \.isMerged) {
                throw HexlistError(
                    .badRequest, "Change \(numbers[0]) was not undone: it was made before the merge with another machine.",
                    hint: "What it added became one with hexes and links of that machine, or was changed again later.")
            }
            throw HexlistError(
                .badRequest,
                numbers.count == 1
                    ? "Change \(numbers[0]) was not undone: everything in it was changed again later, or is no longer in the trash."
                    : "Nothing was undone: everything in these changes was changed again later, or is no longer in the trash.",
                hint: "`hexlist mine log` lists the later changes.")
        }
        (result.hexes, result.links) = (draft.hexes, draft.links)
        return (result, complete)
    }

    private func records(of change: Int64) throws -> ChangeRecordDecoder {
        let bytes = try writer.first("SELECT nodes FROM mineChange WHERE number = ?", change) { $0.bytes(0) } ?? []
        return ChangeRecordDecoder(bytes, numbers: nodes.storage.numbers)
    }

    /// Reverts one change of the log.
    /// - Parameters:
    ///   - number: the change.
    ///   - undone: the versions of all changes that are undone together, and of those that were undone before.
    ///   - restored: gets the restored nodes.
    /// - Returns: whether a part was reverted, and the parts that were not.
    private mutating func revert(
        _ number: Int64, _ records: [ChangeRecord], _ undone: ListTransaction<SQLListStorage>.IgnoredVersions,
        _ restored: inout [ListNode.ID]
    ) throws -> (isReverted: Bool, kept: [(ListNode.ID, ListChange.Part)]) {
        var kept: [(ListNode.ID, ListChange.Part)] = []
        var changes: [ListChange] = []
        var deletions: [ListNode.ID] = []
        let added = Set(records.compactMap(\.addedHex))
        let deleted = Set(records.compactMap(\.deletedNode))
        for record in records {
            guard case .node(let change, let container) = record else { continue }
            // Hexes that another machine added are deleted below, with the nodes that were added inside.
            if change.parts.contains(.addition), added.contains(change.after.id) || container.map(added.contains) ?? false { continue }
            if change.parts.contains(.deletion) {
                // Nodes that were deleted together with a hex are restored with it.
                if let hex = change.after.deletion?.with, deleted.contains(hex) { continue }
                guard try isRestorable(change.after.id) else {
                    kept.append((change.after.id, .deletion))
                    continue
                }
                deletions.append(change.after.id)
            }
            changes.append(change)
        }
        let renumbered = Self.renumberedTags(of: changes)
        let (inside, unreverted) = try nodes.undo(changes, undone)
        // The log has a record of each hex and link that was restored on its own.
        let restoredAlone = Set(changes.lazy.filter { $0.parts.contains(.restoring) }.map(\.after.id))
        draft.countDeleted(inside.filter { !restoredAlone.contains($0) })
        for (id, parts) in unreverted { kept += parts.subtracting(renumbered[id] ?? []).map { (id, $0) } }
        for id in deletions where try unreverted[id]?.contains(.deletion) != true && nodes.storage.row(id)?.state != .present {
            try countRestoredInside(id)
            restored.append(id)
        }
        var isReverted = !nodes.changes.isEmpty
        try deriveTree()
        if try restoreSeparated(deletedBy: number, except: restoredAlone, &restored) { isReverted = true }
        for record in records.reversed() {
            switch record {
            case .node(_, let container):
                guard let id = record.addedHex, !(container.map(added.contains) ?? false) else { continue }
                kept += try undoAddition(of: id, nil, undone)
            case .tree(let id, _, let version):
                kept += try undoAddition(of: id, version, undone)
            case .links(let hex, let version):
                for link in try nodes.storage.links(in: hex, at: version) { kept += try undoAddition(of: link, version, undone) }
            case .merged(let id, _):
                if try nodes.storage.row(id)?.state == .present { kept.append((id, .addition)) }
            }
        }
        isReverted = isReverted || !nodes.changes.isEmpty
        return (isReverted, kept)
    }

    /// Whether a node is shown, or is in the trash. A hex that was removed from the trash has its values still, if there are own machines.
    private func isRestorable(_ id: ListNode.ID) throws -> Bool {
        try writer.first(
            "SELECT 1 FROM node WHERE uuid = ? AND list = ? AND (state <> 1 OR trashNumber IS NOT NULL)", id.uuid, list.row
        ) { _ in true } ?? false
    }

    /// Returns the tags that only got another number, because another tag was added or removed.
    private static func renumberedTags(of changes: [ListChange]) -> [ListNode.ID: Set<ListChange.Part>] {
        Dictionary(changes.map { ($0.after.id, $0.parts.filter($0.isRenumberedTag)) }) { $0.union($1) }
    }

    private mutating func undoAddition(
        of id: ListNode.ID, _ version: ListVersion?, _ undone: ListTransaction<SQLListStorage>.IgnoredVersions
    ) throws -> [(ListNode.ID, ListChange.Part)] {
        guard try nodes.storage.row(id)?.state == .present else { return [] }
        let (inside, kept) = try nodes.undoAddition(of: id, version: version, undone)
        draft.countDeleted(inside)
        return kept.map { ($0, .addition) }
    }

    /// Restores the nodes that a change deleted together with a hex and that are deleted on their own now, because the hex was restored
    /// without them meanwhile.
    /// - Parameters:
    ///   - others: nodes that the change also restored, and that are deleted again for that reason.
    ///   - restored: gets the restored nodes.
    /// - Returns: whether there were any.
    private mutating func restoreSeparated(
        deletedBy number: Int64, except others: Set<ListNode.ID>, _ restored: inout [ListNode.ID]
    ) throws -> Bool {
        let separated = try writer.all(
            """
            SELECT node.uuid FROM mineChange CROSS JOIN node INDEXED BY nodeTrashBytes
                ON node.trashNumber BETWEEN mineChange.firstDeletion AND mineChange.lastDeletion AND node.goneWith IS NULL AND node.state = 1
                AND node.list = mineChange.list
            WHERE mineChange.number = ? ORDER BY node.trashNumber
            """, number
        ) { $0.nodeID(0) }.compactMap(\.self).filter { !others.contains($0) }
        guard !separated.isEmpty else { return false }
        for id in separated {
            try countRestoredInside(id)
            try nodes.restore(id)
        }
        restored += separated
        try deriveTree()
        return true
    }

    private func kept(_ part: ListChange.Part, of id: ListNode.ID, by number: Int64) throws -> KeptValue {
        let found = try writer.first(
            """
            SELECT CASE kind WHEN 2 THEN (SELECT hex FROM node AS parent WHERE uuid = node.parent AND list = node.list) ELSE hex END, url
            FROM node WHERE uuid = ? AND list = ?
            """, id.uuid, list.row
        ) { (hex: $0.optionalInt64(0), url: $0.text(1)) }
        return KeptValue(change: number, hex: found?.hex, link: id.kind == .link ? found?.url ?? "" : nil, name: part.valueName)
    }
}

extension ChangeRecord {
    /// The hex that another machine added; `nil` for other records.
    fileprivate var addedHex: ListNode.ID? {
        guard case .node(let change, _) = self, change.after.id.kind == .hex, change.parts.contains(.addition) else { return nil }
        return change.after.id
    }

    /// Whether it is the addition of a node that became one with a node of another machine.
    fileprivate var isMerged: Bool { if case .merged = self { true } else { false } }

    /// The node that the change deleted; `nil` for other records.
    fileprivate var deletedNode: ListNode.ID? {
        guard case .node(let change, _) = self, change.parts.contains(.deletion) else { return nil }
        return change.after.id
    }
}
