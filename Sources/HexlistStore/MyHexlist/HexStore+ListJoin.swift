internal import GRDB
internal import HexlistJSON
public import HexlistLists
public import HexlistModel

/// The numbers of shown hexes and links of My Hexlist, at all levels.
public struct ListSize: Sendable, Equatable {
    public var hexes = 0
    public var links = 0
}

extension HexStore {
    /// Replaces My Hexlist by the collection of another machine, all of whose pages were merged, and adds the own nodes to it, in one
    /// transaction. Hexes and links that both have become one. The rows of all hexes keep their ids.
    /// - Parameters:
    ///   - list: the collection.
    ///   - sequence: the number of the last own row. Rows that were added since then would be missing in the caller's backup.
    ///   - backup: the path of the caller's backup, for the event `list.joined`; `nil` if My Hexlist was empty.
    ///   - diskReserve: bytes of the file system to leave free.
    /// - Returns: the size afterwards.
    /// - Throws: `ListFault`: `outdated` if the collection is not complete or not that of an own machine, or if rows were added.
    public func joinList(
        _ list: ListNode.ID, with peer: PeerID, ifStillAt sequence: Int64, backup: String? = nil, at now: Int64, diskReserve: Int64
    ) async throws -> ListSize {
        try await write { writer in
            try writer.change {
                try writer.checkSpaceForJoining(reserve: diskReserve)
                let result = try writer.joinList(list, with: peer, ifStillAt: sequence, at: now)
                try writer.addRejected(at: now)
                try writer.recordJoin(with: peer, backup: backup, at: now)
                return result
            }
        }
    }
}

extension StoreReader {
    public func mineSize() throws -> ListSize {
        try first(
            "SELECT count(*), coalesce(sum(hexesInside), 0), coalesce(sum(linkCount + linksInside), 0) FROM hex WHERE location = 'mine'"
        ) { ListSize(hexes: $0.int(0) + $0.int(1), links: $0.int(2)) } ?? ListSize()
    }

    /// Returns the id of the list of My Hexlist.
    public func mineList() throws -> ListNode.ID { try ListRecord(on: self).id }
}

extension StoreWriter {
    /// Merges a page of the collection that will replace My Hexlist. Call inside `change`.
    func mergeJoinPage(_ page: ListPage, from peer: PeerID, at now: Int64) throws -> ListPageResult {
        if try first("SELECT 1 FROM joining WHERE list = ? AND peer = ?", page.list.uuid, peer.uuid, read: { _ in true }) == nil {
            try run("DELETE FROM joinNode")
            try run("INSERT OR REPLACE INTO joining (id, list, peer) VALUES (1, ?, ?)", page.list.uuid, peer.uuid)
        }
        let count = try first("SELECT coalesce(max(id), 0) FROM joinNode") { $0.int64(0) } ?? 0
        guard count + Int64(page.nodes.count) <= Self.maximumNodes else { throw ListFault.full }
        let clock = try first("SELECT clock FROM joining") { $0.int64(0) } ?? 0
        var transaction = ListTransaction(
            storage: try SQLListStorage(joining: page.list, on: self, at: now), replica: page.replica,
            clock: HybridClock(last: clock), digest: nil, now: now)
        for node in page.nodes { try transaction.merge(node, isReceived: true) }
        _ = try transaction.deriveTree()
        try run(
            "UPDATE joining SET replica = ?, seq = ?, clock = ?, isComplete = ?", replicaRow(of: page.replica), page.through,
            transaction.clock.last, page.isLast)
        try checkReplicas()
        return ListPageResult()
    }

    fileprivate func joinList(
        _ list: ListNode.ID, with peer: PeerID, ifStillAt sequence: Int64, at now: Int64
    ) throws -> ListSize {
        let own = try ListRecord(on: self)
        let isReady = try first("SELECT isComplete FROM joining WHERE list = ? AND peer = ?", list.uuid, peer.uuid) { $0.bool(0) }
        guard try isOwnMachine(peer), isReady ?? false, let cursor = try joinCursor(of: list, from: peer), list != own.id,
            own.sequence == sequence
        else { throw ListFault.outdated }
        let clock = try first("SELECT clock FROM joining") { $0.int64(0) } ?? 0
        var transaction = ListTransaction(
            storage: try SQLListStorage(joining: list, on: self, at: now), replica: own.replica,
            clock: HybridClock(last: max(clock, own.clock)), digest: nil, now: now)
        let before = try mineSize()
        let counterparts = try transaction.join(try SQLListStorage(own, on: self)).counterparts
        let derived = try transaction.deriveTree()
        guard try first("SELECT count(*) FROM joinNode", read: { $0.int64(0) }) ?? 0 <= Self.maximumNodes else { throw ListFault.full }
        try keepRows(of: counterparts)
        try renameRecords(counterparts)
        try renameLinksToOffers(counterparts)
        let deletions = try keepTrash(after: own.deletions, at: now)

        try run("DELETE FROM node WHERE list = ?", ListRecord.mine)
        try run("INSERT INTO node (\(Self.nodeColumns)) SELECT \(Self.nodeColumns) FROM joinNode ORDER BY id")
        try run("DELETE FROM joinNode")
        try run("DELETE FROM joining")
        try run("UPDATE list SET uuid = ?, clock = ?, deletions = ? WHERE id = 1", list.uuid, transaction.clock.last, deletions)
        try run("UPDATE listCursor SET replica = NULL, seq = 0 WHERE list = 1")
        try numberRows()
        try run(
            """
            INSERT INTO listCursor (list, peer, replica, seq, at, isFirstExchangeOver) VALUES (1, ?, ?, ?, ?, 1)
            ON CONFLICT DO UPDATE SET (replica, seq, at, isFirstExchangeOver) = (excluded.replica, excluded.seq, excluded.at, 1)
            """, peer.uuid, replicaRow(of: cursor.replica), cursor.sequence, now)

        var storage = try SQLListStorage(ListRecord(on: self), on: self, at: now)
        storage.source = try replicaRow(of: cursor.replica)
        let hexes = try storage.hexes().map(\.node.id).filter { $0 != list }
        var changes = ListTreeChanges(allOf: hexes)
        changes.formUnion(derived)
        try project(changes, storage)
        let size = try mineSize()
        var draft = MyHexlistChangeDraft(storage)
        (draft.hexes.added, draft.links.added) = (max(0, size.hexes - before.hexes), max(0, size.links - before.links))
        try updateSharedLists(at: now)
        try removeCopiedFromTrash()
        if !draft.isEmpty { try log(draft, .joined, from: peer, in: ListRecord.mine, (own.deletions + 1, deletions), at: now) }
        return size
    }

    /// Call inside `change`.
    func recordJoin(with peer: PeerID, backup: String?, at now: Int64) throws {
        try record(.listJoined, at: now, peer: peer, data: backup.map { JSONText.object([("backup", $0)]) })
    }

    fileprivate func checkSpaceForJoining(reserve: Int64) throws {
        let texts = "coalesce(length(CAST(title AS BLOB)), 0) + length(CAST(url AS BLOB)) + coalesce(length(registers), 0)"
        var (rows, bytes) = (0, 0)
        for table in ["node", "joinNode"] {
            let size = try first("SELECT count(*), coalesce(sum(\(texts)), 0) FROM \(table) WHERE list = 1") {
                (rows: $0.int(0), bytes: $0.int(1))
            }
            rows += size?.rows ?? 0
            bytes += size?.bytes ?? 0
        }
        try checkSpace(rows: rows, bytes: bytes, reserve: reserve)
    }

    /// Gives the deleted nodes of the joined collection the numbers and times that they have in the trash of this machine. Own nodes that
    /// the other machine has deleted get new ones. Nodes that became one with others have only a deletion mark, and are not in the trash.
    /// - Returns: the last number in the trash.
    private func keepTrash(after last: Int64, at now: Int64) throws -> Int64 {
        // Nodes of the other collection were not shown here. Their links have the times that they need to be removed.
        try run(
            """
            UPDATE joinNode SET trashNumber = NULL, trashedWith = NULL, deletedAt = iif(kind = 2 AND title IS NOT NULL AND state = 1, ?1, NULL),
                lived = iif(kind = 2 AND title IS NOT NULL AND state = 1, ?2, NULL)
            """, now, lived)
        try run(
            """
            UPDATE joinNode SET deletedAt = own.deletedAt, lived = own.lived, trashNumber = own.trashNumber,
                trashedWith = own.trashedWith
            FROM node AS own WHERE own.uuid = joinNode.uuid AND own.list = 1 AND own.state <> 0 AND joinNode.state <> 0
            """)
        // The other machine may show the node that stands for an item.
        try run(
            """
            UPDATE joinNode SET trashedWith = NULL WHERE trashedWith IS NOT NULL AND NOT EXISTS
                (SELECT 1 FROM joinNode AS item WHERE item.uuid = joinNode.trashedWith AND item.trashNumber IS NOT NULL AND item.goneWith IS NULL)
            """)
        let deleted = try all(
            """
            SELECT own.uuid FROM node AS own JOIN joinNode ON joinNode.uuid = own.uuid
            WHERE own.list = 1 AND own.state = 0 AND joinNode.state <> 0 AND joinNode.placeClock IS NOT NULL
            ORDER BY own.id
            """
        ) { $0.nodeID(0) }.compactMap(\.self)
        for (index, node) in deleted.enumerated() {
            try run(
                "UPDATE joinNode SET deletedAt = ?, lived = ?, trashNumber = ? WHERE uuid = ?", now, lived, last + 1 + Int64(index),
                node.uuid)
        }
        return last + Int64(deleted.count)
    }

    private static let nodeColumns = """
        uuid, kind, url, service, parent, orderKey, previousParent, placeClock, placeBy, title, titleClock, titleBy, registers,
        goneClock, goneBy, goneWith, deletedAt, lived, trashNumber, trashedWith, container, state, leaves, hex
        """

    /// Gives the nodes of the joined collection the rows of the own hexes that they stand for. A node that stands for a shown hex and for
    /// deleted ones gets the row of the shown one. Rows of hexes that are shown no more are deleted by the projection.
    /// - Parameter counterparts: the node of the joined collection by own node, if it has another id.
    private func keepRows(of counterparts: [ListNode.ID: ListNode.ID]) throws {
        let rows = try all("SELECT uuid, hex FROM node WHERE list = 1 AND hex IS NOT NULL ORDER BY state = 1") {
            (id: $0.nodeID(0), hex: $0.int64(1))
        }
        for row in rows {
            guard let id = row.id else { continue }
            try run("UPDATE joinNode SET hex = ? WHERE uuid = ? AND hex IS NULL", row.hex, (counterparts[id] ?? id).uuid)
        }
    }
}
