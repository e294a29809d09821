/// A position among the contents of a hex.
public enum ListPosition: Equatable, Sendable {
    case first
    case last
    case before(ListNode.ID)
    case after(ListNode.ID)

    /// The index at which a node is inserted into the rows. If the position names a node that is not among the rows, the index is their
    /// end.
    public func index(in rows: [ListRow]) -> Int {
        switch self {
        case .first: 0
        case .last: rows.count
        case .before(let id): rows.firstIndex { $0.node.id == id } ?? rows.count
        case .after(let id): rows.firstIndex { $0.node.id == id }.map { $0 + 1 } ?? rows.count
        }
    }
}

extension ListTransaction {
    /// Returns order keys for nodes that are inserted together at a position. If there are not enough keys between the neighbours of the
    /// position, neighbours get new keys first.
    /// - Parameters:
    ///   - count: the number of nodes.
    ///   - position: the position among the shown contents; counts as `last` if it names a node that is not among them.
    ///   - isNewestFirst: whether the hex has the newest node first, as My Hexlist has at the top level.
    public mutating func keys(
        count: Int = 1, at position: ListPosition, in hex: ListNode.ID, isNewestFirst: Bool = false,
        using generator: inout some RandomNumberGenerator
    ) throws -> [OrderKey] {
        let (before, after) = try storage.neighbors(of: position, in: hex)
        let number = isNewestFirst ? OrderKey.newestFirst(time: now) : now
        let key: OrderKey? =
            switch (before?.node.place, after?.node.place) {
            case (nil, nil): .first(number: number, using: &generator)
            case (let low?, nil): .after(low.key, number: number, using: &generator)
            case (nil, let high?): .before(high.key, number: number, using: &generator)
            case (let low?, let high?): .between(low.key, high.key, isNearHigh: low.version < high.version, using: &generator)
            }
        if let keys = key?.run(count: count) { return keys }
        return try makeRoom(count: count, at: position, in: hex, using: &generator)
    }

    /// Gives new keys to the neighbours of a position, 8 on each side and more if needed, and returns keys for the new nodes between them.
    private mutating func makeRoom(
        count: Int, at position: ListPosition, in hex: ListNode.ID, using generator: inout some RandomNumberGenerator
    ) throws -> [OrderKey] {
        let rows = try storage.contents(of: hex)
        let index = position.index(in: rows)
        var reach = 8
        while true {
            let (start, end) = (max(index - reach, 0), min(index + reach, rows.count))
            let low = start > 0 ? rows[start - 1].node.place?.key : nil
            let high = end < rows.count ? rows[end].node.place?.key : nil
            let base = OrderKey.between(low, high, isNearHigh: false, using: &generator)
            // The base has at most half of the maximum length, so that later nodes at this position get keys too.
            if let base, base.bytes.count <= OrderKey.maximumBytes / 2, let keys = base.run(count: end - start + count) {
                for (offset, row) in rows[start..<end].enumerated() {
                    try setKey(keys[offset < index - start ? offset : offset + count], of: row)
                }
                return Array(keys[index - start..<index - start + count])
            }
            // The hex has more nodes than a run has keys. The new nodes get keys by time instead, so their position may differ.
            if start == 0, end == rows.count { return (0..<count).map { _ in .first(number: now, using: &generator) } }
            reach *= 2
        }
    }

    /// Deleted nodes keep their key, because a new one would revive them, also those that this transaction deleted.
    private mutating func setKey(_ key: OrderKey, of row: ListRow) throws {
        guard row.state == .present, !row.node.isDeletedAlone, let parent = row.node.place?.parent else { return }
        if row.node.id.kind == .hex { try writeIgnoredMoves() }
        try writePlace(of: row.node.id, parent: row.node.id.kind == .hex ? row.container ?? list : parent, key: key)
    }
}
