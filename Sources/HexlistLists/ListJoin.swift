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
    /// A hex and a hex of the other collection become one if they are in the same hex and have the same title, and no further hex there has
    /// this title. Links in the same hex become one if they have the same URL. All other nodes keep their ids and versions, so that several
    /// machines that join the same collections have the same result.
    /// - Parameter other: the rows of the other collection, with their derived values.
    /// - Returns: the number of nodes that were added or changed.
    @discardableResult
    public mutating func join<Other: ListStorage>(_ other: Other) throws -> Int {
        let counterparts = try counterparts(of: other)
        func mapped(_ id: ListNode.ID) -> ListNode.ID { counterparts[id] ?? id }
        var count = 0
        for node in try other.nodes() where counterparts[node.id] == nil {
            var node = node
            if let place = node.place {
                node.place = ListNode.Place(
                    version: place.version, parent: mapped(place.parent), key: place.key,
                    previousParent: mapped(place.previousParent))
            }
            if let deletion = node.deletion { node.deletion = DeletionMark(version: deletion.version, with: deletion.with.map(mapped)) }
            if try merge(node) { count += 1 }
        }
        return count
    }

    /// Finds the nodes of this list that stand for nodes of another collection, including the root.
    private func counterparts<Other: ListStorage>(of other: Other) throws -> [ListNode.ID: ListNode.ID] {
        var counterparts = [other.list: list]
        var open = [other.list]
        while let container = open.popLast() {
            guard let counterpart = counterparts[container] else { continue }
            let (theirs, own) = (Contents(try other.contents(of: container)), Contents(try storage.contents(of: counterpart)))
            for (title, hexes) in theirs.hexes where hexes.count == 1 && !title.isEmpty {
                guard let match = own.hexes[title], match.count == 1 else { continue }
                counterparts[hexes[0]] = match[0]
                open.append(hexes[0])
            }
            for (url, links) in theirs.links {
                for (link, match) in zip(links, own.links[url] ?? []) { counterparts[link] = match }
            }
        }
        return counterparts
    }

    /// The contents of a hex: its hexes by title, and its links by URL. Nodes with the same title or URL are in the order of the hex.
    private struct Contents {
        var hexes: [UTF8Text: [ListNode.ID]] = [:]
        var links: [UTF8Text: [ListNode.ID]] = [:]

        init(_ rows: [ListRow]) {
            for row in rows {
                let node = row.node
                switch node.id.kind {
                case .hex: hexes[node.title?.value ?? .empty, default: []].append(node.id)
                case .link: links[node.url, default: []].append(node.id)
                default: break
                }
            }
        }
    }
}
