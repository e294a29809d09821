internal import Foundation
internal import GRDB
internal import HexlistLists
internal import HexlistModel

/// Migration 30: the tables of lists, and the nodes of the existing hexes of My Hexlist.
///
/// The versions and positions of the nodes are made from the times at which the hexes were added, so that the collections of two machines
/// merge by date.
struct MyHexlistConversion {
    private static let schema = """
        -- Numbers of copies of lists (`ReplicaNumber`). Versions refer to these rows.
        CREATE TABLE replica (id INTEGER PRIMARY KEY, number INTEGER NOT NULL UNIQUE) STRICT;
        -- The list of My Hexlist.
        CREATE TABLE list (
            id INTEGER PRIMARY KEY,
            uuid BLOB NOT NULL UNIQUE CHECK (length(uuid) = 16),
            replica INTEGER NOT NULL REFERENCES replica (id),   -- writes local changes
            clock INTEGER NOT NULL,                 -- the last time of its hybrid clock
            changes INTEGER NOT NULL DEFAULT 0,     -- the last number in mineChange
            changeBytes INTEGER NOT NULL DEFAULT 0, -- sum of mineChange.bytes
            deletions INTEGER NOT NULL DEFAULT 0    -- the last node.trashNumber
        ) STRICT;
        -- The hexes and links of My Hexlist, also deleted ones (`ListNode`, `ListRow`). `hex` and `link` have copies of those that are shown.
        CREATE TABLE node (
            id INTEGER PRIMARY KEY,
            uuid BLOB NOT NULL CHECK (length(uuid) = 16),
            kind INTEGER NOT NULL,                  -- 1: hex, 2: link
            url TEXT NOT NULL, service TEXT NOT NULL,
            parent BLOB, orderKey BLOB, previousParent BLOB,    -- previousParent NULL: parent
            placeClock INTEGER, placeBy INTEGER,    -- version: a time of the hybrid clock, and replica.id
            title TEXT, titleClock INTEGER, titleBy INTEGER,    -- titleClock NULL: the version of the place
            registers BLOB,                         -- NodeRegisters
            goneClock INTEGER, goneBy INTEGER, goneWith BLOB,   -- the deletion mark
            deletedAt INTEGER,                      -- when it was deleted here; also of a deleted hex that is shown
            lived INTEGER,                          -- deletedAt by StoreOpenTimeClock
            trashNumber INTEGER,                    -- TrashedItem.number, in the order of deletion; NULL if it is not in the trash
            -- The bytes that count for the bound of the trash: the texts, and 200 for the row and its indexes.
            trashBytes INTEGER GENERATED ALWAYS AS
                (200 + coalesce(length(CAST(title AS BLOB)), 0) + length(CAST(url AS BLOB)) + coalesce(length(registers), 0)) VIRTUAL,
            container BLOB,                         -- the hex in which it is shown
            state INTEGER NOT NULL,                 -- ListRow.State: 0 present, 1 deleted, 2 retained
            leaves INTEGER NOT NULL,                -- of a hex: number of shown links
            hex INTEGER                             -- of a hex: hex.id; stays when the hex is deleted
        ) STRICT;
        CREATE UNIQUE INDEX nodeUUID ON node (uuid);
        CREATE INDEX nodeContents ON node (container, orderKey) WHERE state <> 1;
        CREATE INDEX nodeHexes ON node (hex) WHERE kind = 1;
        CREATE INDEX nodeWaiting ON node (parent) WHERE container IS NULL;
        CREATE INDEX nodeGoneWith ON node (goneWith) WHERE goneWith IS NOT NULL;
        CREATE INDEX nodeTrash ON node (trashNumber) WHERE trashNumber IS NOT NULL AND goneWith IS NULL;
        CREATE INDEX nodeTrashBytes ON node (trashNumber, trashBytes) WHERE trashNumber IS NOT NULL;
        -- The change log (MyHexlistChange).
        CREATE TABLE mineChange (
            number INTEGER PRIMARY KEY,             -- from list.changes
            at INTEGER NOT NULL,
            lived INTEGER NOT NULL,                 -- at
            kind INTEGER NOT NULL,                  -- MyHexlistChange.Kind
            undoneBy INTEGER,                       -- the number of the change that undid it completely
            firstDeletion INTEGER NOT NULL,         -- the first number in the trash of what it deleted
            lastDeletion INTEGER NOT NULL,          -- the last one; smaller than firstDeletion if it deleted nothing
            hexesAdded INTEGER NOT NULL, hexesDeleted INTEGER NOT NULL, hexesRestored INTEGER NOT NULL, hexesMoved INTEGER NOT NULL,
            hexesChanged INTEGER NOT NULL,          -- at all levels
            linksAdded INTEGER NOT NULL, linksDeleted INTEGER NOT NULL, linksRestored INTEGER NOT NULL, linksMoved INTEGER NOT NULL,
            linksChanged INTEGER NOT NULL,
            hex INTEGER,                            -- hex.id of the first hex that it changed; may be deleted
            subject TEXT NOT NULL,                  -- of that hex
            others INTEGER NOT NULL,                -- number of further hexes that it changed
            bytes INTEGER NOT NULL,                 -- size of this row, as the bound of the log counts it
            nodes BLOB                              -- ChangeRecords; NULL if they are too large
        ) STRICT;
        """

    private let db: Database
    private let insertion: SQLStatement
    private let links: SQLStatement
    private let inner: SQLStatement
    private let deletion: SQLStatement
    private var ids = ListNode.IDSequence()
    private var generator = SystemRandomNumberGenerator()
    private var clock = HybridClock()
    private var deletions: Int64 = 0

    /// The row of the only replica.
    private static let replica: Int64 = 1

    @Sendable static func apply(_ db: Database) throws {
        try db.execute(sql: schema)
        var conversion = try MyHexlistConversion(on: db)
        try conversion.run()
    }

    private init(on db: Database) throws {
        self.db = db
        insertion = try SQLStatement(
            """
            INSERT INTO node (uuid, kind, url, service, parent, orderKey, placeClock, placeBy, title, registers, container, state, leaves, hex)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, \(Self.replica), ?8, ?9, ?5, 0, ?10, ?11)
            """, on: db)
        links = try SQLStatement(
            "SELECT url, service, description, extra FROM link WHERE id BETWEEN ?1 << 13 AND (?1 << 13) + 8191 ORDER BY id", on: db)
        deletion = try SQLStatement(
            """
            UPDATE node SET state = 1, leaves = 0, goneClock = placeClock, goneBy = placeBy, goneWith = ?2, deletedAt = ?3, lived = ?4,
                trashNumber = ?5
            WHERE uuid = ?1
            """, on: db)
        inner = try SQLStatement("\(Self.hexes) WHERE parent = ? ORDER BY position, id", on: db)
    }

    private static let hexes = """
        SELECT id, description, color, senderUUID, senderName, extra, receivedAt,
            (SELECT count(*) FROM link WHERE link.id BETWEEN hex.id << 13 AND (hex.id << 13) + 8191) FROM hex
        """

    private mutating func run() throws {
        let now = Int64(Date().timeIntervalSince1970 * 1_000)
        let list = ListNode.ID(kind: .hex, time: now, using: &generator)
        let tops = try SQLStatement("\(Self.hexes) WHERE location = 'mine' AND location <> 'inbox' ORDER BY id", on: db)
        defer { tops.reset() }
        // The top level is ordered by id, newest first.
        var lowest: OrderKey?
        while try tops.step() {
            let hex = Hex(tops)
            let number = OrderKey.newestFirst(time: hex.addedAt)
            let key =
                lowest.flatMap { OrderKey.before($0, number: number, using: &generator) }
                ?? OrderKey.first(number: number, using: &generator)
            lowest = key
            try add(hex, in: list, at: key)
        }
        let number = Int64(bitPattern: UInt64.random(in: .min ... .max, using: &generator))
        try db.execute(sql: "INSERT INTO replica (id, number) VALUES (\(Self.replica), ?)", arguments: [number])
        try addBin(to: list)
        try db.execute(
            sql: "INSERT INTO list (id, uuid, replica, clock, deletions) VALUES (1, ?, \(Self.replica), ?, ?)",
            arguments: [Data(list.uuid.bytes), clock.last, deletions])
    }

    /// Adds deleted nodes for the hexes of the table `bin`, and removes the table.
    private mutating func addBin(to list: ListNode.ID) throws {
        let rows = try SQLStatement("SELECT hex, parent, deletedAt, lived, content FROM bin ORDER BY number", on: db)
        let container = try SQLStatement("SELECT uuid FROM node WHERE hex = ? AND kind = 1", on: db)
        while try rows.step() {
            // A damaged row could not be restored by earlier versions either.
            guard let tree = try? BinnedTree(jsonBytes: rows.bytes(4)), tree.isOrdered else { continue }
            var parent = list
            if let hex = rows.optionalInt64(1) {
                try container.bind([hex])
                if try container.step(), let id = container.nodeID(0) { parent = id }
                container.reset()
            }
            try add(tree, in: parent, row: rows.int64(0), deletedAt: rows.int64(2), lived: rows.int64(3))
        }
        try db.execute(sql: "DROP TABLE bin")
    }

    /// Adds the deleted nodes of a hex with everything inside. Inner hexes get new rows if they are restored.
    private mutating func add(_ tree: BinnedTree, in parent: ListNode.ID, row: Int64, deletedAt: Int64, lived: Int64) throws {
        let time = HybridClock.time(milliseconds: deletedAt)
        clock.observe(time)
        let base = OrderKey.first(number: deletedAt, using: &generator)
        var hexes: [ListNode.ID] = []  // the top hex, then its inner hexes
        var keys: [ArraySlice<OrderKey>] = []  // the free positions in each
        for (index, hex) in ([tree.top] + tree.children).enumerated() {
            let outer = index == 0 ? nil : (hex.parent ?? -1) + 1
            let id = ids.next(.hex, time: deletedAt, using: &generator)
            let inside = tree.children.count { ($0.parent ?? -1) + 1 == index }
            let key = outer.flatMap { keys[$0].popFirst() } ?? base
            hexes.append(id)
            keys.append((base.run(count: max(1, hex.links.count + inside)) ?? [])[...])
            let registers = NodeRegisters.values(
                color: Array(hex.color.utf8), sender: Array(hex.senderUUID.utf8), senderName: Array(hex.senderName.utf8),
                extra: Array(hex.extra.utf8))
            try insert(
                id, 1, [], [], in: outer.map { hexes[$0] } ?? parent, at: key, time, Array(hex.description.utf8), registers, leaves: 0,
                row: index == 0 ? row : nil)
            try markDeleted(id, with: outer.map { hexes[$0] }, deletedAt, lived)
            for link in hex.links {
                let node = ids.next(.link, time: deletedAt, using: &generator)
                try insert(
                    node, 2, Array(link.url.utf8), Array(link.service.utf8), in: id, at: keys[index].popFirst() ?? base, time,
                    Array(link.description.utf8), NodeRegisters.values(ofExtra: Array(link.extra.utf8)), leaves: 0, row: nil)
                try markDeleted(node, with: id, deletedAt, lived)
            }
        }
    }

    private mutating func markDeleted(_ id: ListNode.ID, with hex: ListNode.ID?, _ deletedAt: Int64, _ lived: Int64) throws {
        deletions += 1
        try deletion.bind([id.uuid, hex?.uuid, deletedAt, lived, deletions])
        try deletion.run()
    }

    private struct Hex {
        var id: Int64
        var title: [UInt8]
        var registers: [UTF8Text: UTF8Text]
        var addedAt: Int64
        var links: Int

        init(_ row: SQLStatement) {
            id = row.int64(0)
            title = row.bytes(1)
            registers = NodeRegisters.values(
                color: row.bytes(2), sender: row.bytes(3), senderName: row.bytes(4), extra: row.bytes(5))
            addedAt = row.int64(6)
            links = row.int(7)
        }
    }

    /// Inserts the nodes of a hex with everything inside.
    private mutating func add(_ hex: Hex, in list: ListNode.ID, at key: OrderKey) throws {
        var open = [(hex: hex, container: list, key: key)]
        while let (hex, container, key) = open.popLast() {
            let time = HybridClock.time(milliseconds: hex.addedAt)
            clock.observe(time)
            let id = ids.next(.hex, time: hex.addedAt, using: &generator)
            try insert(id, 1, [], [], in: container, at: key, time, hex.title, hex.registers, leaves: hex.links, row: hex.id)
            try inner.bind([hex.id])
            var children: [Hex] = []
            while try inner.step() { children.append(Hex(inner)) }
            let base = OrderKey.first(number: hex.addedAt, using: &generator)
            let keys = base.run(count: max(1, hex.links + children.count)) ?? []
            for (child, key) in zip(children, keys.dropFirst(hex.links)) { open.append((child, id, key)) }
            try links.bind([hex.id])
            defer { links.reset() }
            var rest = keys[...]
            while try links.step(), let key = rest.popFirst() {
                let extra = links.size(of: 3...3) == 0 ? [:] : NodeRegisters.values(ofExtra: links.bytes(3))
                try insert(
                    ids.next(.link, time: hex.addedAt, using: &generator), 2, links.bytes(0), links.bytes(1), in: id, at: key, time,
                    links.bytes(2), extra, leaves: 0, row: nil)
            }
        }
    }

    private func insert(
        _ id: ListNode.ID, _ kind: Int, _ url: [UInt8], _ service: [UInt8], in container: ListNode.ID, at key: OrderKey, _ time: Int64,
        _ title: [UInt8], _ registers: [UTF8Text: UTF8Text], leaves: Int, row: Int64?
    ) throws {
        let registers = NodeRegisters.encode(registers.lazy.map { (name: $0, clock: time, replica: Self.replica, value: $1) })
        try insertion.bind([
            id.uuid, kind, UTF8Text(utf8: url), UTF8Text(utf8: service), container.uuid, key.bytes, time, UTF8Text(utf8: title), registers,
            leaves, row,
        ])
        try insertion.run()
    }
}
