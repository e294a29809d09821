/// The duplicates in a hex or a whole list: links with the same URL in one hex, and hexes with the same title in one hex or at the top level.
///
/// Two nodes are duplicates if no value that both have differs, apart from tags. `ListTransaction.merge` merges them: the kept node gets the
/// values that it does not have, and all tags. Registers with unknown members have to be equal: they may have a note or tags, too.
public struct ListDuplicates: Equatable, Sendable {
    public struct Group: Equatable, Sendable {
        /// The oldest node, which remains: machines that merge the same duplicates at the same time have to keep the same one.
        public var kept: ListNode.ID
        public var others: [ListNode.ID]
        /// The values of the others that the kept node does not have.
        fileprivate var added = Values()
    }

    /// Contents of hexes that do not remain.
    fileprivate struct Move: Equatable, Sendable {
        var nodes: [ListNode.ID]
        /// The hex that remains.
        var hex: ListNode.ID
    }

    public var links: [Group] = []
    /// Outer ones before inner ones.
    public var hexes: [Group] = []
    /// Number of further nodes with the same URL or title as another one that stay, because another value differs, the node would be too
    /// large, or `fits` is false.
    public var different = 0
    fileprivate var moves: [Move] = []

    public var isEmpty: Bool { links.isEmpty && hexes.isEmpty }

    /// Maximum number of sets of equal values that are distinguished among nodes with one URL or title. Further ones count as `different`.
    private static let maximumGroups = 16

    /// Finds the duplicates in a hex, at all levels.
    /// - Parameters:
    ///   - hex: a hex, or the list's id.
    ///   - includesHexes: whether hexes with the same title become one.
    ///   - fits: whether the contents of these hexes fit into one.
    public init<Storage: ListStorage>(
        in hex: ListNode.ID, of storage: Storage, includingHexes includesHexes: Bool, fits: (Group) throws -> Bool
    ) throws {
        var open = [Group(kept: hex, others: [])]
        while let container = open.popLast() {
            let rows = try [try storage.contents(of: container.kept)] + container.others.map { try storage.contents(of: $0) }
            var (sameURL, sameTitle): ([LinkKey: [ListNode]], [UTF8Text: [ListNode]]) = ([:], [:])
            var inner: [ListNode.ID] = []
            for row in rows.joined() {
                switch row.node.id.kind {
                case .link: sameURL[LinkKey(url: row.node.url, service: row.node.service), default: []].append(row.node)
                case .hex:
                    let title = row.node.title?.value ?? .empty
                    if includesHexes, row.state == .present, !title.isEmpty {
                        sameTitle[title, default: []].append(row.node)
                    } else {
                        inner.append(row.node.id)
                    }
                default: break
                }
            }
            let (linkGroups, hexGroups) = (groups(sameURL.values), groups(sameTitle.values))
            links += linkGroups.filter { !$0.others.isEmpty }
            var merged: [Group] = []
            for group in hexGroups {
                if try group.others.isEmpty || fits(group) {
                    merged.append(group)
                } else {
                    different += group.others.count
                    merged += ([group.kept] + group.others).map { Group(kept: $0, others: []) }
                }
            }
            hexes += merged.filter { !$0.others.isEmpty }
            let removed = Set((linkGroups + merged).flatMap(\.others))
            let moved = rows.dropFirst().joined().map(\.node.id).filter { !removed.contains($0) }
            if !moved.isEmpty { moves.append(Move(nodes: moved, hex: container.kept)) }
            open += inner.map { Group(kept: $0, others: []) } + merged
        }
    }

    private struct LinkKey: Hashable {
        var url: UTF8Text
        var service: UTF8Text
    }

    /// Divides nodes with one URL or title into groups of equal ones.
    private mutating func groups(_ nodes: some Sequence<[ListNode]>) -> [Group] {
        var result: [Group] = []
        for nodes in nodes {
            guard nodes.count > 1 else {
                result += nodes.map { Group(kept: $0.id, others: []) }
                continue
            }
            var groups: [(group: Group, values: Values)] = []
            for node in nodes.sorted(by: { $0.id < $1.id }) {
                let values = Values(node)
                if let index = groups.firstIndex(where: { !$0.values.differ(from: values) }) {
                    groups[index].group.others.append(node.id)
                    groups[index].group.added.add(groups[index].values.add(values))
                } else {
                    if !groups.isEmpty { different += 1 }
                    let group = Group(kept: node.id, others: [])
                    if groups.count < Self.maximumGroups { groups.append((group, values)) } else { result.append(group) }
                }
            }
            result += groups.map(\.group)
        }
        return result.sorted { $0.kept < $1.kept }
    }

    /// The values of a node that are not empty.
    fileprivate struct Values: Equatable, Sendable {
        var title = UTF8Text.empty
        var registers: [UTF8Text: UTF8Text] = [:]
        private var maximumRegisters = 0
        /// Bytes of all texts, including the URL and the names of empty registers.
        private var bytes = 0

        init() {}

        init(_ node: ListNode) {
            title = node.title?.value ?? .empty
            registers = node.registers.filter { !$0.value.value.isEmpty && !ListNode.privateRegisters.contains($0.key) }.mapValues(\.value)
            maximumRegisters = node.id.kind.maximumRegisters
            bytes = node.textBytes
        }

        /// Whether a value differs, or one node cannot have all values.
        func differ(from other: Values) -> Bool {
            if !title.isEmpty, !other.title.isEmpty, title != other.title { return true }
            guard registers[ListNode.unknownMembers] == other.registers[ListNode.unknownMembers] else { return true }
            var count = registers.count
            for (name, value) in other.registers {
                guard let own = registers[name] else {
                    count += 1
                    continue
                }
                if own != value, !name.bytes.starts(with: ListNode.tagPrefix) { return true }
            }
            return count > maximumRegisters || bytes + other.bytes > ListLimits.nodeBytes
        }

        /// Adds the values that are missing here.
        /// - Returns: these values.
        @discardableResult
        mutating func add(_ other: Values) -> Values {
            var added = Values()
            if title.isEmpty { added.title = other.title }
            added.registers = other.registers.filter { registers[$0.key] == nil }
            if !added.title.isEmpty { title = added.title }
            registers.merge(added.registers) { own, _ in own }
            bytes += other.bytes
            return added
        }
    }
}

extension ListTransaction {
    /// Merges each group of duplicates into its kept node: this gets the values of the others, and the contents of other hexes; other links
    /// are deleted. After the next `deriveTree`, the caller deletes the other hexes, which are empty then.
    /// - Parameter duplicates: found in the list as it is before this transaction.
    public mutating func merge(_ duplicates: ListDuplicates, using generator: inout some RandomNumberGenerator) throws {
        for group in duplicates.links + duplicates.hexes {
            // A new version: another machine may delete the kept node at the same time, as a duplicate of the others.
            try restore(group.kept)
            if !group.added.title.isEmpty { try setTitle(of: group.kept, to: group.added.title) }
            if !group.added.registers.isEmpty { try setRegisters(group.added.registers, of: group.kept) }
        }
        for group in duplicates.links { for link in group.others { try delete(link) } }
        for move in duplicates.moves {
            let keys = try keys(count: move.nodes.count, at: .last, in: move.hex, using: &generator)
            for (node, key) in zip(move.nodes, keys) { try self.move(node, to: move.hex, key: key) }
        }
    }
}
