extension ListTransaction {
    /// Replaces all versions after a time, which a machine wrote while its clock was ahead, by new ones of this replica in the same order, and
    /// sets the clock back. The tree stays the same, because it depends on the order of versions only.
    ///
    /// The replica must not have written versions before: others could have different values with one version otherwise.
    /// - Parameter time: a time of the hybrid clock, not before the time of this transaction.
    /// - Returns: the number of changed nodes.
    public mutating func renewVersions(after time: Int64) throws -> Int {
        var ids: [ListNode.ID] = []
        var versions: Set<ListVersion> = []
        var last: Int64 = 0
        try storage.forEachNode { node in
            let late = node.versions.filter { $0.clock > time }
            last = node.versions.reduce(last) { $1.clock > time ? $0 : max($0, $1.clock) }
            guard !late.isEmpty else { return }
            ids.append(node.id)
            versions.formUnion(late)
        }
        clock = HybridClock(last: last)
        var renewed: [ListVersion: ListVersion] = [:]
        for version in versions.sorted() { renewed[version] = nextVersion() }
        let list = list
        for id in ids {
            guard var row = try storage.row(id) else { continue }
            digest?.toggle(row.node, in: list)
            row.node.mapVersions { renewed[$0] ?? $0 }
            digest?.toggle(row.node, in: list)
            try storage.write(row, .changed)
        }
        return ids.count
    }
}

extension ListNode {
    fileprivate mutating func mapVersions(_ transform: (ListVersion) -> ListVersion) {
        if let version = place?.version { place?.version = transform(version) }
        if let version = title?.version { title?.version = transform(version) }
        registers = registers.mapValues { Register(version: transform($0.version), value: $0.value) }
        deletion = deletion.map { DeletionMark(version: transform($0.version), with: $0.with) }
    }
}
