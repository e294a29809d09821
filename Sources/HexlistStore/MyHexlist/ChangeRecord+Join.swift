internal import GRDB
internal import HexlistLists

extension StoreWriter {
    /// Changes the records of the log after a join, so that they have the ids of the nodes that stand for others. Call inside `change`.
    ///
    /// An addition of a node that became one with another node is recorded as `merged`: the other machine added it too, so an undo leaves it.
    /// - Parameter counterparts: the node of the joined collection by own node, if it has another id; also the list itself.
    func renameRecords(_ counterparts: [ListNode.ID: ListNode.ID]) throws {
        let storage = try SQLListStorage(ListRecord(on: self), on: self)
        let numbers = try all("SELECT number FROM mineChange WHERE list = 1 AND nodes IS NOT NULL ORDER BY number") { $0.int64(0) }
        for number in numbers {
            guard let bytes = try first("SELECT nodes FROM mineChange WHERE number = ?", number, read: { $0.bytes(0) }) else { continue }
            var (same, renamed) = (
                ChangeRecordEncoder(replicaRows: storage.replicaRows), ChangeRecordEncoder(replicaRows: storage.replicaRows)
            )
            for record in ChangeRecordDecoder(bytes, numbers: storage.numbers) {
                same.append(record)
                renamed.append(record.renamed(counterparts))
            }
            // Otherwise a record cannot be read.
            guard same.bytes.count == bytes.count, renamed.bytes != bytes else { continue }
            let more = renamed.bytes.count - bytes.count
            try run("UPDATE mineChange SET nodes = ?, bytes = bytes + ? WHERE number = ?", renamed.bytes, more, number)
            try run("UPDATE list SET changeBytes = changeBytes + ? WHERE id = 1", more)
        }
    }
}

extension ChangeRecord {
    /// Returns the record after a join.
    /// - Parameter counterparts: the nodes that stand for others, by these.
    fileprivate func renamed(_ counterparts: [ListNode.ID: ListNode.ID]) -> ChangeRecord {
        func mapped(_ id: ListNode.ID) -> ListNode.ID { counterparts[id] ?? id }
        switch self {
        case .tree(let id, let container, let version):
            return counterparts[id].map { .merged($0, container: mapped(container)) } ?? .tree(id, container: mapped(container), version)
        case .links(let hex, let version): return .links(hex: mapped(hex), version)
        case .merged(let id, let container): return .merged(mapped(id), container: container.map(mapped))
        case .node(let change, let container):
            let id = change.after.id
            var parts = change.parts
            if counterparts[id] != nil {
                parts.subtract([.addition, .restoring, .deletion])
                if parts.isEmpty { return .merged(mapped(id), container: container.map(mapped)) }
            }
            let renamed = ListChange(before: change.before?.renamed(mapped), after: change.after.renamed(mapped), parts: parts)
            return .node(renamed, container: container.map(mapped))
        }
    }
}

extension ListNode {
    /// Returns the node with other ids.
    fileprivate func renamed(_ mapped: (ListNode.ID) -> ListNode.ID) -> ListNode {
        var node = ListNode(id: mapped(id))
        (node.title, node.registers) = (title, registers)
        node.place = place.map {
            Place(version: $0.version, parent: mapped($0.parent), key: $0.key, previousParent: mapped($0.previousParent))
        }
        node.deletion = deletion.map { DeletionMark(version: $0.version, with: $0.with.map(mapped)) }
        return node
    }
}
