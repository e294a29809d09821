internal import GRDB
internal import HexlistLists
public import HexlistModel

/// Another machine of the user: a trusted peer with which My Hexlist is exchanged.
public struct OwnMachine: Sendable, Equatable {
    public var peer: PeerID
    /// Milliseconds since 1970.
    public var addedAt: Int64
    /// The time of the last page that was received of it, in milliseconds since 1970; `nil` if there was none.
    public var receivedAt: Int64?
    /// The number of rows that the other machine has not acknowledged. Those that came from there are not counted.
    public var behind: Int
}

extension StoreReader {
    /// Returns the own machines that are trusted, by the time at which they were added.
    public func ownMachines() throws -> [OwnMachine] {
        try all(
            """
            SELECT ownMachine.peer, addedAt, listCursor.at, coalesce(acked, 0), listCursor.replica
            FROM ownMachine CROSS JOIN peer ON peer.uuid = ownMachine.peer
            LEFT JOIN listCursor ON listCursor.list = 1 AND listCursor.peer = ownMachine.peer
            WHERE peer.trust = 'trusted' ORDER BY addedAt, ownMachine.peer
            """
        ) { (peer: $0.uuid(0), addedAt: $0.int64(1), at: $0.optionalInt64(2), acknowledged: $0.int64(3), replica: $0.optionalInt64(4)) }
        .compactMap { row in
            guard let peer = row.peer else { return nil }
            let behind = try rowsBehind(in: ListRecord.mine, after: row.acknowledged, from: row.replica)
            return OwnMachine(peer: PeerID(peer), addedAt: row.addedAt, receivedAt: row.at, behind: behind)
        }
    }

    /// Whether a page of My Hexlist was received from an own machine since it was added.
    public func hasReceivedList(from peer: PeerID) throws -> Bool {
        try first("SELECT 1 FROM listCursor WHERE list = 1 AND peer = ? AND at IS NOT NULL", peer.uuid) { _ in true } ?? false
    }

    /// Whether a peer is trusted and an own machine.
    public func isOwnMachine(_ peer: PeerID) throws -> Bool {
        try first(
            "SELECT 1 FROM ownMachine WHERE peer = ?1 AND EXISTS (SELECT 1 FROM peer WHERE uuid = ?1 AND trust = 'trusted')", peer.uuid
        ) { _ in true } ?? false
    }
}

extension HexStore {
    /// Makes a trusted peer an own machine. With the first one, all rows of My Hexlist are numbered and hashed, which takes about a second
    /// per 100 000 rows.
    /// - Returns: `false` if it was one already.
    /// - Throws: `.badRequest` if the peer is not trusted, or there are `ListLimits.ownMachines`.
    public func addOwnMachine(_ peer: PeerID, at now: Int64) async throws -> Bool {
        try await write { try $0.addOwnMachine(peer, at: now) }
    }

    /// Ends the exchange with a machine. The peer stays trusted, and both machines keep their copies.
    /// - Returns: `false` if it was no own machine.
    public func removeOwnMachine(_ peer: PeerID) async throws -> Bool {
        try await write { writer in try writer.change { try writer.removeOwnMachine(peer) } }
    }
}

extension StoreWriter {
    func addOwnMachine(_ peer: PeerID, at now: Int64) throws -> Bool {
        try change {
            if try isOwnMachine(peer) { return false }
            guard try first("SELECT 1 FROM peer WHERE uuid = ? AND trust = 'trusted'", peer.uuid, read: { _ in true }) ?? false else {
                throw HexlistError(.badRequest, "The peer is not trusted, so it cannot be an own machine.")
            }
            guard try first("SELECT count(*) FROM ownMachine", read: { $0.int(0) }) ?? 0 < ListLimits.ownMachines else {
                throw HexlistError(.badRequest, "There are \(ListLimits.ownMachines) own machines, which is the maximum.")
            }
            try run("INSERT OR REPLACE INTO ownMachine (peer, addedAt) VALUES (?, ?)", peer.uuid, now)
            if try ListRecord(on: self).sequence == nil { try numberRows() }
            try run("UPDATE list SET isReplicated = 1 WHERE id = 1")
            changed(.peers)
            return true
        }
    }

    /// Call inside `change`. Rows are not numbered any more after the removal of the last machine.
    @discardableResult
    func removeOwnMachine(_ peer: PeerID) throws -> Bool {
        guard try run("DELETE FROM ownMachine WHERE peer = ?", peer.uuid) > 0 else { return false }
        try run("DELETE FROM listCursor WHERE peer = ?", peer.uuid)
        try removeJoining(from: peer)
        if try first("SELECT 1 FROM ownMachine LIMIT 1", read: { _ in true }) == nil {
            try run("UPDATE list SET seq = NULL, digest = NULL WHERE id = 1")
        }
        changed(.peers)
        return true
    }

    /// Deletes the received part of the collection that a machine had, if it was going to replace My Hexlist.
    func removeJoining(from peer: PeerID) throws {
        if try run("DELETE FROM joining WHERE peer = ?", peer.uuid) > 0 { try run("DELETE FROM joinNode") }
    }

    /// Numbers all rows, and computes the digest. Draws a new replica number, because earlier numbers may have been used for other rows.
    func numberRows() throws {
        try run("UPDATE node SET seq = id, via = NULL WHERE list = ?", ListRecord.mine)
        try renewReplica(of: ListRecord.mine)
        let record = try ListRecord(on: self)
        var digest = ListDigest()
        var last: Int64 = 0
        try SQLListStorage(record, on: self).changed(after: 0) { node, number, _ in
            digest.toggle(node, in: record.id)
            last = number
            return true
        }
        try run("UPDATE list SET seq = ?, digest = ? WHERE id = 1", last, Int64(bitPattern: digest.value))
        changed(.list)
    }
}
