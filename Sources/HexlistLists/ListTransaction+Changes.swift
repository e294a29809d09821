/// Local changes. Each writes only the values that change, so that it merges with changes of other values.
extension ListTransaction {
    /// Adds a hex or link.
    /// - Parameters:
    ///   - parent: the hex that contains it, or the list's id.
    ///   - key: its position, from `keys(count:at:in:using:)`.
    ///   - registers: other values by name.
    /// - Returns: its id.
    public mutating func add(
        _ kind: ListNode.Kind, in parent: ListNode.ID, key: OrderKey, title: UTF8Text, url: UTF8Text = .empty,
        service: UTF8Text = .empty, registers: [UTF8Text: UTF8Text] = [:], using generator: inout some RandomNumberGenerator
    ) throws -> ListNode.ID {
        var node = ListNode(id: ListNode.ID(kind: kind, time: now, using: &generator))
        let version = nextVersion()
        (node.url, node.service) = (url, service)
        node.place = ListNode.Place(version: version, parent: parent, key: key)
        node.title = ListNode.Register(version: version, value: title)
        node.registers = registers.mapValues { ListNode.Register(version: version, value: $0) }
        try merge(node)
        return node.id
    }

    public mutating func setTitle(of id: ListNode.ID, to title: UTF8Text) throws {
        try detachDeletedContents(of: id)
        var node = ListNode(id: id)
        node.title = ListNode.Register(version: nextVersion(), value: title)
        try merge(node)
    }

    /// Sets a register. A node has a maximum of registers (`ListLimits`): registers with an empty value make room for a new one.
    public mutating func setRegister(_ name: UTF8Text, of id: ListNode.ID, to value: UTF8Text) throws {
        try setRegister(name, of: id, to: value, at: nextVersion())
    }

    /// Sets registers with one version.
    public mutating func setRegisters(_ values: [UTF8Text: UTF8Text], of id: ListNode.ID) throws {
        let version = nextVersion()
        for (name, value) in values.sorted(by: { $0.key < $1.key }) { try setRegister(name, of: id, to: value, at: version) }
    }

    private mutating func setRegister(_ name: UTF8Text, of id: ListNode.ID, to value: UTF8Text, at version: ListVersion) throws {
        try detachDeletedContents(of: id)
        var node = ListNode(id: id)
        // A merge drops the oldest registers, whether or not they have a value. Those with a value are written again, so that empty ones go.
        for (name, register) in try storage.row(id)?.node.registersToRewrite(beforeAdding: name) ?? [] {
            node.registers[name] = ListNode.Register(version: nextVersion(), value: register.value)
        }
        node.registers[name] = ListNode.Register(version: version, value: value)
        try merge(node)
    }

    /// Replaces a link by one with another URL, at the same position and with the same other values. Two replicas that do this at the same
    /// time keep both links.
    /// - Returns: the new link; `nil` if there is no such link.
    public mutating func setURL(
        of id: ListNode.ID, to url: UTF8Text, service: UTF8Text, using generator: inout some RandomNumberGenerator
    ) throws -> ListNode.ID? {
        guard let node = try storage.row(id)?.node, id.kind == .link, let place = node.place else { return nil }
        let extended = OrderKey(bytes: place.key.bytes + [1])
        let link = try add(
            .link, in: place.parent, key: extended.bytes.count <= OrderKey.maximumBytes ? extended : place.key,
            title: node.title?.value ?? .empty, url: url, service: service, registers: node.registers.mapValues(\.value),
            using: &generator)
        try delete(id)
        return link
    }

    /// Moves a node.
    /// - Returns: `false` if the node is unknown, or the destination is the moved hex or inside it.
    @discardableResult
    public mutating func move(_ id: ListNode.ID, to parent: ListNode.ID, key: OrderKey) throws -> Bool {
        guard id != list, try storage.row(id) != nil, try !isInside(parent, hex: id) else { return false }
        try detachDeletedContents(of: id)
        if id.kind == .hex { try writeIgnoredMoves() }
        try writePlace(of: id, parent: parent, key: key)
        return true
    }

    /// Deletes a node with all nodes that are shown in it. There may be 100 000, so their values are never all in memory.
    /// - Parameter record: called with the changes made so far, in order, each time that there are 1 000; `changes` has the rest.
    /// - Returns: the deleted nodes, first the node itself; none if it was deleted before.
    @discardableResult
    public mutating func delete(_ id: ListNode.ID, recording record: (([ListChange]) -> Void)? = nil) throws -> [ListNode.ID] {
        guard id != list else { return [] }
        var deleted: [ListNode.ID] = []
        var open: [(id: ListNode.ID, container: ListNode.ID?)] = [(id, nil)]
        while let (id, container) = open.popLast() {
            guard let row = try storage.row(id) else { continue }
            // The mark of a hex that is deleted but shown would not change.
            let node = try revive(id) ? storage.row(id)?.node ?? row.node : row.node
            if row.state == .deleted || node.isDeletedAlone { continue }  // the latter: by this transaction
            if id.kind == .hex { open += try storage.ids(in: id).map { ($0, id) } }
            try mark(node, with: container)
            deleted.append(id)
            if let record, changes.count >= 1_000 { record(takeChanges()) }
        }
        return deleted
    }

    /// Restores a deleted node at its place. For a hex, this also revives the nodes that were deleted together with it.
    /// - Returns: `false` if the node is unknown or its values were purged.
    @discardableResult
    public mutating func restore(_ id: ListNode.ID) throws -> Bool {
        guard let place = try storage.row(id)?.node.place else { return false }
        var node = ListNode(id: id)
        node.place = ListNode.Place(
            version: nextVersion(), parent: place.parent, key: place.key, previousParent: place.previousParent)
        return try merge(node)
    }

    /// Restores a hex that is deleted but shown. The nodes that were deleted together with it stay deleted.
    /// - Returns: `false` if the node is not such a hex.
    @discardableResult
    public mutating func revive(_ id: ListNode.ID) throws -> Bool {
        guard id.kind == .hex, let row = try storage.row(id), row.state == .retained, row.node.isMarkedDeleted else { return false }
        try detachDeletedContents(of: id)
        return try restore(id)
    }

    // MARK: - Rules for changes of hexes

    /// Prepares a change of a hex that is deleted but shown, which revives the hex. Removes the hex from the deletion marks of the nodes
    /// that were deleted together with it, so that these nodes stay deleted. No effect on other nodes.
    private mutating func detachDeletedContents(of id: ListNode.ID) throws {
        guard id.kind == .hex, try storage.row(id)?.state == .retained else { return }
        for other in try storage.nodes(deletedWith: id) {
            guard let node = try storage.row(other)?.node, node.isMarkedDeleted, let deletion = node.deletion else { continue }
            var mark = ListNode(id: other)
            mark.deletion = DeletionMark(version: deletion.version)
            try merge(mark)
        }
    }

    /// Writes the place of every hex whose move is ignored because of a cycle, as the derived tree shows it. Called before a hex is moved:
    /// otherwise an ignored move could take effect when the cycle disappears.
    mutating func writeIgnoredMoves() throws {
        guard !hasWrittenIgnoredMoves else { return }
        hasWrittenIgnoredMoves = true
        let hexes = try storage.hexes().map { ListStructure.Hex($0.node, leaves: $0.leaves) }
        for (hex, container) in ListStructure(root: list, hexes: hexes, levels: storage.levels).ignoredMoves {
            guard let key = try storage.row(hex)?.node.place?.key else { continue }
            var node = ListNode(id: hex)
            node.place = ListNode.Place(version: nextVersion(), parent: container, key: key)
            try merge(node)
        }
    }

    // MARK: - Values

    /// Returns a version that is greater than all versions in the list.
    public mutating func nextVersion() -> ListVersion { ListVersion(clock: clock.next(now: now), replica: replica) }

    mutating func writePlace(of id: ListNode.ID, parent: ListNode.ID, key: OrderKey) throws {
        let place = try storage.row(id)?.node.place
        let previous = place.map { $0.parent == parent ? $0.previousParent : $0.parent }
        var node = ListNode(id: id)
        node.place = ListNode.Place(version: nextVersion(), parent: parent, key: key, previousParent: previous)
        try merge(node)
    }

    /// Writes a deletion mark with the node's current version.
    /// - Parameter hex: the hex together with which the node is deleted; `nil` for none.
    @discardableResult
    mutating func mark(_ node: ListNode, with hex: ListNode.ID?) throws -> Bool {
        guard let version = [node.version, node.deletion?.version].compactMap(\.self).max() else { return false }
        var mark = ListNode(id: node.id)
        mark.deletion = DeletionMark(version: version, with: hex)
        return try merge(mark)
    }

    private func isInside(_ inner: ListNode.ID, hex: ListNode.ID) throws -> Bool {
        var next: ListNode.ID? = inner
        while let id = next, id != list {
            if id == hex { return true }
            next = try storage.row(id)?.container
        }
        return false
    }
}
