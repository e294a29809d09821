public import HexlistModel

extension HexStore {
    /// Changes a peer, in one transaction with what a contact showed of it. An alias names one peer only (`NameKey`). Where a trusted peer's
    /// hexes go into the inbox again, those that are held go there too, as when it becomes trusted.
    ///
    /// - Parameter now: milliseconds since 1970.
    /// - Throws: `.badRequest` if another peer has the alias; then nothing is changed.
    public func change(_ change: PeerChange, of sighting: ContactInfo, at now: Int64) async throws {
        try await write { writer in
            try writer.upsertPeer(sighting, creating: true)
            if case .set(let alias) = change.alias { try writer.setAlias(sighting.peer, alias) }
            try writer.setPolicy(sighting.peer, receive: change.receive, notify: change.notify, at: now)
            if let limit = change.fetchLimit { try writer.setFetchLimit(sighting.peer, limit) }
        }
    }
}

extension StoreWriter {
    func setPolicy(_ peer: PeerID, receive: PeerReceive?, notify: Bool?, at now: Int64) throws {
        guard receive != nil || notify != nil else { return }
        try change {
            let row = try peerRow(making: peer)
            try run(
                "UPDATE peer SET receive = coalesce(?, receive), notify = coalesce(?, notify) WHERE id = ?", receive?.rawValue,
                notify.map { $0 ? Int64(1) : 0 }, row.id)
            changed(.peers)
            guard receive == .inbox, row.trust == .trusted else { return }
            if try !takeIn(heldIDs(of: row.id), at: now).isEmpty { changed(.room) }
        }
    }

    /// - Parameter limit: bytes; 0: nothing is fetched by itself. What is in the inbox already stays as it is.
    func setFetchLimit(_ peer: PeerID, _ limit: Int64) throws {
        try change {
            let row = try peerRow(making: peer)
            try run(
                """
                UPDATE peer SET fetchLimit = nullif(?1, 0), fetchAfter = CASE WHEN fetchLimit IS NULL THEN ?2 ELSE fetchAfter END
                WHERE id = ?3
                """, limit, tally.nextInbox &- 1, row.id)
            changed(.peers)
        }
    }

    /// The held hexes of a peer, in order of arrival.
    /// - Parameter unproven: also those that came without proof (plain TCP) and may be from another key; they can only be accepted by
    ///   themselves.
    func heldIDs(of row: Int64, unproven: Bool = false) throws -> [Int64] {
        try all(
            "SELECT id FROM hex WHERE peer = ? AND inboxNumber IS NULL AND location = 'held' AND (isProven = 1 OR ?) ORDER BY id", row,
            unproven
        ) { $0.int64(0) }
    }
}
