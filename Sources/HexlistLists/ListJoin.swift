extension ListNode.ID {
    /// Returns the list that remains of two collections of the same user: the older one, or if the ages are equal the one with the smaller
    /// id. Machines join collections in different orders, and nodes that become one are kept in one direction only, so nothing but the ids may
    /// decide.
    public static func remaining(_ left: ListNode.ID, _ right: ListNode.ID) -> ListNode.ID {
        min(left, right)  // ids begin with their time
    }
}

extension ListTransaction {
    /// Adds the nodes of another collection to this one.
    ///
    /// A node with an id that both collections have is merged, as in any exchange. Of the others, a hex and a hex of the other collection
    /// become one if they are in the same hex and have the same title, and no further hex there has this title. The hex of this list remains.
    /// Links in the same hex become one if they have the same URL, and the one of this list remains. The node that remains has the values
    /// of both: of each register, the later one that is not empty. All other nodes keep their ids and versions. The result therefore does not
    /// depend on the order in which several machines join the same collections.
    /// - Parameter other: the rows of the other collection, with their derived values.
    /// - Returns: the number of nodes that were added or changed, and for each node of the other collection that was not added the node
    ///   that stands for it.
    @discardableResult
    public mutating func join<Other: ListStorage>(_ other: Other) throws -> (count: Int, counterparts: [ListNode.ID: ListNode.ID]) {
        let (counterparts, lost) = try counterparts(of: other)
        func mapped(_ id: ListNode.ID) -> ListNode.ID { counterparts[id] ?? id }
        var count = 0
        func changed(_ isChanged: Bool) {
            if isChanged { count += 1 }
        }
        try other.forEachNode { node in
            var node = node
            if let counterpart = counterparts[node.id] {
                changed(try replace(node, by: counterpart))
            } else {
                if let place = node.place {
                    node.place = ListNode.Place(
                        version: place.version, parent: mapped(place.parent), key: place.key,
                        previousParent: mapped(place.previousParent))
                }
                if let deletion = node.deletion { node.deletion = DeletionMark(version: deletion.version, with: deletion.with.map(mapped)) }
                changed(try merge(node))
            }
            if changes.count >= Self.changesInJoin { _ = takeChanges() }
        }
        // A newer version than that of the deletion mark.
        for link in lost {
            if let place = try storage.row(link)?.node.place { try writePlace(of: link, parent: place.parent, key: place.key) }
        }
        return (count, counterparts)
    }

    /// Number of changed nodes of a join in memory. Each has all its values.
    private static var changesInJoin: Int { 2_000 }

    /// Merges the title and the other registers of a node into its counterpart, and leaves a deletion mark for the node, so that an old copy
    /// of the other collection does not bring it back after the counterpart was deleted. Empty values are left out, because the counterpart
    /// never had the value that they would remove. A node that is deleted in this list has no values for its counterpart: it was replaced
    /// before, or a user deleted it.
    private mutating func replace(_ node: ListNode, by counterpart: ListNode.ID) throws -> Bool {
        guard counterpart != list, let version = node.version else { return false }
        let isDeleted = try merged(node).isMarkedDeleted
        var mark = ListNode(id: node.id)
        mark.deletion = DeletionMark(version: version)
        let isNew = try merge(mark)
        guard !isDeleted else { return isNew }
        var values = ListNode(id: counterpart)
        values.title = node.title.flatMap { $0.value.isEmpty ? nil : $0 }
        values.registers = node.registers.filter { !$0.value.value.isEmpty }
        return try merge(values) || isNew
    }

    /// A node of another collection with the values of the node of this list that has the same id.
    private func merged(_ node: ListNode) throws -> ListNode {
        var node = node
        if let own = try storage.row(node.id)?.node { node.merge(own) }
        return node
    }

    /// Finds nodes of this list that stand for nodes of another collection with other ids, including the root.
    ///
    /// Only nodes that are shown and not deleted become one, and a node does not become one with another that the join deletes. `lost` are the
    /// links of this list that the join deletes although both collections show a link with this URL there: earlier joins of several machines
    /// have replaced each of the two by the other.
    private func counterparts<Other: ListStorage>(of other: Other) throws -> (
        counterparts: [ListNode.ID: ListNode.ID], lost: [ListNode.ID]
    ) {
        var counterparts = [other.list: list]
        var lost: [ListNode.ID] = []
        var open = [other.list]
        while let container = open.popLast() {
            let (theirs, own) = (try other.contents(of: container), try storage.contents(of: counterparts[container] ?? container))
            // A node that is deleted here may have a counterpart from an earlier join.
            let known = try Set(theirs.lazy.map(\.node.id).filter { try storage.row($0).map { $0.state != .deleted } ?? false })
            open += theirs.lazy.filter { $0.state != .present || known.contains($0.node.id) }.map(\.node.id).filter { $0.kind == .hex }
            var (matches, deletedHere) = (Matches(), Matches())
            for row in theirs where row.state == .present && !known.contains(row.node.id) {
                if try row.node.id.kind == .link && merged(row.node).isMarkedDeleted {
                    deletedHere.add(row.node)
                } else {
                    matches.add(row.node)
                }
            }
            guard !matches.isEmpty || !deletedHere.isEmpty else { continue }
            var (candidates, deletedThere) = (Matches(), Matches())
            for row in own where row.state == .present && (matches.include(row.node) || deletedHere.include(row.node)) {
                let there = try other.row(row.node.id)
                if let there, there.state != .deleted { continue }
                if let there, try merged(there.node).isMarkedDeleted { deletedThere.add(row.node) } else { candidates.add(row.node) }
            }
            for (title, hexes) in matches.hexes {
                guard hexes.count == 1, let match = candidates.hexes[title], match.count == 1 else {
                    open += hexes
                    continue
                }
                counterparts[hexes[0]] = match[0]
                open.append(hexes[0])
            }
            for (url, links) in matches.links {
                for (link, match) in zip(links, candidates.links[url] ?? []) { counterparts[link] = match }
            }
            for (url, links) in deletedHere.links { lost += zip(links, deletedThere.links[url] ?? []).map(\.1) }
        }
        return (counterparts, lost)
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
