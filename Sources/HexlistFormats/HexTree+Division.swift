public import HexlistJSON
import HexlistModel

extension HexTree {
    /// The most bytes of one hex with all inside it: any peer that trusts this one takes a frame of it.
    private static let treeBytes = 900 << 10

    /// The HexJM of each hex that is in none, of which each is one that can be sent: a hex with too many links becomes several, `name (2)`,
    /// and one inside, with which the outermost would have too many links, hexes, levels or bytes, stands by itself, `outer / inner`.
    public func divided() -> [JSONValue] {
        var forest = withFewLinksEach()
        forest.cut()
        let lists = forest.childLists()
        return lists[forest.hexes.count].map { forest.json(of: $0, lists) }
    }

    /// The same with hexes of at most as many links and bytes as one may have.
    private func withFewLinksEach() -> HexTree {
        var result = HexTree()
        var places: [Int] = []
        for hex in hexes {
            var part = hex
            part.parent = hex.parent.map { places[$0] }
            part.links = []
            places.append(result.hexes.count)
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

        /// With a hex of that size inside.
        func with(_ other: Size) -> Size {
            Size(
                links: links + other.links, hexes: hexes + other.hexes + 1, bytes: bytes + other.bytes,
                levels: max(levels, other.levels + 1))
        }

        var fits: Bool {
            links <= ProtocolLimits.links && hexes < ProtocolLimits.links && bytes <= HexTree.treeBytes && levels <= HexTree.levels
        }
    }

    /// The most levels of hexes in one (Docs/Protocol.md).
    static let levels = 8

    /// Takes hexes out of those with which they would be too large, and names them by where they were.
    private mutating func cut() {
        var sizes = hexes.map { hex in
            Size(
                links: hex.links.count,
                bytes: hex.links.reduce(256 + hex.description.utf8.count + hex.extra.reduce(0) { $0 + $1.value.bytes.count }) {
                    $0 + $1.weight
                })
        }
        // From the end on each hex has its size when it is added to the one it is in.
        var isCut = [Bool](repeating: false, count: hexes.count)
        for index in hexes.indices.reversed() {
            guard let parent = hexes[index].parent else { continue }
            let together = sizes[parent].with(sizes[index])
            if together.fits { sizes[parent] = together } else { isCut[index] = true }
        }
        guard isCut.contains(true) else { return }
        // The outermost first, so that a name has all the names before it. A name is bounded: nesting in a file is not.
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
