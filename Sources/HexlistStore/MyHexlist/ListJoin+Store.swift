internal import GRDB
public import HexlistLists
public import HexlistModel

/// The effect of joining two collections.
public struct ListJoinResult: Sendable, Equatable {
    /// The numbers of shown hexes and links, at all levels.
    public var hexes = 0
    public var links = 0
}

extension HexStore {
    /// Replaces My Hexlist by the collection of another machine, all of whose pages were merged, and adds the own nodes to it, in one
    /// transaction. Hexes and links that both have become one. The rows of all hexes keep their ids.
    /// - Parameters:
    ///   - list: the collection.
    ///   - sequence: the number of the last own row. Rows that were added since then would be missing in the caller's backup.
    /// - Throws: `.badRequest` if the collection is not complete or not that of an own machine, or if rows were added.
    public func joinList(_ list: ListNode.ID, with peer: PeerID, ifStillAt sequence: Int64, at now: Int64) async throws -> ListJoinResult {
        try await write { writer in try writer.change { try writer.joinList(list, with: peer, ifStillAt: sequence, at: now) } }
    }
}

extension StoreWriter {
    /// Merges a page of the collection that will replace My Hexlist. Call inside `change`.
    func mergeJoinPage(_ page: ListPage, from peer: PeerID, at now: Int64) throws -> ListPageResult {
        if try first("SELECT 1 FROM joining WHERE list = ? AND peer = ?", page.list.uuid, peer.uuid, read: { _ in true }) == nil {
            try run("DELETE FROM joinNode")
            try run("INSERT OR REPLACE INTO joining (id, list, peer) VALUES (1, ?, ?)", page.list.uuid, peer.uuid)
        }
        let count = try first("SELECT coalesce(max(id), 0) FROM joinNode") { $0.int64(0) } ?? 0
        guard count + Int64(page.nodes.count) <= Self.maximumNodes else {
            throw HexlistError(.storageFull, "The other collection has more than \(Self.maximumNodes) rows.")
        }
        let clock = try first("SELECT clock FROM joining") { $0.int64(0) } ?? 0
        var transaction = ListTransaction(
            storage: try SQLListStorage(list: page.list, in: .joinNode, on: self, at: now), replica: page.replica,
            clock: HybridClock(last: clock),
            digest: nil, now: now)
        for node in page.nodes { try transaction.merge(node, isReceived: true) }
        _ = try transaction.deriveTree()
        try run(
            "UPDATE joining SET replica = ?, seq = ?, clock = ?, isComplete = ?", replicaRow(of: page.replica), page.through,
            transaction.clock.last, page.isLast)
        return ListPageResult(added: page.nodes.count)
    }

    fileprivate func joinList(
        _ list: ListNode.ID, with peer: PeerID, ifStillAt sequence: Int64, at now: Int64
    ) throws -> ListJoinResult {
        let own = try ListRecord(on: self)
        let isReady = try first("SELECT isComplete FROM joining WHERE list = ? AND peer = ?", list.uuid, peer.uuid) { $0.bool(0) }
        guard try isOwnMachine(peer), isReady ?? false, let cursor = try joinCursor(of: list, from: peer), list != own.id else {
            throw HexlistError(.badRequest, "The collection of the other machine was not received completely.")
        }
        guard own.sequence == sequence else { throw HexlistError(.badRequest, "My Hexlist has changed in the meantime.") }
        let clock = try first("SELECT clock FROM joining") { $0.int64(0) } ?? 0
        var transaction = ListTransaction(
            storage: try SQLListStorage(list: list, in: .joinNode, on: self, at: now), replica: own.replica,
            clock: HybridClock(last: max(clock, own.clock)), digest: nil, now: now)
        let before = try mineSize()
        let counterparts = try transaction.join(try SQLListStorage(list: own.id, on: self)).counterparts
        let derived = try transaction.deriveTree()
        try keepRows(of: counterparts)

        // The rows of the joined collection, with new numbers.
        try keepIDs()
        try run("DELETE FROM node")
        try run("INSERT INTO node (id, \(Self.nodeColumns)) SELECT id, \(Self.nodeColumns) FROM joinNode ORDER BY id")
        try run("UPDATE node SET seq = id, via = NULL")
        try run("DELETE FROM joinNode")
        try run("DELETE FROM joining")
        try run("UPDATE list SET uuid = ?, clock = ? WHERE id = 1", list.uuid, transaction.clock.last)
        try run("DELETE FROM listCursor WHERE list = 1")
        try numberRows()
        try run(
            "INSERT INTO listCursor (list, peer, replica, seq, at) VALUES (1, ?, ?, ?, ?)", peer.uuid, replicaRow(of: cursor.replica),
            cursor.sequence, now)

        var storage = try SQLListStorage(list: list, on: self, at: now)
        storage.source = try replicaRow(of: cursor.replica)
        let hexes = try storage.hexes().map(\.node.id).filter { $0 != list }
        try project(.init(hexes: derived.hexes.union(hexes), contents: derived.contents.union(hexes)), storage)
        let size = try mineSize()
        var draft = MyHexlistChangeDraft(storage)
        (draft.hexes.added, draft.links.added) = (max(0, size.hexes - before.hexes), max(0, size.links - before.links))
        if !draft.isEmpty { try log(draft, .joined, from: peer, number: own.changes + 1, at: now) }
        return size
    }

    private func mineSize() throws -> ListJoinResult {
        try first(
            "SELECT count(*), coalesce(sum(hexesInside), 0), coalesce(sum(linkCount + linksInside), 0) FROM hex WHERE location = 'mine'"
        ) { ListJoinResult(hexes: $0.int(0) + $0.int(1), links: $0.int(2)) } ?? ListJoinResult()
    }

    /// Gives the nodes of the joined collection that are also own ones their ids, which are the numbers in the trash, and the times of
    /// their deletion. The other ids are greater.
    private func keepIDs() throws {
        let greatest = try first("SELECT max((SELECT coalesce(max(id), 0) FROM node), (SELECT coalesce(max(id), 0) FROM joinNode))") {
            $0.int64(0)
        }
        try run("UPDATE joinNode SET id = id + ?", greatest ?? 0)
        try run(
            """
            UPDATE joinNode SET id = own.id, deletedAt = iif(own.state <> 0 AND joinNode.state <> 0, own.deletedAt, joinNode.deletedAt),
                lived = iif(own.state <> 0 AND joinNode.state <> 0, own.lived, joinNode.lived)
            FROM node AS own WHERE own.uuid = joinNode.uuid
            """)
    }

    private static let nodeColumns = """
        uuid, kind, url, service, parent, orderKey, previousParent, placeClock, placeBy, title, titleClock, titleBy, registers,
        goneClock, goneBy, goneWith, deletedAt, lived, container, state, leaves, hex
        """

    /// Gives the nodes of the joined collection the rows of the own hexes that they stand for. Rows of hexes that are shown no more are
    /// deleted by the projection.
    /// - Parameter counterparts: the node of the joined collection by own node, if it has another id.
    private func keepRows(of counterparts: [ListNode.ID: ListNode.ID]) throws {
        let rows = try all("SELECT uuid, hex FROM node WHERE kind = 1 AND hex IS NOT NULL") { (id: $0.nodeID(0), hex: $0.int64(1)) }
        for row in rows {
            guard let id = row.id else { continue }
            try run("UPDATE joinNode SET hex = ? WHERE uuid = ? AND hex IS NULL", row.hex, (counterparts[id] ?? id).uuid)
        }
    }
}
