extension ListTransaction {
    /// Reverts changes, newest first. A value is reverted if it is the one that the change wrote, and stays otherwise.
    /// - Parameter changes: changes of this list, oldest first.
    /// - Returns: for each node, the parts that were not reverted.
    public mutating func undo(_ changes: [ListChange]) throws -> [ListNode.ID: Set<ListChange.Part>] {
        try undo(changes, ignoredVersions(of: changes)).kept
    }

    /// Reverts changes, newest first.
    /// - Parameter undone: the versions of all changes that are undone together, of which these are a part.
    /// - Returns: the nodes that were deleted together with a hex whose restoring was reverted; for each node, the parts that were not
    ///   reverted.
    public mutating func undo(
        _ changes: [ListChange], _ undone: IgnoredVersions
    ) throws -> (inside: [ListNode.ID], kept: [ListNode.ID: Set<ListChange.Part>]) {
        var (inside, kept): ([ListNode.ID], [ListNode.ID: Set<ListChange.Part>]) = ([], [:])
        // Restoring a hex also revives the nodes that were deleted together with it.
        let restored = Set(changes.filter { $0.parts.contains(.deletion) }.map(\.after.id))
        for change in changes.reversed() {
            for part in change.partsToRevert where try !revert(part, of: change, restored, undone, &inside) {
                kept[change.after.id, default: []].insert(part)
            }
        }
        return (inside, kept)
    }

    /// Deletes a node that was added or restored together with the nodes in it, and those of these nodes that were not changed since.
    /// - Parameters:
    ///   - version: the version with which all of them were added, or the greatest one after the restoring; `nil` if `undone` has the versions.
    ///   - undone: further versions that do not count as changes.
    /// - Returns: the nodes that were deleted together with the hex that contains them, and the nodes that stay: changed ones, and the hexes
    ///   that contain them. If the node itself was changed since, it stays with everything in it.
    public mutating func undoAddition(
        of id: ListNode.ID, version: ListVersion?, _ undone: IgnoredVersions
    ) throws -> (inside: [ListNode.ID], kept: [ListNode.ID]) {
        guard id != list else { return ([], [id]) }
        guard let row = try storage.row(id) else { return ([], []) }
        guard undone.isUnchanged(row.node, since: version) else { return ([], [id]) }
        var (unchanged, kept) = ([ListNode.ID](), [ListNode.ID]())
        var containers: [ListNode.ID: ListNode.ID] = [:]
        var open = [id]
        while let id = open.popLast() {
            unchanged.append(id)
            guard id.kind == .hex else { continue }
            for inner in try storage.contents(of: id).map(\.node) {
                containers[inner.id] = id
                if undone.isUnchanged(inner, since: version) { open.append(inner.id) } else { kept.append(inner.id) }
            }
        }
        var staying = Set(kept)
        for id in kept {
            var next = containers[id]
            while let hex = next, staying.insert(hex).inserted {
                kept.append(hex)
                next = containers[hex]
            }
        }
        var inside: [ListNode.ID] = []
        for id in unchanged where !staying.contains(id) {
            guard let node = try storage.row(id)?.node else { continue }
            let container = containers[id].flatMap { staying.contains($0) ? nil : $0 }
            try mark(node, with: container)
            if container != nil { inside.append(id) }
        }
        return (inside, kept)
    }

    /// Returns the versions of an undo that begins now.
    public func ignoredVersions(of changes: [ListChange]) -> IgnoredVersions {
        var undone = IgnoredVersions(since: clock.last, by: replica)
        for change in changes { undone.insert(change) }
        return undone
    }

    /// Versions that do not count as later changes of a node: those of the changes that are or were undone, and those that this undo writes.
    public struct IgnoredVersions {
        private var versions: [ListNode.ID: Set<ListVersion>] = [:]
        /// The last time of the list's clock before the undo, and the replica that undoes.
        private let clock: Int64
        private let replica: ReplicaNumber

        fileprivate init(since clock: Int64, by replica: ReplicaNumber) {
            self.clock = clock
            self.replica = replica
        }

        /// Adds the versions that a change wrote.
        public mutating func insert(_ change: ListChange) {
            let node = change.after
            for part in change.parts {
                let written: [ListVersion?] =
                    switch part {
                    case .addition: Self.versions(of: node)
                    case .deletion: []
                    case .restoring: [node.version]
                    case .place: [node.place?.version]
                    case .title: [node.title?.version]
                    case .register(let name): [node.registers[name]?.version]
                    }
                versions[node.id, default: []].formUnion(written.compactMap(\.self))
            }
        }

        /// Whether no value of a node was changed since a version, apart from these changes.
        public func isUnchanged(_ node: ListNode, since version: ListVersion?) -> Bool {
            let known = versions[node.id] ?? []
            return Self.versions(of: node).allSatisfy { value in
                version.map { value <= $0 } ?? false || known.contains(value) || isOwn(value)
            }
        }

        /// Whether the undo itself wrote a version.
        private func isOwn(_ version: ListVersion) -> Bool { version.replica == replica && version.clock > clock }

        private static func versions(of node: ListNode) -> [ListVersion] {
            [node.place?.version, node.title?.version].compactMap(\.self)
                + node.registers.filter { !ListNode.privateRegisters.contains($0.key) }.map(\.value.version)
        }
    }

    /// Whether a node was deleted together with one of the restored hexes, at any level inside it.
    private func isRestored(_ node: ListNode, with restored: Set<ListNode.ID>) throws -> Bool {
        var (next, seen) = (node.deletion?.with, Set<ListNode.ID>())
        while let hex = next, seen.insert(hex).inserted {
            if restored.contains(hex) { return true }
            guard let outer = try storage.row(hex)?.node, outer.isMarkedDeleted else { return false }
            next = outer.deletion?.with
        }
        return false
    }

    /// Reverts one part of a change. A part that already is as before the change counts as reverted.
    /// - Parameter inside: gets the nodes that were deleted together with a restored hex.
    /// - Returns: `false` if the part was changed again later and is therefore not reverted, or if the node was purged.
    private mutating func revert(
        _ part: ListChange.Part, of change: ListChange, _ restored: Set<ListNode.ID>, _ undone: IgnoredVersions,
        _ inside: inout [ListNode.ID]
    ) throws -> Bool {
        let (before, after) = (change.before, change.after)
        guard let row = try storage.row(after.id) else { return false }
        let node = row.node
        let isRestored = try isRestored(node, with: restored)
        if node.id == list {
            switch part {
            case .addition, .deletion, .restoring, .place: return true  // without effect on the root
            case .title, .register: break
            }
        }
        let isDeleted = node.id != list && (node.isDeletedAlone || node.isMarkedDeleted && row.state == .deleted && !isRestored)
        switch part {
        case .place, .title, .register: if isDeleted { return false }  // a write would revive it
        case .addition, .deletion, .restoring: break
        }
        switch part {
        case .addition:
            if isDeleted { return true }
            return undone.isUnchanged(node, since: nil) ? try mark(node, with: nil) : false
        case .restoring:
            if isDeleted { return true }
            let (deleted, kept) = try undoAddition(of: node.id, version: after.version, undone)
            inside += deleted
            return !kept.contains(node.id)
        case .deletion:
            guard node.isMarkedDeleted else { return true }
            if isRestored { return true }
            return try restore(node.id)
        case .place:
            if let place = before?.place, node.place?.parent == place.parent, node.place?.key == place.key { return true }
            guard node.place?.parent == after.place?.parent, node.place?.key == after.place?.key, let place = before?.place,
                try place.parent == list || storage.row(place.parent) != nil
            else { return false }
            return try move(node.id, to: place.parent, key: place.key)
        case .title:
            if node.title?.value ?? .empty == before?.title?.value ?? .empty { return true }
            guard node.title?.value == after.title?.value else { return false }
            try setTitle(of: node.id, to: before?.title?.value ?? .empty)
        case .register(let name):
            if node.registers[name]?.value ?? .empty == before?.registers[name]?.value ?? .empty { return true }
            guard node.registers[name]?.value ?? .empty == after.registers[name]?.value ?? .empty else { return false }
            try setRegister(name, of: node.id, to: before?.registers[name]?.value ?? .empty)
        }
        return true
    }
}

extension ListChange {
    /// The parts in the order in which they are reverted: first registers that had no value, so that they make room for others; last the
    /// restoring, because other values of a deleted node are not reverted, which would revive it.
    fileprivate var partsToRevert: [Part] {
        func order(_ part: Part) -> Int {
            switch part {
            case .register(let name): before?.registers[name]?.value.isEmpty ?? true ? 0 : 1
            case .restoring: 2
            default: 1
            }
        }
        return parts.sorted { order($0) < order($1) }
    }
}
