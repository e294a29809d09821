internal import GRDB
internal import HexlistModel

/// A pack: hexes that were enqueued together, stored once for all recipients. Each recipient has one outbox row for each hex, in the order
/// of the hexes. The ids of a recipient's rows are consecutive and follow those of the previous recipient.
///
/// Required by a bound (Docs/Decisions/0027-optimisations-pay-rent.md): a bulk send to 50 peers must store the bodies only once.
struct OutboxPack {
    var id: Int64
    /// The id of the first hex's row for the first recipient.
    var first: Int64
    /// The number of hexes.
    var count: Int64
    /// The number of recipients.
    var copies: Int64
    /// Whether the hexes were sent with keys, so that the table `outboxKey` has their message ids.
    var isKeyed: Bool

    /// The ids of all rows that were inserted with the pack, whether or not they still exist.
    var rows: ClosedRange<Int64> { first...(first &+ count &* copies &- 1) }

    /// Returns the position of a row's hex in the pack.
    /// - Parameter row: an id in `rows`.
    func position(of row: Int64) -> Int { Int((row &- first) % count) }

    /// Decodes the pack's blob of hexes; `nil` if the blob is damaged or does not have `count` hexes.
    func hexes(_ blob: [UInt8]) -> PackedHexes? {
        guard let hexes = PackedHexes(blob), hexes.entries.count == count else { return nil }
        return hexes
    }

    /// Whether the rows from `from` through `last` all belong to this pack and to one recipient. False only in a damaged file.
    func contains(_ from: Int64, through last: Int64) -> Bool {
        guard from <= last, rows.contains(from), rows.contains(last) else { return false }
        return last &- from == Int64(position(of: last) - position(of: from))
    }

    /// Maximum number of hexes in a pack. A later version may increase it but never reduce it, because a row range that is longer counts as
    /// damaged (`OutboxRowRange`).
    static let maxHexes = 512
    /// Maximum bytes of bodies in a pack of several hexes. The body of a single hex may be longer. Small enough that malloc takes the
    /// buffers from its heap instead of mapping new pages for each buffer.
    static let maxBytes = 192 << 10
    /// Maximum number of recipients. Bounds the cost of a lookup by key, which visits the rows of all recipients.
    private static let maxCopies: Int64 = 1 << 20
    /// The range of valid row ids: half of the range of Int64, so that additions to an id cannot overflow.
    static let ids: ClosedRange<Int64> = 0...(.max / 2)

    static let columns = "outboxPack.id, outboxPack.first, outboxPack.count, outboxPack.copies, outboxPack.isKeyed"

    /// Reads a pack from the columns `columns`; `nil` if a value is invalid, as in a damaged file.
    init?(_ row: SQLStatement, from column: Int32 = 0) {
        self.init(
            id: row.int64(column), first: row.int64(column + 1), count: row.int64(column + 2), copies: row.int64(column + 3),
            isKeyed: row.bool(column + 4))
        guard Self.ids.contains(first), (1...Int64(Self.maxHexes)).contains(count), (1...Self.maxCopies).contains(copies)
        else { return nil }
    }

    init(id: Int64, first: Int64, count: Int64, copies: Int64, isKeyed: Bool) {
        self.id = id
        self.first = first
        self.count = count
        self.copies = copies
        self.isKeyed = isKeyed
    }
}

extension StoreReader {
    fileprivate func outboxPack(_ id: Int64) throws -> OutboxPack? {
        try first("SELECT \(OutboxPack.columns) FROM outboxPack WHERE id = ?", id) { OutboxPack($0) } ?? nil
    }

    /// Returns the row ids of each keyed hex with this message id, for all its recipients, and the digest of the hex; newest pack first.
    func outboxRows(keyed messageID: UUIDBytes) throws -> [(ids: [Int64], digest: [UInt8])] {
        try all(
            """
            SELECT \(OutboxPack.columns), outboxPack.hexes FROM outboxKey JOIN outboxPack ON outboxPack.id = outboxKey.pack
            WHERE outboxKey.messageID = ? ORDER BY outboxKey.pack DESC
            """, messageID
        ) { row -> (ids: [Int64], digest: [UInt8])? in
            guard let pack = OutboxPack(row), let hexes = pack.hexes(row.bytes(5)), let position = hexes.position(of: messageID)
            else { return nil }
            return ((0..<pack.copies).map { pack.first + $0 * pack.count + Int64(position) }, Array(hexes.digest(at: position)))
        }.compactMap(\.self)
    }
}

extension StoreWriter {
    // MARK: - Inside `change`

    /// Inserts a pack.
    /// - Parameters:
    ///   - positions: positions in `hexes` of the hexes of the new pack, at least one.
    ///   - bodies: the concatenated bodies of all `hexes`.
    /// - Returns: the id of the new pack.
    func insertPack(
        _ hexes: PackedHexes, _ positions: Range<Int>, bodies: [UInt8], first: Int64, copies: Int64 = 1, isKeyed: Bool
    ) throws -> Int64 {
        let range = hexes.bodies(of: positions)
        let insert = try SQLStatement(
            "INSERT INTO outboxPack (first, count, copies, isKeyed, hexes, bodies) VALUES (?, ?, ?, ?, ?, ?)", on: db)
        try insert.bind([first, positions.count, copies, isKeyed, hexes.bytes(of: positions)])
        try bodies[range].withUnsafeBytes { bodies in
            try insert.check(SQLStatement.bindBlob(bodies, to: insert.handle, at: 6, nil))
            try insert.run()
        }
        let id = db.lastInsertedRowID
        counters.outboxBytes &+= Int64(range.count)
        guard isKeyed else { return id }
        let key = try SQLStatement("INSERT INTO outboxKey (messageID, pack) VALUES (?, ?)", on: db)
        for position in positions {
            try key.bind([hexes.messageID(at: position), id])
            try key.run()
        }
        return id
    }

    /// Moves the hexes of a rejected or failed range into a new pack: their bodies are kept for a retry, and a pack keeps either all its
    /// bodies or none. A range that has all hexes of its pack is not moved, so that several recipients that refuse the hexes share the
    /// bodies.
    func moveToOwnPack(_ rowRange: OutboxRowRange) throws {
        let found = try first(
            "SELECT \(OutboxPack.columns), hexes, bodies FROM outboxPack WHERE id = ? AND count > ?", rowRange.pack, rowRange.count
        ) { row -> (pack: OutboxPack, hexes: PackedHexes, bodies: [UInt8])? in
            guard let pack = OutboxPack(row), let hexes = pack.hexes(row.bytes(5)),
                pack.contains(rowRange.ids.lowerBound, through: rowRange.ids.upperBound)
            else { return nil }
            return (pack, hexes, row.bytes(6))
        }
        guard case let (pack, hexes, bodies)? = found ?? nil else { return }
        let (start, end) = (pack.position(of: rowRange.ids.lowerBound), pack.position(of: rowRange.ids.upperBound))
        guard start <= end, hexes.entries[end].body.upperBound <= bodies.count else { return }
        try move(
            rowRange, toPack: insertPack(hexes, start..<(end + 1), bodies: bodies, first: rowRange.ids.lowerBound, isKeyed: pack.isKeyed))
    }

    /// Assigns a row range to another pack and cleans up its previous pack.
    func move(_ rowRange: OutboxRowRange, toPack pack: Int64) throws {
        try self.run("UPDATE outbox SET pack = ? WHERE id = ?", pack, rowRange.ids.lowerBound)
        try cleanUp(pack: rowRange.pack)
    }

    /// Deletes the bodies of a pack if no row needs them, and the whole pack if no row belongs to it.
    func cleanUp(pack id: Int64) throws {
        guard let pack = try outboxPack(id) else { return }
        func has(rows: String) throws -> Bool {
            try first(
                "SELECT 1 FROM outbox \(rows) AND id BETWEEN ? AND ? AND pack = ? LIMIT 1", pack.rows.lowerBound, pack.rows.upperBound, id,
                read: { _ in true }) ?? false
        }
        guard try !has(rows: "INDEXED BY outboxUndelivered WHERE state IN ('queued', 'rejected', 'failed')") else { return }
        counters.outboxBytes &-= try first("SELECT coalesce(length(bodies), 0) FROM outboxPack WHERE id = ?", id) { $0.int64(0) } ?? 0
        guard try !has(rows: "NOT INDEXED WHERE true") else {
            try run("UPDATE outboxPack SET bodies = NULL WHERE id = ? AND bodies IS NOT NULL", id)
            return
        }
        if pack.isKeyed { try forgetKeys(of: id) }
        try run("DELETE FROM outboxPack WHERE id = ?", id)
    }

    private func forgetKeys(of pack: Int64) throws {
        guard let hexes = try first("SELECT hexes FROM outboxPack WHERE id = ?", pack, read: { PackedHexes($0.bytes(0)) }) ?? nil else {
            return
        }
        for position in hexes.entries.indices {
            try run("DELETE FROM outboxKey WHERE messageID = ? AND pack = ?", hexes.messageID(at: position), pack)
        }
    }
}
