public import HexlistModel

/// The hexes of an import in the order of the list. They need not be in memory: the store reads them one by one during its transaction.
public protocol ImportSource: Sendable {
    var entries: [ImportEntry] { get }

    /// Reads one hex. Called on the writer's thread, at most three times for each index.
    /// - Throws: an error that ends the import; nothing is added then.
    func hex(_ index: Int) throws -> HexContent
}

/// Facts about one hex of an import that are compared without reading the hex.
public struct ImportEntry: Sendable {
    /// Counts that equal hexes have in common.
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

    /// 128 bits of a hash of the description, keyed by the process. The chance that two of 200 000 descriptions share one is under 2⁻⁹².
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
    /// `HexContent.weight` of the hex.
    public let weight: Int

    public init(_ hex: HexContent) {
        descriptionHash = hex.withBytes(of: hex.hexDescription, DescriptionHash.init)
        shape = Shape(links: hex.links.count, hexesInside: hex.children.count, linksInside: hex.childLinks.count)
        weight = hex.weight(frame: hex.frame.count)
    }
}
