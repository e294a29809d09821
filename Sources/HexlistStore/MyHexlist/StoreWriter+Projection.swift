internal import GRDB
internal import HexlistLists
internal import HexlistModel

// The rows of `hex` and `link` in My Hexlist are a projection of the table `node`: all queries read them, and `project` brings them up to
// date after each change of nodes. Ids of hexes stay the same. The root of a shared list is a hex at the top level.
extension StoreWriter {
    /// A hex of the list whose row in the table `hex` may have to change.
    private struct ChangedHex {
        var node: ListNode.ID
        var container: ListNode.ID?
        var orderKey: [UInt8]
        var isDeleted: Bool
        /// The id of its row.
        var row: Int64
        /// The hex in which the row is.
        var parent: Int64?
    }

    /// Updates the rows of the hexes that a transaction changed. Call inside `change`. No effect for a shared list that is not shown.
    func project(_ tree: ListTreeChanges, _ storage: SQLListStorage) throws {
        if storage.listRow != ListRecord.mine, try shownRoot(of: storage) == nil {
            return try showSharedList(storage)
        }
        let hexes = tree.hexes.union(tree.contents.keys)
        let added = try addRows(of: hexes, storage)
        let changed = try hexes.compactMap { try changedHex($0, storage) }
        let gone = changed.filter(\.isDeleted).map(\.row)
        let shown = changed.filter { !$0.isDeleted }
        try move(shown, storage, removing: gone)
        for hex in shown {
            try show(hex, storage, added.contains(hex.node) ? .all : tree.contents[hex.node])
        }
    }

    /// Updates the rows of all hexes of a shared list, because rows of hexes that are shown were added or removed without a change of nodes.
    func projectAll(_ storage: SQLListStorage) throws {
        var storage = storage
        storage.source = storage.source ?? SQLListStorage.severalReplicas  // more links than a local change may add are shown
        try project(ListTreeChanges(allOf: try storage.hexes().map(\.node.id) + [storage.list]), storage)
    }

    /// - Returns: `nil` if the hex has no row: it is deleted, or the root of My Hexlist.
    private func changedHex(_ id: ListNode.ID, _ storage: SQLListStorage) throws -> ChangedHex? {
        guard id.kind == .hex else { return nil }
        return try first(
            """
            SELECT node.container, node.orderKey, node.state = 1, hex.id, hex.parent FROM node JOIN hex ON hex.id = node.hex
            WHERE node.uuid = ? AND node.kind = 1 AND node.list = ?
            """, id.uuid, storage.listRow
        ) { row in
            ChangedHex(
                node: id, container: row.nodeID(0), orderKey: row.bytes(1), isDeleted: row.bool(2), row: row.int64(3),
                parent: row.optionalInt64(4))
        }
    }

    /// Adds empty rows at the top level for hexes that are shown and have none: they came from another machine, or were revived. A revived
    /// hex gets the id that it had. New ones are in the order of their nodes, above the present ones.
    /// - Returns: those hexes.
    private func addRows(of hexes: Set<ListNode.ID>, _ storage: SQLListStorage) throws -> Set<ListNode.ID> {
        var new: [(node: ListNode.ID, key: [UInt8], row: Int64?)] = []
        for id in hexes where id.kind == .hex && id != storage.list {
            guard let row = try storage.row(id), row.state != .deleted else { continue }
            let number = try hex(ofNode: id, in: storage.listRow)
            if let number, try first("SELECT 1 FROM hex WHERE id = ?", number, read: { _ in true }) != nil { continue }
            new.append((id, row.node.place?.key.bytes ?? [], number))
        }
        new.sort { $0.key == $1.key ? $0.node > $1.node : $1.key.lexicographicallyPrecedes($0.key) }
        for (node, _, number) in new {
            let row = number ?? counters.nextHex
            if number == nil {
                counters.nextHex &+= 1
                try run("UPDATE node SET hex = ? WHERE uuid = ? AND list = ?", row, node.uuid, storage.listRow)
            }
            try addRow(row, receivedAt: node.time)
        }
        return Set(new.map(\.node))
    }

    /// Adds an empty row at the top level.
    func addRow(_ row: Int64, receivedAt: Int64) throws {
        _ = try inserter().insert(
            HexContent(), HexInserter.Row(id: row, location: .mine, unread: false, byteCount: 0, receivedAt: receivedAt))
        counters.mine &+= 1
        try reindex([row])
    }

    // MARK: - Places

    /// Moves rows to the places of their nodes, and deletes the rows of deleted nodes.
    private func move(_ hexes: [ChangedHex], _ storage: SQLListStorage, removing gone: [Int64]) throws {
        var (moved, containers): ([(hex: ChangedHex, parent: Int64?)], Set<ListNode.ID>) = ([], [])
        let root = try shownRoot(of: storage)
        let hexes = hexes.filter { $0.node != storage.list }
        for hex in hexes {
            let container = hex.container
            let parent = try container.flatMap { $0 == storage.list ? root : try self.hex(ofNode: $0, in: storage.listRow) }
            if let container, container != storage.list || root != nil { containers.insert(container) }
            if parent != hex.parent { moved.append((hex, parent)) }
        }
        // All are first moved to the top level. So no hex is inside itself meanwhile, and none is deleted with the hex that it leaves.
        for (hex, _) in moved {
            guard let before = hex.parent else { continue }
            let size = try size(of: hex.row)
            try countInside(before, hexes: -size.hexes, links: -size.links)
            try run("UPDATE hex SET location = 'mine', parent = NULL, position = NULL WHERE id = ?", hex.row)
            counters.mine &+= 1
        }
        if !gone.isEmpty { try remove(gone, remembers: false) }
        for (hex, parent) in moved { if let parent { try nest(hex.row, into: parent) } }
        for hex in hexes {
            let key = hex.container == storage.list && root == nil ? hex.orderKey : nil
            try run("UPDATE hex SET orderKey = ?1 WHERE id = ?2 AND orderKey IS NOT ?1", key, hex.row)
        }
        for container in containers { try number(container, in: storage.listRow) }
    }

    /// Returns the row of the hex that shows the root of a shared list; `nil` if it is not shown, and for My Hexlist.
    private func shownRoot(of storage: SQLListStorage) throws -> Int64? {
        guard storage.listRow != ListRecord.mine else { return nil }
        return try first(
            "SELECT hex.id FROM node JOIN hex ON hex.id = node.hex WHERE node.uuid = ? AND node.list = ?", storage.list.uuid,
            storage.listRow
        ) { $0.int64(0) }
    }

    private func size(of hex: Int64) throws -> (hexes: Int64, links: Int64) {
        try first("SELECT hexesInside + 1, linksInside + linkCount FROM hex WHERE id = ?", hex) { ($0.int64(0), $0.int64(1)) } ?? (0, 0)
    }

    /// Moves the row of a hex from the top level to the end of another hex.
    func nest(_ id: Int64, into parent: Int64) throws {
        let size = try size(of: id)
        try run(
            """
            UPDATE hex SET location = 'inside', parent = ?1,
                position = (SELECT coalesce(max(position), -1) + 1 FROM hex WHERE parent = ?1) WHERE id = ?2
            """, parent, id)
        counters.mine &-= 1
        try countInside(parent, hexes: size.hexes, links: size.links)
    }

    /// Writes the positions of the hexes directly inside a hex.
    private func number(_ container: ListNode.ID, in list: Int64) throws {
        let order = try all(
            """
            SELECT hex.id, hex.position FROM node JOIN hex ON hex.id = node.hex
            WHERE node.container = ? AND node.state <> 1 AND node.kind = 1 AND node.list = ? ORDER BY node.orderKey, node.uuid
            """, container.uuid, list
        ) { (id: $0.int64(0), position: $0.int(1)) }
        for (position, hex) in order.enumerated() where hex.position != position {
            try run("UPDATE hex SET position = ? WHERE id = ?", position, hex.id)
        }
    }

    // MARK: - Contents

    /// Writes the values of a hex into its row, and its links.
    /// - Parameter links: the changes of its links; `nil` if there are none.
    private func show(_ hex: ChangedHex, _ storage: SQLListStorage, _ links: LeafChanges?) throws {
        guard let values = try storage.row(hex.node)?.node else { return }
        func register(_ name: UTF8Text) -> UTF8Text { values.registers[name]?.value ?? .empty }
        let texts = [
            values.title?.value ?? .empty, register(NodeRegisters.color), register(NodeRegisters.sender),
            register(NodeRegisters.senderName),
            UTF8Text(utf8: NodeRegisters.extra(of: values.registers.mapValues(\.value))),
        ]
        let present = try first(
            "SELECT description, color, senderUUID, senderName, extra, linkCount, byteCount FROM hex WHERE id = ?", hex.row
        ) { row in (texts: (0..<5).map { UTF8Text(utf8: row.bytes($0)) }, links: row.int(5), bytes: row.int(6)) }
        guard let present, links != nil || texts != present.texts else { return }
        try unindex([hex.row])
        let size = { (texts: [UTF8Text]) in texts.reduce(0) { $0 + $1.count } }
        var (count, bytes) = (present.links, present.bytes - size(present.texts) + size(texts))
        if let links {
            let change = try showLinks(of: hex, links, storage, count: count)
            (count, bytes) = (count + change.links, bytes + change.bytes)
            // Changes of several machines together may exceed the limit.
            guard storage.source != nil || count <= max(present.links, ProtocolLimits.links) else {
                throw HexlistError.tooManyLinks(count)
            }
            try forgetDeadLinks(of: hex.row)
        }
        try run(
            """
            UPDATE hex SET description = ?, color = ?, senderUUID = ?, senderName = ?, extra = ?, linkCount = ?, byteCount = ? WHERE id = ?
            """, texts[0], texts[1], texts[2], texts[3], texts[4], count, bytes, hex.row)
        if count != present.links {
            let parent = try first("SELECT parent FROM hex WHERE id = ?", hex.row) { $0.optionalInt64(0) } ?? nil
            if let parent { try countInside(parent, hexes: 0, links: Int64(count - present.links)) }
        }
        try reindex([hex.row])
    }

    /// Writes the links of a hex that may have changed, except those whose rows are right. Links beyond the ids that are reserved for a hex
    /// are not shown.
    ///
    /// Has one link in memory at a time: a member of a shared list may fill one hex with all texts that the list may have.
    /// - Parameter count: the number of links that are shown.
    /// - Returns: the changes of that number, and of the UTF-8 bytes of the texts of all links.
    private func showLinks(
        of hex: ChangedHex, _ changes: LeafChanges, _ storage: SQLListStorage, count: Int
    ) throws -> (links: Int, bytes: Int) {
        let (first, last) = (hex.row << 13, hex.row << 13 + Int64(HexInserter.maximumLinks) - 1)
        var bytes = 0
        if let values = changes.values {
            let rows = try links(of: hex, in: storage, from: values.lowerBound, through: values.upperBound)
            if !rows.nodes.isEmpty {
                let ids = first + Int64(rows.index)...first + Int64(rows.index + rows.nodes.count - 1)
                bytes -= try linkBytes(ids)
                bytes += try write(rows.nodes, as: ids.lowerBound)
            }
        }
        guard let start = changes.start else { return (0, bytes) }
        let rows = try links(of: hex, in: storage, from: start)
        let id = first + Int64(rows.index)
        guard id <= last else { return (0, bytes) }
        bytes -= try linkBytes(id...last)
        bytes += try write(rows.nodes, as: id)
        try run("DELETE FROM link WHERE id BETWEEN ? AND ?", id + Int64(rows.nodes.count), last)
        return (rows.index + rows.nodes.count - count, bytes)
    }

    /// Returns the rows in `node` of the links that are shown in a hex at some positions, and the index of the first one among all of them.
    private func links(
        of hex: ChangedHex, in storage: SQLListStorage, from start: LeafPosition, through end: LeafPosition? = nil
    ) throws -> (index: Int, nodes: [Int64]) {
        let shown = try "\(storage.isShown(in: hex.node)) AND kind = 2"
        // A link without a place has no key. It can only be in the root.
        let isFirst = start.key.isEmpty
        let noKey = hex.node == storage.list ? "orderKey IS NULL OR " : ""
        let index =
            isFirst
            ? 0
            : try first(
                """
                SELECT count(*) FROM (
                    SELECT 1 FROM node WHERE \(shown) AND (\(noKey)(orderKey, uuid) < (?, coalesce(?, x''))) LIMIT \(HexInserter.maximumLinks))
                """, hex.node.uuid, start.key, start.id?.uuid
            ) { $0.int(0) } ?? 0
        // Only the ids, so that SQLite sorts no texts.
        let nodes = try all(
            """
            SELECT id FROM node WHERE \(shown)\(isFirst ? "" : " AND (orderKey, uuid) >= (?2, coalesce(?3, x''))")
                \(end == nil ? "" : "AND (\(noKey)(orderKey, uuid) <= (?4, ?5))") ORDER BY orderKey, uuid LIMIT ?6
            """, hex.node.uuid, start.key, start.id?.uuid, end?.key, end?.id?.uuid, HexInserter.maximumLinks - index
        ) { $0.int64(0) }
        return (index, nodes)
    }

    private func linkBytes(_ ids: ClosedRange<Int64>) throws -> Int {
        let texts = ["url", "description", "service", "extra"].map { "length(CAST(\($0) AS BLOB))" }.joined(separator: " + ")
        return try first("SELECT coalesce(sum(\(texts)), 0) FROM link WHERE id BETWEEN ? AND ?", ids.lowerBound, ids.upperBound) {
            $0.int(0)
        } ?? 0
    }

    /// Writes links, except those whose rows are right.
    /// - Parameters:
    ///   - nodes: their rows in `node`.
    ///   - id: the id of the first one in `link`.
    /// - Returns: the UTF-8 bytes of their texts.
    private func write(_ nodes: [Int64], as id: Int64) throws -> Int {
        let node = try SQLStatement("SELECT url, coalesce(title, ''), service, registers FROM node WHERE id = ?", on: db)
        let link = try SQLStatement(
            """
            INSERT INTO link (id, url, description, service, extra) VALUES (?, ?, ?, ?, ?)
            ON CONFLICT (id) DO UPDATE
                SET (url, description, service, extra) = (excluded.url, excluded.description, excluded.service, excluded.extra)
                WHERE (url, description, service, extra) <> (excluded.url, excluded.description, excluded.service, excluded.extra)
            """, on: db)
        defer { node.reset() }
        var (id, bytes) = (id, 0)
        for row in nodes {
            try node.bind([row])
            guard try node.step() else { continue }
            let texts = (0..<3).map { UTF8Text(utf8: node.bytes($0)) }
            let extra = UTF8Text(utf8: node.withBytes(3) { NodeRegisters.extra(inColumn: $0) })
            node.reset()
            try link.bind([id] + texts + [extra])
            try link.run()
            id += 1
            bytes += texts.reduce(extra.count) { $0 + $1.count }
        }
        return bytes
    }
}
