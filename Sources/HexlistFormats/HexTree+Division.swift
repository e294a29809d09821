public import HexlistJSON
import HexlistModel

extension HexTree {
    /// Maximum bytes of a hex with the hexes inside it. Any peer that trusts this one accepts a frame of this size.
    private static let treeBytes = 900 << 10

    /// The outermost hexes as HexJM, divided so that each can be sent: a hex with too many links becomes several, `name (2)`, and a hex
    /// inside that would exceed the limits of the outermost one becomes an outermost hex itself, `outer / inner`.
    public func divided() -> [JSONValue] {
        var forest = withFewLinksEach()
        forest.cut()
        let lists = forest.childLists()
        return lists[forest.hexes.count].map { forest.json(of: $0, lists) }
    }

    /// The tree with each hex split into hexes of at most the allowed links and bytes.
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

        /// The size with a hex of that size inside.
        func with(_ other: Size) -> Size {
            Size(
                links: links + other.links, hexes: hexes + other.hexes + 1, bytes: bytes + other.bytes,
                levels: max(levels, other.levels + 1))
        }

        var fits: Bool {
            links <= ProtocolLimits.links && hexes < ProtocolLimits.links && bytes <= HexTree.treeBytes && levels <= HexTree.levels
        }
    }

    /// Maximum levels of a hex (Docs/Protocol.md).
    static let levels = 8

    /// Moves hexes out of outermost ones that would exceed the limits, and names them by their former path.
    private mutating func cut() {
        var sizes = hexes.map { hex in
            Size(
                links: hex.links.count,
                bytes: hex.links.reduce(256 + hex.description.utf8.count + hex.extra.reduce(0) { $0 + $1.value.bytes.count }) {
                    $0 + $1.weight
                })
        }
        // Backwards, so that the size of a hex is complete when it is added to its parent.
        var isCut = [Bool](repeating: false, count: hexes.count)
        for index in hexes.indices.reversed() {
            guard let parent = hexes[index].parent else { continue }
            let together = sizes[parent].with(sizes[index])
            if together.fits { sizes[parent] = together } else { isCut[index] = true }
        }
        guard isCut.contains(true) else { return }
        // Parents first, so that their names are complete. A name is bounded, because nesting in a file is not.
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
