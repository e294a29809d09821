internal import HexlistModel

/// Reads the packs that a statement has joined to its runs. A pack is decoded once for all runs of it that follow one another.
struct PackReading {
    private var pack: OutboxPack?
    private var hexes = PackedHexes()
    private var bodies: [UInt8]?

    /// A hex of the outbox with what its pack has of it.
    struct Hex {
        let hexes: PackedHexes
        let position: Int

        var messageID: UUIDBytes { hexes.messageID(at: position) ?? .nil }
        var entry: PackedHexes.Entry { hexes.entries[position] }
        /// The bytes that its pack has of it, without the body.
        var size: Int { hexes.size(at: position) }
    }

    /// The columns that `read` expects.
    static let columns = OutboxPack.columns + ", outboxPack.hexes"

    /// Takes in the pack of the statement's row, whose first columns are those of the run (`OutboxRowRange.columns`).
    /// - Parameter column: the first of `columns`.
    /// - Returns: whether it is whole, and the run one of it.
    mutating func read(_ row: SQLStatement, from column: Int32) -> Bool {
        if let pack, pack.id == row.int64(column) { return pack.holds(row.int64(0), through: row.int64(1)) }
        guard let pack = OutboxPack(row, from: column), let hexes = pack.hexes(row.bytes(column + 5)) else {
            self.pack = nil
            return false
        }
        (self.pack, self.hexes, bodies) = (pack, hexes, nil)
        return pack.holds(row.int64(0), through: row.int64(1))
    }

    /// The hex of a row of the pack that `read` found whole.
    func hex(of row: Int64) -> Hex { Hex(hexes: hexes, position: pack?.position(of: row) ?? 0) }

    /// The body of a hex. All bodies of a pack are read from the statement's row once: from the column behind `columns`.
    /// - Parameter run: the run, if all of its bodies are wanted: of one that is the greater part of its pack they are slices, which keep the bodies of all.
    ///   Others are copied.
    mutating func body(of hex: Hex, in run: OutboxRowRange?, _ row: SQLStatement, from column: Int32) -> ArraySlice<UInt8>? {
        let bodies = self.bodies ?? row.bytes(column + 6)
        self.bodies = bodies
        let range = hex.entry.body
        guard range.upperBound <= bodies.count else { return nil }
        let isMost = run.map { 2 * bytes(of: $0) >= bodies.count } ?? false
        return isMost ? bodies[range] : ArraySlice(Array(bodies[range]))
    }

    /// The bytes of the bodies of a run that `read` found to be one of the pack.
    private func bytes(of run: OutboxRowRange) -> Int {
        guard let pack else { return 0 }
        let (first, last) = (pack.position(of: run.ids.lowerBound), pack.position(of: run.ids.upperBound))
        return hexes.bodies(of: first..<(last + 1)).count
    }
}
