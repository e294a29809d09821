/// Changes of one list that are stored together: nodes of another replica (`merge`), or local changes (`add`, `move`, `delete`, …).
/// Afterwards `deriveTree` brings the derived values of the rows up to date.
///
/// Local changes read the tree as the last `deriveTree` stored it.
public struct ListTransaction<Storage: ListStorage> {
    public var storage: Storage
    /// The digest of all rows; `nil` if it is not maintained.
    public internal(set) var digest: ListDigest?
    public internal(set) var clock: HybridClock
    /// The changed nodes, in order.
    public private(set) var changes: [ListChange] = []
    /// The replica that writes local changes.
    let replica: ReplicaNumber
    /// Milliseconds since 1970.
    let now: Int64

    /// Whether the hexes have to be read to derive the tree, because one was added, moved, deleted or revived.
    private var isStructureChanged = false
    private var addedHexes: Set<ListNode.ID> = []
    private var changedHexes: Set<ListNode.ID> = []
    private var changedLeaves: Set<ListNode.ID> = []
    /// The positions, as of the last `deriveTree`, of leaves that got another order key.
    private var formerPositions: [ListNode.ID: LeafPosition] = [:]
    /// Whether `writeIgnoredMoves` has run since the last received hex. It reads all hexes, so a request that moves many runs it once.
    var hasWrittenIgnoredMoves = false

    /// - Parameter digest: the digest of all rows; `nil` for a list that is not exchanged with other replicas. It takes a hash of each row
    ///   that changes.
    public init(storage: Storage, replica: ReplicaNumber, clock: HybridClock, digest: ListDigest?, now: Int64) {
        self.storage = storage
        self.replica = replica
        self.clock = clock
        self.digest = digest
        self.now = now
    }

    var list: ListNode.ID { storage.list }

    /// Merges a node into the list.
    /// - Parameters:
    ///   - isReceived: whether the node came from another replica.
    ///   - sent: the node as the other replica sent it, if the caller altered it; the result is sent back then.
    ///   - takesContent: whether a link gets the URL and service of the node, not the greater ones.
    /// - Returns: whether the list changed.
    @discardableResult
    public mutating func merge(
        _ node: ListNode, isReceived: Bool = false, sentAs sent: ListNode? = nil, takesContent: Bool = false
    ) throws -> Bool {
        let stored = try storage.row(node.id)
        var row = stored ?? ListRow(node: ListNode(id: node.id))
        let isContentTaken = takesContent && row.node.takeContent(of: node)
        var changed = row.node.merge(node, isBounded: isReceived)
        if isContentTaken { changed.insert(.content) }
        guard stored == nil || !changed.isEmpty else { return false }
        let list = list
        if let stored { digest?.toggle(stored.node, in: list) }
        digest?.toggle(row.node, in: list)
        // A node with a deletion mark is deleted or revived by any change.
        let movesHexes = stored == nil || !changed.isDisjoint(with: [.place, .deletion]) || row.node.deletion != nil
        try write(
            row, insteadOf: stored, isReceived && row.node == (sent ?? node) ? .received : .changed, isReceived: isReceived, movesHexes)
        return true
    }

    /// Replaces all values of a stored node by those that another replica sent, also newer ones. Private registers stay.
    public mutating func replace(_ received: ListNode) throws {
        guard let stored = try storage.row(received.id) else {
            try merge(received, isReceived: true)
            return
        }
        var row = stored
        row.node = received
        row.node.addPrivateRegisters(of: stored.node)
        guard row.node != stored.node else { return }
        let list = list
        digest?.toggle(stored.node, in: list)
        digest?.toggle(row.node, in: list)
        try write(row, insteadOf: stored, .received, isReceived: true, true)
    }

    /// - Parameter movesHexes: whether the tree of hexes may change if the node is a hex.
    private mutating func write(
        _ row: ListRow, insteadOf stored: ListRow?, _ kind: ListWrite, isReceived: Bool, _ movesHexes: Bool
    ) throws {
        clock.observe(row.node.latestTime)
        changes.append(ListChange(before: stored?.node, after: row.node, wasShown: stored?.state == .present))
        try storage.write(row, kind)
        let id = row.node.id
        if id.kind.isLeaf {
            changedLeaves.insert(id)
            if let stored, stored.node.place?.key != row.node.place?.key, formerPositions[id] == nil {
                formerPositions[id] = LeafPosition(stored.node)
            }
        } else if id == list {
            // The root has no place and is never deleted, so the structure does not depend on it.
            changedHexes.insert(list)
        } else if id.kind == .hex {
            if isReceived { hasWrittenIgnoredMoves = false }
            changedHexes.insert(id)
            if stored == nil { addedHexes.insert(id) }
            if movesHexes { isStructureChanged = true }
        }
    }

    /// Removes the changes made so far from `changes`, and returns them.
    public mutating func takeChanges() -> [ListChange] {
        defer { changes = [] }
        return changes
    }

    /// Adds nodes to the digest that were stored without `merge`.
    /// - Parameter nodes: the digest of these nodes alone.
    public mutating func toggleDigest(_ nodes: ListDigest) { digest = digest.map { ListDigest($0.value ^ nodes.value) } }

    /// Derives some links, and the tree of hexes, again with the next `deriveTree`, because hexes were removed from the storage.
    public mutating func deriveAgain(_ links: [ListNode.ID]) {
        changedLeaves.formUnion(links)
        isStructureChanged = true
    }

    /// Derives the tree again, as far as the changes affect it. The result is the same as after deriving it from all rows.
    public mutating func deriveTree() throws -> ListTreeChanges {
        var tree = ListTreeChanges(hexes: changedHexes)
        var structure = isStructureChanged ? try Structure(storage) : nil
        if let structure { try addDependentLeaves(structure) }
        var leaves: [ListNode.ID: Int] = [:]
        for leaf in changedLeaves {
            try derive(leaf, structure, &leaves, &tree)
            if leaf.kind == .sharedList { tree.entries.insert(leaf) }
        }
        if structure == nil, try isVisibilityChanged(leaves) { structure = try Structure(storage) }
        if var structure {
            structure.addLeaves(leaves)
            try store(structure, &tree)
        } else {
            for (hex, change) in leaves where change != 0 {
                guard let row = try storage.row(hex) else { continue }
                try storage.update(hex, container: row.container, state: row.state, leaves: row.leaves + change)
            }
        }
        isStructureChanged = false
        (addedHexes, changedHexes, changedLeaves, formerPositions) = ([], [], [], [:])
        return tree
    }

    /// Removes the values of a link that was deleted on its own or with a hex. Other replicas are not affected.
    /// - Returns: whether there were values to remove.
    @discardableResult
    public mutating func purge(_ id: ListNode.ID) throws -> Bool {
        guard let row = try storage.row(id), id.kind == .link, row.state == .deleted, !row.node.isPurged,
            let deletion = row.node.deletion
        else { return false }
        if deletion.with != nil {  // otherwise a change of that hex would revive a link without values
            var mark = ListNode(id: id)
            mark.deletion = DeletionMark(version: deletion.version)
            try merge(mark)
        }
        guard var purged = try storage.row(id) else { return false }
        purged.node.purge()
        try storage.write(purged, .purged)
        changedLeaves.insert(id)
        return true
    }

    // MARK: - Deriving the tree

    /// The tree of the hexes, and their rows at the same indices.
    private struct Structure {
        var tree: ListStructure
        var rows: [ListRow]

        init(_ storage: Storage) throws {
            rows = try storage.hexes().filter { $0.node.id != storage.list }
            tree = ListStructure(
                root: storage.list, hexes: rows.map { ListStructure.Hex($0.node, leaves: $0.leaves) }, levels: storage.levels)
        }

        mutating func addLeaves(_ changes: [ListNode.ID: Int]) {
            if !changes.isEmpty { tree.addLeaves(changes) }
        }
    }

    /// Adds the leaves that depend on hexes that were added, deleted or revived.
    private mutating func addDependentLeaves(_ structure: Structure) throws {
        for row in structure.rows {
            let id = row.node.id
            let isAdded = addedHexes.contains(id)
            guard isAdded || (row.state == .present) != structure.tree.isAlive(id) else { continue }
            for node in try storage.nodes(deletedWith: id) where node.kind.isLeaf { changedLeaves.insert(node) }
            if isAdded { changedLeaves.formUnion(try storage.leaves(waitingFor: id)) }
        }
    }

    /// Derives the values of a leaf.
    /// - Parameter leaves: changes of the number of shown leaves by hex.
    private mutating func derive(
        _ id: ListNode.ID, _ structure: Structure?, _ leaves: inout [ListNode.ID: Int], _ tree: inout ListTreeChanges
    ) throws {
        guard let row = try storage.row(id) else { return }
        let state: ListRow.State = try isDeleted(row.node, structure) ? .deleted : .present
        var container: ListNode.ID?
        if let parent = row.node.place?.parent, try isKnown(parent, structure) { container = parent }
        let position = LeafPosition(row.node)
        let before = formerPositions[id] ?? position
        if row.state == state, row.container == container, position == before {
            if state == .present { tree.contents[container ?? list, default: LeafChanges()].addValues(at: position) }
        } else {
            if row.state == .present { tree.addLeaves(of: row.container ?? list, from: before) }
            if state == .present { tree.addLeaves(of: container ?? list, from: position) }
        }
        guard row.container != container || row.state != state else { return }
        try storage.update(id, container: container, state: state, leaves: 0)
        if row.state == .present, let hex = row.container, hex != list { leaves[hex, default: 0] -= 1 }
        if state == .present, let hex = container, hex != list { leaves[hex, default: 0] += 1 }
    }

    private func isDeleted(_ node: ListNode, _ structure: Structure?) throws -> Bool {
        guard node.isMarkedDeleted, let hex = node.deletion?.with else { return node.isMarkedDeleted }
        if let structure { return !structure.tree.isAlive(hex) }
        guard hex.kind == .hex, hex != list else { return true }
        return try storage.row(hex)?.state != .present
    }

    private func isKnown(_ hex: ListNode.ID, _ structure: Structure?) throws -> Bool {
        if hex == list { return true }
        guard hex.kind == .hex else { return false }
        return try structure?.tree.contains(hex) ?? (storage.row(hex) != nil)
    }

    /// Whether a deleted hex appears or disappears because its number of leaves changed.
    private func isVisibilityChanged(_ leaves: [ListNode.ID: Int]) throws -> Bool {
        for (hex, change) in leaves {
            guard let row = try storage.row(hex), row.state != .present else { continue }
            if (row.leaves > 0) != (row.leaves + change > 0) { return true }
        }
        return false
    }

    private mutating func store(_ structure: Structure, _ tree: inout ListTreeChanges) throws {
        for (index, row) in structure.rows.enumerated() {
            let (state, container) = (structure.tree.state(at: index), structure.tree.container(at: index))
            let leaves = structure.tree.hexes[index].leaves
            guard row.state != state || row.container != container || row.leaves != leaves else { continue }
            try storage.update(row.node.id, container: container, state: state, leaves: leaves)
            guard row.state != state || row.container != container else { continue }
            tree.hexes.insert(row.node.id)
            if (row.state == .deleted) != (state == .deleted) { tree.contents[row.node.id] = .all }
        }
    }
}
