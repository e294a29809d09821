public import HexlistModel

extension HexStore {
    /// Changes a peer and updates its contact information, in one transaction. An alias is unique (`NameKey`). If the hexes of a trusted
    /// peer go to the inbox again, its held hexes move there too, as when it becomes trusted.
    ///
    /// - Parameter now: milliseconds since 1970.
    /// - Throws: `.badRequest` if another peer has the alias; then nothing is changed.
    public func change(_ change: PeerChange, of contact: ContactInfo, at now: Int64) async throws {
        try await write { writer in
            try writer.upsertPeer(contact, creating: true)
            if case .set(let alias) = change.alias { try writer.setAlias(contact.peer, alias) }
            try writer.setPolicy(contact.peer, receive: change.receive, notify: change.notify, at: now)
            if let limit = change.fetchLimit { try writer.setFetchLimit(contact.peer, limit) }
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

    /// - Parameter limit: maximum bytes of automatically fetched files; 0 disables automatic fetching. Applies to hexes that arrive later.
    func setFetchLimit(_ peer: PeerID, _ limit: Int64) throws {
        try change {
            let row = try peerRow(making: peer)
            try run(
                """
                UPDATE peer SET fetchLimit = nullif(?1, 0), fetchAfter = CASE WHEN fetchLimit IS NULL THEN ?2 ELSE fetchAfter END
                WHERE id = ?3
                """, limit, counters.nextInbox &- 1, row.id)
            changed(.peers)
        }
    }

    /// The held hexes of a peer, in order of arrival.
    /// - Parameter unproven: whether to include hexes without proof of the sender (plain TCP), which the user has to accept one by one.
    func heldIDs(of row: Int64, unproven: Bool = false) throws -> [Int64] {
        try all(
            "SELECT id FROM hex WHERE peer = ? AND inboxNumber IS NULL AND location = 'held' AND (isProven = 1 OR ?) ORDER BY id", row,
            unproven
        ) { $0.int64(0) }
    }
}
