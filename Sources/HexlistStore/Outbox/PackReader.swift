internal import HexlistModel

/// Decodes the packs that a statement joins to row ranges. For consecutive row ranges of one pack, the pack is decoded once.
struct PackReader {
    private var pack: OutboxPack?
    private var hexes = PackedHexes()
    private var bodies: [UInt8]?

    struct Hex {
        let hexes: PackedHexes
        let position: Int

        var messageID: UUIDBytes { hexes.messageID(at: position) ?? .nil }
        var entry: PackedHexes.Entry { hexes.entries[position] }
        /// Bytes of the hex's entry in the pack, without the body.
        var size: Int { hexes.size(at: position) }
    }

    /// The SQL columns that `read` expects.
    static let columns = OutboxPack.columns + ", outboxPack.hexes"

    /// Decodes the pack of the statement's current row. The row must begin with `OutboxRowRange.columns`.
    /// - Parameter column: the index of the first column of `columns`.
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

    /// Returns the hex of an outbox row. The last `read` must have returned `true` for the pack of the row.
    func hex(of row: Int64) -> Hex { Hex(hexes: hexes, position: pack?.position(of: row) ?? 0) }

    /// Returns the body of a hex; `nil` if the pack does not have it. Reads the column `bodies`, which follows `columns`, once for each
    /// pack.
    /// - Parameter rowRange: the row range if the caller reads all its bodies, else `nil`. If the bodies of the range are at least half of
    ///   the pack, the result is a slice of the pack's buffer. Otherwise it is a copy, because a slice would keep the whole buffer in
    ///   memory.
    mutating func body(of hex: Hex, in rowRange: OutboxRowRange?, _ row: SQLStatement, from column: Int32) -> ArraySlice<UInt8>? {
        let bodies = self.bodies ?? row.bytes(column + 6)
        self.bodies = bodies
        let range = hex.entry.body
        guard range.upperBound <= bodies.count else { return nil }
        let isMost = rowRange.map { 2 * bytes(of: $0) >= bodies.count } ?? false
        return isMost ? bodies[range] : ArraySlice(Array(bodies[range]))
    }

    /// Returns the total bytes of the bodies of a row range of the current pack.
    private func bytes(of rowRange: OutboxRowRange) -> Int {
        guard let pack else { return 0 }
        let (first, last) = (pack.position(of: rowRange.ids.lowerBound), pack.position(of: rowRange.ids.upperBound))
        return hexes.bodies(of: first..<(last + 1)).count
    }
}
