@testable import HexlistLists

/// The tree of a list by its definition in Docs/Lists.md, from all values that were ever written: an independent, slow evaluation.
struct IndependentTree {
    private struct Written {
        var places: [ListNode.Place] = []
        var titles: [ListNode.Register] = []
        var registers: [UTF8Text: [ListNode.Register]] = [:]
        var deletions: [DeletionMark] = []
        var url = ""

        var place: ListNode.Place? { places.max { $0.version < $1.version } }
        var version: ListVersion? { (places.map(\.version) + titles.map(\.version) + registers.values.joined().map(\.version)).max() }
        static func last(_ values: [ListNode.Register]?) -> String? { values?.max { $0.version < $1.version }?.value.description }
    }

    private var nodes: [ListNode.ID: Written] = [:]
    /// Nodes for which a deletion was ever written.
    private(set) var deleted: Set<ListNode.ID> = []

    /// Adds the values that a change wrote.
    mutating func add(_ change: ListChange) {
        let (before, after) = (change.before, change.after)
        if !after.url.isEmpty { nodes[after.id, default: Written()].url = after.url.description }
        if let place = after.place, place != before?.place { nodes[after.id, default: Written()].places.append(place) }
        if let title = after.title, title != before?.title { nodes[after.id, default: Written()].titles.append(title) }
        for (name, register) in after.registers where register != before?.registers[name] {
            nodes[after.id, default: Written()].registers[name, default: []].append(register)
        }
        if let deletion = after.deletion, deletion != before?.deletion {
            nodes[after.id, default: Written()].deletions.append(deletion)
            deleted.insert(after.id)
        }
    }

    mutating func add(_ node: ListNode) { add(ListChange(before: nil, after: node)) }

    private func isDeleted(_ id: ListNode.ID, _ seen: Set<ListNode.ID> = []) -> Bool {
        guard let node = nodes[id], !seen.contains(id) else { return true }
        guard let top = node.deletions.map(\.version).max() else { return false }
        if let version = node.version, version > top { return false }
        let marks = node.deletions.filter { $0.version == top }
        guard let hex = marks.compactMap(\.with).max(), marks.allSatisfy({ $0.with != nil }) else { return true }
        return isDeleted(hex, seen.union([id]))
    }

    func text(of root: ListNode.ID) -> String {
        let hexes = nodes.keys.filter { $0.kind == .hex && $0 != root }.sorted()
        var parent: [ListNode.ID: ListNode.ID] = [:]
        for hex in hexes {
            let written = nodes[hex]?.place?.parent ?? root
            parent[hex] = nodes[written] != nil && written.kind == .hex ? written : root
        }
        func cycle(from start: ListNode.ID) -> [ListNode.ID] {
            var path: [ListNode.ID] = []
            var next = start
            while next != root {
                if let index = path.firstIndex(of: next) { return Array(path[index...]) }
                path.append(next)
                next = parent[next] ?? root
            }
            return []
        }
        var container = parent
        for hex in hexes {
            let newest = cycle(from: hex).max { left, right in
                guard let first = nodes[left]?.place?.version, let second = nodes[right]?.place?.version, first != second else {
                    return left < right
                }
                return first < second
            }
            guard let newest else { continue }
            let previous = nodes[newest]?.place?.previousParent ?? root
            container[newest] = parent[previous] != nil && cycle(from: previous).isEmpty ? previous : root
        }
        var levels: [ListNode.ID: Int] = [:]
        func level(_ hex: ListNode.ID) -> Int {
            if hex == root { return 0 }
            if let level = levels[hex] { return level }
            let outer = container[hex] ?? root
            var result = level(outer) + 1
            if result > 8 {
                container[hex] = container[outer]
                result = 8
            }
            levels[hex] = result
            return result
        }
        for hex in hexes { _ = level(hex) }

        var links: [ListNode.ID: [ListNode.ID]] = [:]
        for (id, node) in nodes where id.kind == .link && !isDeleted(id) {
            let written = node.place?.parent ?? root
            links[nodes[written] != nil && written.kind == .hex ? written : root, default: []].append(id)
        }
        var shown: Set<ListNode.ID> = []
        for hex in hexes where !isDeleted(hex) || links[hex] != nil {
            var next = hex
            while next != root, shown.insert(next).inserted { next = container[next] ?? root }
        }
        var inside: [ListNode.ID: [ListNode.ID]] = [:]
        for hex in shown { inside[container[hex] ?? root, default: []].append(hex) }

        func isBefore(_ left: ListNode.ID, _ right: ListNode.ID) -> Bool {
            let (first, second) = (nodes[left]?.place?.key.bytes ?? [], nodes[right]?.place?.key.bytes ?? [])
            return first == second ? left < right : first.lexicographicallyPrecedes(second)
        }
        func lines(_ hex: ListNode.ID, _ indent: String) -> String {
            var text = ""
            for id in (links[hex] ?? []).sorted(by: isBefore) {
                text += "\(indent)- \(Written.last(nodes[id]?.titles) ?? "") <\(nodes[id]?.url ?? "")>\n"
            }
            for id in (inside[hex] ?? []).sorted(by: isBefore) {
                let color = Written.last(nodes[id]?.registers["color"]) ?? ""
                text +=
                    "\(indent)+ \(Written.last(nodes[id]?.titles) ?? "")\(color.isEmpty ? "" : " " + color)\n" + lines(id, indent + "  ")
            }
            return text
        }
        return lines(root, "")
    }
}
