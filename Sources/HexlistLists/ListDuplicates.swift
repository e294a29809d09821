/// The duplicates in a hex: links with the same URL in one hex, and hexes with the same title in one hex. `ListTransaction.merge` makes one
/// node of each group.
///
/// Nodes are duplicates only if no other value of theirs differs; a value that only one of them has does not differ. Tags do not differ: the
/// node that remains has those of all.
public struct ListDuplicates: Equatable, Sendable {
    public struct Group: Equatable, Sendable {
        /// The oldest node, which remains: machines that merge the same duplicates at the same time have to keep the same one.
        public var kept: ListNode.ID
        public var others: [ListNode.ID]
        /// The values of the others that the kept node does not have.
        fileprivate var title: UTF8Text?
        fileprivate var registers: [UTF8Text: UTF8Text] = [:]
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
    /// Number of further nodes with the same URL or title as another one, but other values, or for which `fits` is false.
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
            for row in rows.joined() where row.state != .deleted {
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
            let moved = rows.dropFirst().joined().filter { $0.state != .deleted && !removed.contains($0.node.id) }.map(\.node.id)
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
                    groups[index].group.add(groups[index].values.add(values))
                } else {
                    if !groups.isEmpty { different += 1 }
                    if groups.count < Self.maximumGroups { groups.append((Group(kept: node.id, others: []), values)) }
                }
            }
            result += groups.map(\.group)
        }
        return result.sorted { $0.kept < $1.kept }
    }

    /// The values of a node that are not empty.
    private struct Values {
        var title: UTF8Text
        var registers: [UTF8Text: UTF8Text]

        init(_ node: ListNode) {
            title = node.title?.value ?? .empty
            registers = node.registers.filter { !$0.value.value.isEmpty && !ListNode.privateRegisters.contains($0.key) }.mapValues(\.value)
        }

        func differ(from other: Values) -> Bool {
            if !title.isEmpty, !other.title.isEmpty, title != other.title { return true }
            return other.registers.contains { name, value in
                !name.bytes.starts(with: ListDuplicates.tagPrefix) && registers[name].map { $0 != value } ?? false
            }
        }

        /// Adds the values that are missing here.
        /// - Returns: these values.
        mutating func add(_ other: Values) -> (title: UTF8Text?, registers: [UTF8Text: UTF8Text]) {
            let newTitle = title.isEmpty && !other.title.isEmpty ? other.title : nil
            let new = other.registers.filter { registers[$0.key] == nil }
            title = newTitle ?? title
            registers.merge(new) { own, _ in own }
            return (newTitle, new)
        }
    }

    /// The beginning of the name of a tag's register.
    private static let tagPrefix = Array("tag/".utf8)
}

extension ListDuplicates.Group {
    fileprivate init(kept: ListNode.ID, others: [ListNode.ID]) {
        self.kept = kept
        self.others = others
        title = nil
    }

    fileprivate mutating func add(_ values: (title: UTF8Text?, registers: [UTF8Text: UTF8Text])) {
        if let title = values.title { self.title = title }
        registers.merge(values.registers) { own, _ in own }
    }
}

extension ListTransaction {
    /// Makes one node of each group of duplicates: the kept one gets the values of the others and the contents of other hexes, and other links
    /// are deleted. After `deriveTree`, the caller has to delete the other hexes, whose contents have moved by then.
    /// - Parameter duplicates: found in the list as it is before this transaction.
    public mutating func merge(_ duplicates: ListDuplicates, using generator: inout some RandomNumberGenerator) throws {
        for group in duplicates.links + duplicates.hexes {
            if let title = group.title { try setTitle(of: group.kept, to: title) }
            if !group.registers.isEmpty { try setRegisters(group.registers, of: group.kept) }
        }
        for group in duplicates.links { for link in group.others { try delete(link) } }
        for move in duplicates.moves {
            let keys = try keys(count: move.nodes.count, at: .last, in: move.hex, using: &generator)
            for (node, key) in zip(move.nodes, keys) { try self.move(node, to: move.hex, key: key) }
        }
    }
}
