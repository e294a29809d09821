internal import GRDB
public import HexlistModel

extension HexStore {
    /// Replaces a peer by another one, which is the same machine with a new key. In one transaction, moves the alias, settings, groups,
    /// shares and queued outbox rows with the files that they offer to `new`, and forgets `old`. The change log of My Hexlist then names `new`.
    /// - Returns: the number of moved outbox rows.
    public func takeOver(from old: PeerID, by new: PeerID) async throws -> Int64 { try await write { try $0.takeOver(from: old, by: new) } }
}

extension StoreWriter {
    func takeOver(from old: PeerID, by new: PeerID) throws -> Int64 {
        try change {
            guard let before = try peerRow(old) else { return 0 }
            let after = try peerRow(making: new)
            if let alias = before.alias {
                try setAlias(nil, of: before.id)
                try setAlias(alias, of: after.id)
            }
            try run(
                """
                UPDATE peer SET (receive, notify, fetchLimit, fetchTo, openLinks, routes, fetchAfter) =
                    (SELECT receive, notify, fetchLimit, fetchTo, openLinks, routes, ?3 FROM peer WHERE id = ?1) WHERE id = ?2
                """, before.id, after.id, counters.nextInbox &- 1)
            try run(
                "INSERT OR IGNORE INTO groupMember (peerGroup, peer) SELECT peerGroup, ?2 FROM groupMember WHERE peer = ?1", before.id,
                after.id)
            try run("INSERT OR IGNORE INTO sharePeer (share, peer) SELECT share, ?2 FROM sharePeer WHERE peer = ?1", old.uuid, new.uuid)
            try run("DELETE FROM sharePeer WHERE peer = ?", old.uuid)
            try run("UPDATE mineChange SET author = ?2 WHERE author = ?1", old.uuid, new.uuid)
            try run(
                """
                INSERT OR IGNORE INTO offerPeer (offer, peer) SELECT offerRow.offer, ?2 FROM offerRow JOIN outbox ON outbox.id = offerRow.outbox
                WHERE outbox.peer = ?1 AND outbox.state = 'queued'
                """, before.id, new.uuid)
            let rows =
                try first(
                    "SELECT coalesce(sum(last - id + 1), 0) FROM outbox WHERE peer = ? AND state = 'queued'", before.id
                ) { $0.int64(0) } ?? 0
            try run(
                """
                UPDATE outbox SET peer = ?2, failures = 0, nextAttemptAt = NULL, waitingFor = NULL WHERE peer = ?1 AND state = 'queued'
                """, before.id, after.id)
            count(peer: before.id) { $0.queued &-= rows }
            count(peer: after.id) { $0.queued &+= rows }
            try removeFromSharedLists(old, replacedBy: new)
            try saveCounters()  // `forgetPeer` reads the counters of peers
            try forgetPeer(old)
            return rows
        }
    }
}
