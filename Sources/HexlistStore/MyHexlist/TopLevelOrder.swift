internal import GRDB
internal import HexlistLists
internal import HexlistModel

/// Migration 31: the top level of My Hexlist is ordered by order key, no longer by id, newest first; and the contents of a deleted hex stay
/// one item of the trash if the hex is restored without them.
///
/// Existing stores keep their order. A node whose key is not in the order of the ids gets a new key and a new version, as a local change
/// would write them: mainly hexes of the former bin, which got keys in another order. The keys are not random, so that two copies of one
/// store, such as a backup, get the same ones.
struct TopLevelOrder {
    private static let schema = """
        ALTER TABLE hex ADD COLUMN orderKey BLOB;   -- node.orderKey of a hex at the top level of My Hexlist; NULL for other hexes
        CREATE INDEX hexOrder ON hex (orderKey, id) WHERE orderKey IS NOT NULL;
        -- Of a deleted node: the node of whose item in the trash it is a part, because both were deleted together with a hex that was
        -- restored without them; NULL if it is an item itself, or deleted together with a hex (goneWith).
        ALTER TABLE node ADD COLUMN trashedWith BLOB;
        CREATE INDEX nodeTrashedWith ON node (trashedWith) WHERE trashedWith IS NOT NULL;
        DROP INDEX nodeTrash;
        CREATE INDEX nodeTrash ON node (trashNumber) WHERE trashNumber IS NOT NULL AND goneWith IS NULL AND trashedWith IS NULL;
        """

    private static let keys = """
        UPDATE hex SET orderKey = (SELECT orderKey FROM node WHERE node.kind = 1 AND node.hex = hex.id)
        WHERE location = 'mine' AND location <> 'inbox'
        """

    /// A node at the top level.
    private struct Entry {
        var node: ListNode.ID
        var key: OrderKey
        var isDeleted: Bool
    }

    private let db: Database
    private var clock: HybridClock
    private let replica: Int64
    private var generator: KeyGenerator

    @Sendable static func apply(_ db: Database) throws {
        try db.execute(sql: schema)
        let list = try SQLStatement("SELECT uuid, clock, replica FROM list WHERE id = 1", on: db)
        if try list.step(), let id = list.nodeID(0) {
            var order = TopLevelOrder(db, list: id, HybridClock(last: list.int64(1)), replica: list.int64(2))
            list.reset()
            try order.correct(id)
        }
        try db.execute(sql: keys)
    }

    private init(_ db: Database, list: ListNode.ID, _ clock: HybridClock, replica: Int64) {
        (self.db, self.clock, self.replica) = (db, clock, replica)
        generator = KeyGenerator(state: list.uuid.low)
    }

    /// Gives new keys to nodes whose key is not in the order of the ids.
    private mutating func correct(_ list: ListNode.ID) throws {
        let before = clock
        let entries = try entries(of: list)
        let shown = entries.indices.filter { !entries[$0].isDeleted }
        let ranks = Dictionary(uniqueKeysWithValues: Set(shown.map { entries[$0].key }).sorted().enumerated().map { ($1, $0) })
        let ascending = shown.map { ranks[entries[$0].key] }.longestAscendingIndices
        let fixed = Set(ascending.map { shown[$0] })
        var ends = [OrderKey?](repeating: nil, count: entries.count)  // the next fixed key after each entry
        for index in entries.indices.dropLast().reversed() {
            ends[index] = fixed.contains(index + 1) ? entries[index + 1].key : ends[index + 1]
        }
        var last: OrderKey?
        for (index, entry) in entries.enumerated() {
            let end = ends[index]
            if fixed.contains(index) {
                last = entry.key
                continue
            }
            if last.map({ $0 < entry.key }) ?? true, end.map({ entry.key < $0 }) ?? true {
                last = entry.key
                continue
            }
            guard let key = OrderKey.between(last, end, isNearHigh: false, using: &generator) else { continue }
            try write(key, to: entry)
            last = key
        }
        if clock != before { try db.execute(sql: "UPDATE list SET clock = ? WHERE id = 1", arguments: [clock.last]) }
    }

    /// Returns the nodes of the top level, also the deleted ones, by descending id of their hexes.
    private func entries(of list: ListNode.ID) throws -> [Entry] {
        let rows = try SQLStatement(
            """
            SELECT uuid, orderKey, state = 1 FROM node WHERE kind = 1 AND hex IS NOT NULL AND orderKey IS NOT NULL
                AND CASE state WHEN 1 THEN parent ELSE container END = ? ORDER BY hex DESC
            """, on: db)
        defer { rows.reset() }
        try rows.bind([list.uuid])
        var entries: [Entry] = []
        while try rows.step() {
            guard let id = rows.nodeID(0) else { continue }
            entries.append(Entry(node: id, key: OrderKey(bytes: rows.bytes(1)), isDeleted: rows.bool(2)))
        }
        return entries
    }

    /// Writes a new key. The title, which may share the version of the place, keeps its version. A deleted node remains deleted, because
    /// its mark gets the version too.
    private mutating func write(_ key: OrderKey, to entry: Entry) throws {
        let update = try SQLStatement(
            """
            UPDATE node SET orderKey = ?2, placeClock = ?3, placeBy = ?4,
                titleClock = CASE WHEN title IS NULL THEN NULL ELSE coalesce(titleClock, placeClock) END,
                titleBy = CASE WHEN title IS NULL THEN NULL WHEN titleClock IS NULL THEN placeBy ELSE titleBy END,
                goneClock = CASE WHEN state = 1 THEN ?3 ELSE goneClock END, goneBy = CASE WHEN state = 1 THEN ?4 ELSE goneBy END
            WHERE uuid = ?1
            """, on: db)
        try update.bind([entry.node.uuid, key.bytes, clock.next(now: 0), replica])
        try update.run()
    }
}

/// Pseudorandom numbers (SplitMix64) for keys that only have to differ.
private struct KeyGenerator: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var number = (state ^ state >> 30) &* 0xBF58_476D_1CE4_E5B9
        number = (number ^ number >> 27) &* 0x94D0_49BB_1331_11EB
        return number ^ number >> 31
    }
}
