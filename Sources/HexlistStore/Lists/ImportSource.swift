public import HexlistModel

/// A source of hexes for an import, in the order of the list. The hexes need not be in memory, because the store reads them one by one
/// during its transaction.
public protocol ImportSource: Sendable {
    var entries: [ImportEntry] { get }

    /// Reads one hex. Called on the writer's thread, at most twice for each index.
    /// - Throws: any error. It ends the import, and nothing is added.
    func hex(_ index: Int) throws -> HexContent
}

/// Properties of one hex of an import, by which it can be compared with other hexes without reading it.
public struct ImportEntry: Sendable {
    /// Numbers of links and inner hexes. Equal hexes have equal shapes, so hexes of different shapes need not be compared.
    struct Shape: Hashable {
        var links: UInt32
        var hexesInside: UInt32
        var linksInside: UInt32

        init(links: Int, hexesInside: Int, linksInside: Int) {
            self.links = UInt32(clamping: links)
            self.hexesInside = UInt32(clamping: hexesInside)
            self.linksInside = UInt32(clamping: linksInside)
        }
    }

    /// A 128-bit hash of the description, with a random key of this process (`Hasher`). The probability that any two of 200 000
    /// descriptions collide is below 2⁻⁹².
    struct DescriptionHash: Hashable, Comparable {
        var high: Int
        var low: Int

        init(_ bytes: UnsafeRawBufferPointer) {
            func hash(_ salt: UInt8) -> Int {
                var hasher = Hasher()
                hasher.combine(salt)
                hasher.combine(bytes: bytes)
                return hasher.finalize()
            }
            (high, low) = (hash(0), hash(1))
        }

        static func < (one: Self, other: Self) -> Bool { (one.high, one.low) < (other.high, other.low) }
    }

    let descriptionHash: DescriptionHash
    let shape: Shape
    /// The `HexContent.weight` of the hex.
    public let weight: Int

    public init(_ hex: HexContent) {
        descriptionHash = hex.withBytes(of: hex.hexDescription, DescriptionHash.init)
        shape = Shape(links: hex.links.count, hexesInside: hex.children.count, linksInside: hex.childLinks.count)
        weight = hex.weight(frame: hex.frame.count)
    }
}
