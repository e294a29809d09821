internal import GRDB
public import HexlistModel

extension StoreReader {
    /// Returns all recorded peers, trusted ones first, then ordered by alias or name. Runs three queries.
    public func peers() throws -> [PeerRecord] {
        try records("SELECT \(PeerRecord.columns) FROM peer ORDER BY trust <> 'trusted', coalesce(alias, name), uuid")
    }

    /// Returns the record of a peer; `nil` if there is none.
    public func peer(_ peer: PeerID) throws -> PeerRecord? {
        try records("SELECT \(PeerRecord.columns) FROM peer WHERE uuid = ?", peer.uuid).first
    }

    private func records(_ sql: String, _ values: any SQLValue...) throws -> [PeerRecord] {
        let statement = try SQLStatement(sql, on: db)
        try statement.bind(values)
        var records: [(row: Int64, record: PeerRecord)] = []
        do {
            defer { statement.reset() }
            while try statement.step() {
                if let record = PeerRecord(statement) { records.append((statement.int64(0), record)) }
            }
        }
        var endpoints: [Int64: [PeerEndpoint]] = [:]
        let found = try all(
            """
            SELECT peer, host, port, interface, via, lastOKAt FROM endpoint
            WHERE peer IN (SELECT value FROM json_each(?)) ORDER BY lived DESC, host, port
            """, jsonArray(records.map(\.row))
        ) { row in
            let interface = row.text(3)
            let endpoint = PeerEndpoint(
                host: row.text(1), port: row.int(2), interface: interface.isEmpty ? nil : interface, via: row.text(4),
                lastOKAt: row.int64(5))
            return (row.int64(0), endpoint)
        }
        for (row, endpoint) in found { endpoints[row, default: []].append(endpoint) }
        let groups = try groupNames(of: records.map(\.row))
        return records.map { row, record in
            var record = record
            record.endpoints = endpoints[row] ?? []
            record.groups = groups[row] ?? []
            return record
        }
    }
}

extension HexStore {
    /// Updates the record of a peer after a contact, in one transaction. Inserts no record if there is none, and does not change a record
    /// with another kind or key.
    ///
    /// - Parameter completion: called on the writer's thread with the record of the peer; `nil` if there is none.
    public func record(_ contact: PeerContact, completion: @escaping @Sendable (Result<PeerRecord?, any Error>) -> Void) {
        submit(
            { writer in
                try writer.upsertPeer(contact)
                return try writer.peer(contact.peer)
            }, completion: completion)
    }

    /// Sets the trust of a peer and updates its contact information, in one transaction. If the peer becomes trusted and has no alias, it
    /// gets one made from its name (`PeerAlias.made`). If it becomes trusted and `receive` is `.inbox`, its held hexes move into the inbox
    /// in order of arrival, each with a new inbox number and a `hex.received` event. Blocking a peer deletes its held hexes without
    /// tombstones. An existing alias is never removed.
    ///
    /// - Parameters:
    ///   - contact: information about the peer, including the key to trust.
    ///   - name: the name of the peer that was shown to the user for this decision, even if it was empty; `nil` for the name in `contact`.
    /// - Throws: `.badRequest` if the peer's key is unknown, or differs from the recorded one.
    public func setTrust(_ trust: Trust, of contact: PeerContact, name: String?, at now: Int64) async throws {
        try await write { writer in
            try writer.upsertPeer(contact, creating: true)
            guard try writer.peerRow(contact.peer)?.kind == contact.kind else { throw StoreWriter.anotherKey(contact.peer) }
            _ = try writer.setTrust(
                contact.peer, trust, fingerprint: contact.fingerprint, name: name ?? contact.name, at: now)
        }
    }

    /// Stores the card of a trusted key, unless the stored one has the same or a greater serial.
    ///
    /// - Parameter completion: called on the writer's thread with whether the card was stored.
    public func setCard(_ card: PeerCard, of key: Fingerprint, completion: @escaping @Sendable (Result<Bool, any Error>) -> Void) {
        submit({ try $0.setCard(card, of: key) }, completion: completion)
    }

    /// Deletes the record of a peer with its trust, alias, groups, settings and endpoints. If hexes, tombstones or outbox rows refer to the
    /// peer, its UUID, key and name stay.
    public func forgetPeer(_ peer: PeerID) async throws { _ = try await write { try $0.forgetPeer(peer) } }
}

extension StoreWriter {
    /// Updates the record of a peer after a contact. If the record has another kind or another key, it is not changed.
    ///
    /// - Parameter creating: whether to insert a record if there is none.
    /// - Returns: whether the peer has a record now.
    @discardableResult
    func upsertPeer(_ contact: PeerContact, creating: Bool = false) throws -> Bool {
        guard try peerRow(contact.peer) != nil || creating else { return false }
        try change {
            let row = try peerRow(making: contact.peer, kind: contact.kind, fingerprint: contact.fingerprint, name: contact.name)
            guard row.kind == contact.kind else { return }
            if let known = row.fingerprint, let seen = contact.fingerprint, known != seen.bytes { return }
            if row.fingerprint == nil, contact.fingerprint != nil { changed(.peers) }
            try run(
                """
                UPDATE peer SET fingerprint = coalesce(fingerprint, ?), name = ?, version = coalesce(?, version),
                    boot = coalesce(?, boot), lastSeenAt = ? WHERE id = ?
                """, contact.fingerprint?.bytes, contact.name, contact.version, contact.boot?.description, contact.seenAt,
                row.id)
            for endpoint in contact.endpoints { try remember(endpoint, of: row.id) }
        }
        return true
    }

    /// Sets the trust of a peer, as `HexStore.setTrust` describes.
    /// - Parameters:
    ///   - fingerprint: the key to trust; `nil` for the recorded key.
    ///   - name: the name of the peer that was shown to the user for this decision, even if it was empty; `nil` for the recorded name.
    /// - Throws: `.badRequest` if the peer's key is unknown, or differs from the recorded one.
    func setTrust(
        _ peer: PeerID, _ trust: Trust, fingerprint: Fingerprint? = nil, name: String? = nil, at now: Int64
    ) throws -> TrustChange {
        var aliases: AliasOwners?
        return try setTrust(peer, trust, fingerprint: fingerprint, name: name, at: now, &aliases)
    }

    /// - Parameter aliases: all aliases, shared by several calls; `nil` until the first call that needs them, which reads them.
    func setTrust(
        _ peer: PeerID, _ trust: Trust, fingerprint: Fingerprint?, name: String?, at now: Int64, _ aliases: inout AliasOwners?
    ) throws -> TrustChange {
        if let fingerprint, fingerprint.peerID != peer { throw Self.anotherKey(peer) }
        let known = try peerRow(peer)
        if let known = known?.fingerprint, let fingerprint, known != fingerprint.bytes { throw Self.anotherKey(peer) }
        guard trust != .trusted || fingerprint != nil || known?.fingerprint != nil else {
            throw HexlistError(
                .badRequest, "The key of peer \(peer) is unknown, so it cannot be trusted.",
                hint: "Trust it once it was seen on the network, or give its fingerprint.")
        }
        return try change {
            let row = try peerRow(making: peer, fingerprint: fingerprint, name: name ?? "")
            try run(
                """
                UPDATE peer SET trust = ?1, fingerprint = coalesce(fingerprint, ?2), card = CASE WHEN ?1 = 'trusted' THEN card END
                WHERE id = ?3
                """, trust.rawValue, fingerprint?.bytes, row.id)
            if trust != .trusted { try removeOwnMachine(peer) }
            changed(.peers)
            let held = try heldIDs(of: row.id, unproven: trust == .blocked)
            switch trust {
            case .trusted:
                if row.alias == nil { try giveAlias(of: name ?? row.name, to: peer, row.id, &aliases) }
                return TrustChange(moved: row.receive == .inbox ? try takeIn(held, at: now) : [], deleted: 0)
            case .blocked:
                return TrustChange(moved: [], deleted: try remove(held, remembers: false))
            case .stranger:
                return TrustChange(moved: [], deleted: 0)
            }
        }
    }

    /// Stores the card of a trusted key, unless the stored one has the same or a greater serial.
    /// - Returns: whether the card was stored.
    func setCard(_ card: PeerCard, of key: Fingerprint) throws -> Bool {
        try change {
            let count = try run(
                """
                UPDATE peer SET card = ?1, cardSerial = ?2
                WHERE uuid = ?3 AND fingerprint = ?4 AND trust = 'trusted' AND (card IS NULL OR cardSerial < ?2)
                """, card.bytes, Int64(card.serial), key.peerID.uuid, key.bytes)
            if count > 0 { changed(.peers) }
            return count > 0
        }
    }

    /// Deletes the record of a peer, as `HexStore.forgetPeer` describes.
    /// - Returns: whether the whole row was deleted. If `false`, the peer's UUID, key and name stay.
    @discardableResult
    func forgetPeer(_ peer: PeerID) throws -> Bool {
        guard let row = try peerRow(peer) else { return true }
        return try change {
            try run(
                """
                UPDATE peer SET trust = 'stranger', alias = NULL, receive = 'inbox', notify = 1, fetchLimit = NULL, fetchTo = NULL, openLinks = 0,
                    pin = NULL, version = NULL, boot = NULL, lastSeenAt = NULL, card = NULL, routes = NULL WHERE id = ?
                """, row.id)
            try run("DELETE FROM groupMember WHERE peer = ?", row.id)
            try run("DELETE FROM endpoint WHERE peer = ?", row.id)
            try removeOwnMachine(peer)
            try removeFromSharedLists(peer)
            changed(.peers)
            return try dropPeers("AND id = ?", row.id) == 1
        }
    }

    // MARK: - Inside `change`

    /// Deletes the rows of strangers without alias, groups and settings to which no hex, tombstone or outbox row refers.
    /// - Returns: the number of deleted rows.
    func dropPeers(_ condition: String = "", _ values: any SQLValue...) throws -> Int {
        let statement = try SQLStatement(
            """
            DELETE FROM peer WHERE trust = 'stranger' AND alias IS NULL AND receive = 'inbox' AND notify = 1 AND fetchLimit IS NULL
                AND openLinks = 0 AND routes IS NULL AND hexes = 0 AND queued = 0
                \(condition) AND NOT EXISTS (SELECT 1 FROM groupMember WHERE groupMember.peer = peer.id)
                AND NOT EXISTS (SELECT 1 FROM hex WHERE hex.peer = peer.id)
                AND NOT EXISTS (SELECT 1 FROM outbox WHERE outbox.peer = peer.id)
                AND NOT EXISTS (SELECT 1 FROM tombstone WHERE tombstone.peer = peer.id)
            """, on: db)
        try statement.bind(values)
        try statement.run()
        if statement.changes > 0 { changed(.peers) }
        return statement.changes
    }

    func remember(_ endpoint: PeerEndpoint, of row: Int64) throws {
        try run(
            """
            INSERT INTO endpoint (peer, host, port, interface, via, lastOKAt, lived) VALUES (?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT DO UPDATE SET via = excluded.via, lastOKAt = excluded.lastOKAt, lived = excluded.lived
            """, row, endpoint.host, endpoint.port, endpoint.interface ?? "", endpoint.via, endpoint.lastOKAt,
            endpoint.lastOKAt == 0 ? 0 : lived)
        try run(
            """
            DELETE FROM endpoint WHERE peer = ? AND (host, port, interface) IN
                (SELECT host, port, interface FROM endpoint WHERE peer = ? ORDER BY lived DESC, host, port LIMIT -1 OFFSET ?)
            """, row, row, PeerRecord.endpointLimit)
    }

    fileprivate static func anotherKey(_ peer: PeerID) -> HexlistError {
        HexlistError(
            .badRequest, "That fingerprint is not the key of peer \(peer).",
            hint: "Compare the fingerprint on the other machine: hexlist id.")
    }
}

extension PeerRecord {
    fileprivate static let columns = """
        id, uuid, fingerprint, name, alias, trust, version, boot, lastSeenAt, hexes, unread, held, heldBytes, queued, receive, notify,
        fetchLimit, fetchDay, fetchDayBytes, fetchTo, kind, openLinks, card, cardSerial, routes,
        trust = 'trusted' AND EXISTS (SELECT 1 FROM ownMachine WHERE ownMachine.peer = peer.uuid)
        """

    /// Reads a row of the table `peer`; `nil` if it has no valid UUID, as in a damaged file.
    fileprivate init?(_ row: SQLStatement) {
        guard let uuid = row.uuid(1) else { return nil }
        peer = PeerID(uuid)
        kind = PeerKind(number: row.int64(20)) ?? .hexlist
        fingerprint = row.withBytes(2) { Fingerprint(bytes: $0) }
        name = row.text(3)
        alias = row.optionalText(4)
        trust = Trust(rawValue: row.text(5)) ?? .stranger
        version = row.optionalText(6)
        boot = row.optionalText(7).flatMap { BootNonce($0) }
        lastSeenAt = row.optionalInt64(8)
        hexes = row.int(9)
        unread = row.int(10)
        held = row.int(11)
        heldBytes = row.int(12)
        queued = row.int(13)
        endpoints = []
        receive = PeerReceiveSetting(rawValue: row.text(14)) ?? .inbox
        notify = row.bool(15)
        fetchLimit = row.optionalInt64(16)
        fetchDay = row.int64(17)
        fetchDayBytes = row.int64(18)
        fetchTo = row.optionalText(19).flatMap(AutomaticFetchDestination.init(rawValue:)) ?? .cache
        openLinks = row.int(21)
        if !row.isNull(22) { card = PeerCard(bytes: row.bytes(22), serial: UInt32(clamping: row.int64(23))) }
        routes = row.optionalText(24).flatMap { RouteSelection($0) } ?? .any
        isOwn = row.bool(25)
    }
}
