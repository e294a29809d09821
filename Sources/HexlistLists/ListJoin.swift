/// One of two collections of the same user that are to be joined. A collection is the list of My Hexlist on some of the user's machines.
public struct ListCollection: Hashable, Sendable {
    public var list: ListNode.ID
    /// The number of the user's machines that have it.
    public var machines: Int

    public init(list: ListNode.ID, machines: Int) {
        self.list = list
        self.machines = machines
    }

    /// Returns the collection that remains: the one on more machines; if the numbers are equal, the older one; if the ages are equal too,
    /// the one with the smaller id. Both machines of an exchange choose the same collection.
    public static func remaining(_ left: ListCollection, _ right: ListCollection) -> ListCollection {
        if left.machines != right.machines { return left.machines > right.machines ? left : right }
        return (left.list.time, left.list) <= (right.list.time, right.list) ? left : right
    }
}

extension ListTransaction {
    /// Adds the nodes of another collection to this one.
    ///
    /// A node with an id that both collections have is merged, as in any exchange. Of the others, a hex and a hex of the other collection
    /// become one if they are in the same hex and have the same title, and no further hex there has this title. Links in the same hex become
    /// one if they have the same URL. The node of this list then has the values of both: of each register, the later one that is not empty.
    /// All other nodes keep their ids and versions. The result therefore does not depend on the order in which several machines join the same
    /// collections.
    /// - Parameter other: the rows of the other collection, with their derived values.
    /// - Returns: the number of nodes that were added or changed, and for each node of the other collection that was not added the node
    ///   that stands for it.
    @discardableResult
    public mutating func join<Other: ListStorage>(_ other: Other) throws -> (count: Int, counterparts: [ListNode.ID: ListNode.ID]) {
        let counterparts = try counterparts(of: other)
        func mapped(_ id: ListNode.ID) -> ListNode.ID { counterparts[id] ?? id }
        var count = 0
        try other.forEachNode { node in
            var node = node
            if let counterpart = counterparts[node.id] {
                guard try replace(node, by: counterpart) else { return }
            } else {
                if let place = node.place {
                    node.place = ListNode.Place(
                        version: place.version, parent: mapped(place.parent), key: place.key,
                        previousParent: mapped(place.previousParent))
                }
                if let deletion = node.deletion { node.deletion = DeletionMark(version: deletion.version, with: deletion.with.map(mapped)) }
                guard try merge(node) else { return }
            }
            count += 1
            if changes.count >= Self.changesInJoin { _ = takeChanges() }
        }
        return (count, counterparts)
    }

    /// Number of changed nodes of a join in memory. Each has all its values.
    private static var changesInJoin: Int { 2_000 }

    /// Merges the title and the other registers of a node into its counterpart, and leaves a deletion mark for the node, so that an old copy
    /// of the other collection does not bring it back after the counterpart was deleted. Empty values are left out, because the counterpart
    /// never had the value that they would remove. A deleted node that is shown because of its contents stays as it is: a value would
    /// revive it.
    private mutating func replace(_ node: ListNode, by counterpart: ListNode.ID) throws -> Bool {
        guard counterpart != list, let version = node.version else { return false }
        var mark = ListNode(id: node.id)
        mark.deletion = DeletionMark(version: version)
        let isNew = try merge(mark)
        guard !node.isMarkedDeleted, try storage.row(counterpart)?.node.isMarkedDeleted == false else { return isNew }
        var values = ListNode(id: counterpart)
        values.title = node.title.flatMap { $0.value.isEmpty ? nil : $0 }
        values.registers = node.registers.filter { !$0.value.value.isEmpty }
        return try merge(values) || isNew
    }

    /// Finds the nodes of this list that stand for nodes of another collection with other ids, including the root.
    private func counterparts<Other: ListStorage>(of other: Other) throws -> [ListNode.ID: ListNode.ID] {
        var counterparts = [other.list: list]
        var open = [other.list]
        while let container = open.popLast() {
            let (theirs, own) = (try other.contents(of: container), try storage.contents(of: counterparts[container] ?? container))
            // A node that is deleted here may have a counterpart from an earlier join.
            let known = try Set(theirs.lazy.map(\.node.id).filter { try storage.row($0).map { $0.state != .deleted } ?? false })
            open += known.filter { $0.kind == .hex }
            var matches = Matches()
            for row in theirs where !known.contains(row.node.id) { matches.add(row.node) }
            guard !matches.isEmpty else { continue }
            var candidates = Matches()
            for row in own where try matches.include(row.node) && !(other.row(row.node.id).map { $0.state != .deleted } ?? false) {
                candidates.add(row.node)
            }
            for (title, hexes) in matches.hexes {
                guard hexes.count == 1, let match = candidates.hexes[title], match.count == 1 else {
                    // Deleted here, and without a counterpart: merged by id.
                    open += hexes
                    continue
                }
                counterparts[hexes[0]] = match[0]
                open.append(hexes[0])
            }
            for (url, links) in matches.links {
                for (link, match) in zip(links, candidates.links[url] ?? []) { counterparts[link] = match }
            }
        }
        return counterparts
    }

    /// Contents of a hex: hexes with a title, by title, and links by URL. Nodes with the same title or URL are in the order of the hex.
    private struct Matches {
        var hexes: [UTF8Text: [ListNode.ID]] = [:]
        var links: [UTF8Text: [ListNode.ID]] = [:]

        var isEmpty: Bool { hexes.isEmpty && links.isEmpty }

        mutating func add(_ node: ListNode) {
            switch node.id.kind {
            case .hex:
                if let title = node.title?.value, !title.isEmpty { hexes[title, default: []].append(node.id) }
            case .link: links[node.url, default: []].append(node.id)
            default: break
            }
        }

        /// Whether there is a node with the title or URL of another one.
        func include(_ node: ListNode) -> Bool {
            switch node.id.kind {
            case .hex: node.title.map { hexes[$0.value] != nil } ?? false
            case .link: links[node.url] != nil
            default: false
            }
        }
    }
}
