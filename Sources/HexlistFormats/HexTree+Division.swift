public import HexlistJSON
import HexlistModel

extension HexTree {
    /// Maximum bytes of a hex with its inner hexes: 900 KiB, so that its frame stays below 1 MiB and every peer that trusts this machine
    /// accepts it.
    private static let treeBytes = 900 << 10

    /// Returns the outermost hexes as HexJM, divided so that each one is within the protocol's limits. A hex with too many links becomes
    /// several, named `name (2)` and so on. An inner hex that does not fit into its outermost hex becomes an outermost hex named `outer /
    /// inner`.
    public func divided() -> [JSONValue] {
        var forest = withFewLinksEach()
        forest.cut()
        let lists = forest.childLists()
        return lists[forest.hexes.count].map { forest.json(of: $0, lists) }
    }

    /// Returns the tree with each hex split into hexes that do not exceed the limits for links and bytes.
    private func withFewLinksEach() -> HexTree {
        var result = HexTree()
        var newIndexes: [Int] = []
        for hex in hexes {
            var part = hex
            part.parent = hex.parent.map { newIndexes[$0] }
            part.links = []
            newIndexes.append(result.hexes.count)
            var (bytes, number) = (0, 1)
            for link in hex.links {
                if part.links.count == ProtocolLimits.links || bytes + link.weight > Self.treeBytes, !part.links.isEmpty {
                    result.hexes.append(part)
                    number += 1
                    part.description = hex.description.isEmpty ? "(\(number))" : "\(hex.description) (\(number))"
                    part.links = []
                    bytes = 0
                }
                part.links.append(link)
                bytes += link.weight
            }
            result.hexes.append(part)
        }
        return result
    }

    private struct Size {
        var links = 0
        var hexes = 0
        var bytes = 0
        var levels = 1

        /// Returns the size of this hex after a hex of size `other` was put inside it.
        func with(_ other: Size) -> Size {
            Size(
                links: links + other.links, hexes: hexes + other.hexes + 1, bytes: bytes + other.bytes,
                levels: max(levels, other.levels + 1))
        }

        var fits: Bool {
            links <= ProtocolLimits.links && hexes < ProtocolLimits.links && bytes <= HexTree.treeBytes && levels <= HexTree.levels
        }
    }

    /// Maximum levels of inner hexes, including the outermost one (Docs/Protocol.md).
    static let levels = 8

    /// Moves each inner hex that does not fit into its outermost hex to the top level, and names it by its former path.
    private mutating func cut() {
        var sizes = hexes.map { hex in
            Size(
                links: hex.links.count,
                bytes: hex.links.reduce(256 + hex.description.utf8.count + hex.extra.reduce(0) { $0 + $1.value.bytes.count }) {
                    $0 + $1.weight
                })
        }
        // Children come before their parents in this loop, so the size of a hex is complete when it is added to its parent.
        var isCut = [Bool](repeating: false, count: hexes.count)
        for index in hexes.indices.reversed() {
            guard let parent = hexes[index].parent else { continue }
            let together = sizes[parent].with(sizes[index])
            if together.fits { sizes[parent] = together } else { isCut[index] = true }
        }
        guard isCut.contains(true) else { return }
        // Parents come before their children in this loop, so the parents' names are final. The length of the path is limited, because a
        // file may be nested to any depth.
        for index in hexes.indices where isCut[index] {
            guard let parent = hexes[index].parent else { continue }
            var path: [String] = []
            for hex in [hexes[index], hexes[parent]] { path.append(hex.description) }
            var outer = hexes[parent].parent
            while let next = outer, path.count < Self.levels {
                path.append(hexes[next].description)
                outer = hexes[next].parent
            }
            hexes[index].description = PeerName.cut(path.filter { !$0.isEmpty }.reversed().joined(separator: " / "), bytes: 4_096)
        }
        for index in hexes.indices where isCut[index] { hexes[index].parent = nil }
    }
}
