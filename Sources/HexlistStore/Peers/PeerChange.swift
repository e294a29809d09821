public import HexlistModel

extension HexStore {
    /// Changes the alias and settings of a peer and updates its contact information, in one transaction. No two peers have the same alias
    /// (compared as `NormalizedName`). If `receive` of a trusted peer is set to `.inbox`, its held hexes move into the inbox, as when a peer
    /// becomes trusted.
    ///
    /// - Parameter now: milliseconds since 1970.
    /// - Throws: `.badRequest` if another peer has the alias; then nothing is changed.
    public func change(_ change: PeerChange, of contact: PeerContact, at now: Int64) async throws {
        try await write { writer in
            try writer.upsertPeer(contact, creating: true)
            if case .set(let alias) = change.alias { try writer.setAlias(contact.peer, alias) }
            try writer.setPolicy(contact.peer, receive: change.receive, notify: change.notify, at: now)
            if let limit = change.fetchLimit { try writer.setFetchLimit(contact.peer, limit) }
            if let target = change.fetchTo { try writer.setFetchTarget(contact.peer, target) }
            if let links = change.openLinks { try writer.setOpenLinks(contact.peer, links) }
            if let pin = change.pin { try writer.setPIN(contact.peer, pin.isEmpty ? nil : pin) }
            if let routes = change.routes { try writer.setRoutes(contact.peer, routes) }
        }
    }

    /// Deletes the PIN of a device, because the device refused it.
    /// - Parameter pin: the refused PIN. A PIN that the user has set since stays.
    public func forgetPIN(_ pin: String, of peer: PeerID, completion: @escaping @Sendable (Result<Void, any Error>) -> Void) {
        submit({ writer in if try writer.pin(of: peer) == pin { try writer.setPIN(peer, nil) } }, completion: completion)
    }
}

extension StoreReader {
    /// The PIN that a device requires of senders; `nil` if the user has set none.
    public func pin(of peer: PeerID) throws -> String? {
        try first("SELECT pin FROM peer WHERE uuid = ?", peer.uuid) { $0.optionalText(0) } ?? nil
    }
}

extension StoreWriter {
    func setPolicy(_ peer: PeerID, receive: PeerReceiveSetting?, notify: Bool?, at now: Int64) throws {
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

    func setOpenLinks(_ peer: PeerID, _ links: Int) throws {
        try change {
            try run("UPDATE peer SET openLinks = ? WHERE id = ?", links, try peerRow(making: peer).id)
            changed(.peers)
        }
    }

    func setPIN(_ peer: PeerID, _ pin: String?) throws {
        try change { try run("UPDATE peer SET pin = ? WHERE id = ?", pin, try peerRow(making: peer).id) }
    }

    func setRoutes(_ peer: PeerID, _ routes: RouteSelection) throws {
        try change {
            let row = try peerRow(making: peer)
            let text: String? = routes == .any ? nil : routes.text
            try run("UPDATE peer SET routes = ? WHERE id = ?", text, row.id)
            changed(.peers)
        }
    }

    /// Sets the limit of automatic fetching. Files of hexes that arrived before automatic fetching was enabled are not fetched.
    /// - Parameter limit: maximum bytes of automatically fetched files, for each hex and for each day; 0 disables automatic fetching.
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

    func setFetchTarget(_ peer: PeerID, _ target: AutomaticFetchDestination) throws {
        try change {
            let row = try peerRow(making: peer)
            let stored: String? = target == .cache ? nil : target.rawValue
            try run("UPDATE peer SET fetchTo = ? WHERE id = ?", stored, row.id)
            changed(.peers)
        }
    }

    /// Returns the ids of a peer's held hexes, in order of arrival.
    /// - Parameter unproven: whether to include hexes whose sender was not proved, because they arrived over plain TCP. The user has to
    ///   accept such hexes individually.
    func heldIDs(of row: Int64, unproven: Bool = false) throws -> [Int64] {
        try all(
            "SELECT id FROM hex WHERE peer = ? AND inboxNumber IS NULL AND location = 'held' AND (isProven = 1 OR ?) ORDER BY id", row,
            unproven
        ) { $0.int64(0) }
    }
}
