extension ListTransaction {
    /// Reverts changes, newest first. A value that was changed again later is not reverted.
    /// - Parameter changes: changes of this list, oldest first.
    /// - Returns: for each node, the parts that were not reverted.
    public mutating func undo(_ changes: [ListChange]) throws -> [ListNode.ID: Set<ListChange.Part>] {
        var kept: [ListNode.ID: Set<ListChange.Part>] = [:]
        // Restoring a hex also revives the nodes that were deleted together with it.
        let restored = Set(changes.filter { $0.parts.contains(.deletion) }.map(\.after.id))
        for change in changes.reversed() {
            for part in change.parts where try !revert(part, of: change, restored) { kept[change.after.id, default: []].insert(part) }
        }
        return kept
    }

    /// Reverts one part of a change.
    /// - Returns: `false` if the part was changed again later, and is therefore not reverted.
    private mutating func revert(_ part: ListChange.Part, of change: ListChange, _ restored: Set<ListNode.ID>) throws -> Bool {
        let (before, after) = (change.before, change.after)
        guard let node = try storage.row(after.id)?.node else { return false }
        switch part {
        case .place, .title, .register: if node.isMarkedDeleted { return false }  // a write would revive it
        case .addition, .deletion, .restoring: break
        }
        switch part {
        case .addition:
            if node.isMarkedDeleted { return true }
            return node.version == after.version ? try mark(node, with: nil) : false
        case .restoring:
            return node.version == after.version ? try mark(node, with: before?.deletion?.with) : false
        case .deletion:
            guard node.isMarkedDeleted, node.deletion == after.deletion else { return false }
            if let hex = node.deletion?.with, restored.contains(hex) { return true }
            return try restore(node.id)
        case .place:
            guard node.place == after.place, let place = before?.place else { return false }
            return try move(node.id, to: place.parent, key: place.key)
        case .title:
            guard node.title == after.title else { return false }
            try setTitle(of: node.id, to: before?.title?.value ?? .empty)
        case .register(let name):
            guard node.registers[name] == after.registers[name] else { return false }
            try setRegister(name, of: node.id, to: before?.registers[name]?.value ?? .empty)
        }
        return true
    }
}
