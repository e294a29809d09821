internal import GRDB
internal import HexlistModel

/// A pack of the outbox: hexes that were queued together, once for all their recipients. Each recipient has as many rows as there are hexes, in their order,
/// and the ids of one recipient's rows follow those of another's.
struct OutboxPack {
    var id: Int64
    /// The id of the first hex's row for the first recipient.
    var first: Int64
    /// The number of hexes.
    var count: Int64
    /// The number of recipients.
    var copies: Int64
    /// Whether its hexes are found by their message ids (`outboxKey`).
    var isKeyed: Bool

    /// The ids of all rows that were made with it.
    var rows: ClosedRange<Int64> { first...(first &+ count &* copies &- 1) }

    /// The place of a row's hex in it.
    /// - Parameter row: one of `rows`.
    func position(of row: Int64) -> Int { Int((row &- first) % count) }

    /// The hexes in its blob; `nil` where that is damaged, or has more or fewer than the pack.
    func hexes(_ blob: [UInt8]) -> PackedHexes? {
        guard let hexes = PackedHexes(blob), hexes.entries.count == count else { return nil }
        return hexes
    }

    /// Whether rows are some of it, and of one recipient; in a damaged file they may be neither.
    func holds(_ from: Int64, through last: Int64) -> Bool {
        guard from <= last, rows.contains(from), rows.contains(last) else { return false }
        return last &- from == Int64(position(of: last) - position(of: from))
    }

    /// The most hexes of a pack, and bytes of their bodies; one hex may be longer. So few that the buffers on their way come from the heap, whose pages
    /// are there already, and not each time anew from the kernel.
    /// The number of hexes may grow but never shrink: a longer run is taken for damage (`OutboxRowRange`).
    static let (mostHexes, mostBytes) = (512, 192 << 10)
    /// The most recipients: a hex with a known key is looked for in the rows of all.
    private static let mostCopies: Int64 = 1 << 20
    /// The ids that rows may have: what is added to one of them is no overflow.
    static let ids: ClosedRange<Int64> = 0...(.max / 2)

    static let columns = "outboxPack.id, outboxPack.first, outboxPack.count, outboxPack.copies, outboxPack.isKeyed"

    /// `nil` if a value is invalid, as in a damaged file.
    init?(_ row: SQLStatement, from column: Int32 = 0) {
        self.init(
            id: row.int64(column), first: row.int64(column + 1), count: row.int64(column + 2), copies: row.int64(column + 3),
            isKeyed: row.bool(column + 4))
        guard Self.ids.contains(first), (1...Int64(Self.mostHexes)).contains(count), (1...Self.mostCopies).contains(copies)
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

    /// The rows that hexes of this message have, whichever packs they are in, each with its digest; the newest pack's first.
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

    /// - Parameters:
    ///   - positions: the hexes of the new pack, at least one.
    ///   - bodies: those of all `hexes`.
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
        tally.outboxBytes &+= Int64(range.count)
        guard isKeyed else { return id }
        let key = try SQLStatement("INSERT INTO outboxKey (messageID, pack) VALUES (?, ?)", on: db)
        for position in positions {
            try key.bind([hexes.messageID(at: position), id])
            try key.run()
        }
        return id
    }

    /// Gives the hexes of a run that was refused or failed, and keeps its bodies, a pack of their own, so that they do not hold the bodies of all others.
    /// A run of all hexes holds no others: it stays, so that recipients who all refuse the same have its bodies once.
    func takeOut(_ run: OutboxRowRange) throws {
        let found = try first(
            "SELECT \(OutboxPack.columns), hexes, bodies FROM outboxPack WHERE id = ? AND count > ?", run.pack, run.count
        ) { row -> (pack: OutboxPack, hexes: PackedHexes, bodies: [UInt8])? in
            guard let pack = OutboxPack(row), let hexes = pack.hexes(row.bytes(5)),
                pack.holds(run.ids.lowerBound, through: run.ids.upperBound)
            else { return nil }
            return (pack, hexes, row.bytes(6))
        }
        guard case let (pack, hexes, bodies)? = found ?? nil else { return }
        let (start, end) = (pack.position(of: run.ids.lowerBound), pack.position(of: run.ids.upperBound))
        guard start <= end, hexes.entries[end].body.upperBound <= bodies.count else { return }
        try put(run, into: insertPack(hexes, start..<(end + 1), bodies: bodies, first: run.ids.lowerBound, isKeyed: pack.isKeyed))
    }

    /// Has the rows of a run lie in another pack, and lets go of the earlier one.
    func put(_ run: OutboxRowRange, into pack: Int64) throws {
        try self.run("UPDATE outbox SET pack = ? WHERE id = ?", pack, run.ids.lowerBound)
        try letGo(ofPack: run.pack)
    }

    /// Drops the bodies of a pack once no row needs them, and the pack once it has no rows.
    func letGo(ofPack id: Int64) throws {
        guard let pack = try outboxPack(id) else { return }
        func has(rows: String) throws -> Bool {
            try first(
                "SELECT 1 FROM outbox \(rows) AND id BETWEEN ? AND ? AND pack = ? LIMIT 1", pack.rows.lowerBound, pack.rows.upperBound, id,
                read: { _ in true }) ?? false
        }
        guard try !has(rows: "INDEXED BY outboxUndelivered WHERE state IN ('queued', 'rejected', 'failed')") else { return }
        tally.outboxBytes &-= try first("SELECT coalesce(length(bodies), 0) FROM outboxPack WHERE id = ?", id) { $0.int64(0) } ?? 0
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
