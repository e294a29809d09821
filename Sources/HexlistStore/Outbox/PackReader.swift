internal import HexlistModel

/// Reads the packs that a statement joins to its row ranges. Consecutive ranges of one pack decode it once.
struct PackReader {
    private var pack: OutboxPack?
    private var hexes = PackedHexes()
    private var bodies: [UInt8]?

    /// A hex and its position in a pack.
    struct Hex {
        let hexes: PackedHexes
        let position: Int

        var messageID: UUIDBytes { hexes.messageID(at: position) ?? .nil }
        var entry: PackedHexes.Entry { hexes.entries[position] }
        /// Bytes of its entry in the pack, without the body.
        var size: Int { hexes.size(at: position) }
    }

    /// The columns that `read` expects.
    static let columns = OutboxPack.columns + ", outboxPack.hexes"

    /// Decodes the pack of the statement's current row, which begins with `OutboxRowRange.columns`.
    /// - Parameter column: the index of the first of `columns`.
    /// - Returns: whether the pack is valid and contains the row range.
    mutating func read(_ row: SQLStatement, from column: Int32) -> Bool {
        if let pack, pack.id == row.int64(column) { return pack.contains(row.int64(0), through: row.int64(1)) }
        guard let pack = OutboxPack(row, from: column), let hexes = pack.hexes(row.bytes(column + 5)) else {
            self.pack = nil
            return false
        }
        (self.pack, self.hexes, bodies) = (pack, hexes, nil)
        return pack.contains(row.int64(0), through: row.int64(1))
    }

    /// The hex of a row. The last `read` must have returned true for its pack.
    func hex(of row: Int64) -> Hex { Hex(hexes: hexes, position: pack?.position(of: row) ?? 0) }

    /// The body of a hex, from the column after `columns`, which is read once for each pack.
    /// - Parameter rowRange: the row range, if the caller takes all of its bodies. If these are at least half of the pack, they are slices of
    ///   the pack's buffer; otherwise copies, because a slice keeps the whole buffer in memory.
    mutating func body(of hex: Hex, in rowRange: OutboxRowRange?, _ row: SQLStatement, from column: Int32) -> ArraySlice<UInt8>? {
        let bodies = self.bodies ?? row.bytes(column + 6)
        self.bodies = bodies
        let range = hex.entry.body
        guard range.upperBound <= bodies.count else { return nil }
        let isMost = rowRange.map { 2 * bytes(of: $0) >= bodies.count } ?? false
        return isMost ? bodies[range] : ArraySlice(Array(bodies[range]))
    }

    /// The bytes of the bodies of a row range of the current pack.
    private func bytes(of rowRange: OutboxRowRange) -> Int {
        guard let pack else { return 0 }
        let (first, last) = (pack.position(of: rowRange.ids.lowerBound), pack.position(of: rowRange.ids.upperBound))
        return hexes.bodies(of: first..<(last + 1)).count
    }
}
