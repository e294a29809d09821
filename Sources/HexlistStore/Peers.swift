internal import GRDB
public import HexlistModel

extension StoreReader {
    /// Every remembered peer, trusted ones first, then by name. Two queries.
    public func peers() throws -> [PeerRecord] {
        try records("SELECT \(PeerRecord.columns) FROM peer ORDER BY trust <> 'trusted', coalesce(alias, name), uuid")
    }

    /// `nil` for a peer the store does not remember.
    public func peer(_ peer: PeerID) throws -> PeerRecord? {
        try records("SELECT \(PeerRecord.columns) FROM peer WHERE uuid = ?", peer.uuid).first
    }

    /// Peers rows of the outbox wait for.
    public func peersWithQueuedRows() throws -> [PeerID] {
        try all("SELECT uuid FROM peer WHERE queued > 0") { $0.uuid(0).map(PeerID.init) }.compactMap(\.self)
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
            WHERE peer IN (SELECT value FROM json_each(?)) ORDER BY lastOKAt DESC, host, port
            """, jsonArray(records.map(\.row))
        ) { row in
            let interface = row.text(3)
            let endpoint = PeerEndpoint(
                host: row.text(1), port: row.int(2), interface: interface.isEmpty ? nil : interface, via: row.text(4),
                lastOKAt: row.int64(5))
            return (row.int64(0), endpoint)
        }
        for (row, endpoint) in found { endpoints[row, default: []].append(endpoint) }
        return records.map { row, record in
            var record = record
            record.endpoints = endpoints[row] ?? []
            return record
        }
    }
}

extension HexStore {
    /// Records what a look at a peer showed, in one transaction, where the store remembers the peer: one of which nothing is trusted,
    /// blocked, named, stored or waiting is not worth a row. One whose key is known to be another is left as it is.
    ///
    /// - Parameter completion: its record as it is then, `nil` for a peer the store does not remember; on the writer's thread.
    public func record(_ sighting: PeerSighting, completion: @escaping @Sendable (Result<PeerRecord?, any Error>) -> Void) {
        submit(
            { writer in
                try writer.upsertPeer(sighting)
                return try writer.peer(sighting.peer)
            }, completion: completion)
    }

    /// Trusts a peer, blocks it, or neither, in one transaction with what a look at it showed.
    ///
    /// Trusting gives a peer that has no alias one of its name (`PeerAlias.made`), and takes its held hexes into the inbox in order of
    /// arrival, with a new inbox number and a `hex.received` each; blocking deletes them and forgets their ids. The alias stays, whatever
    /// the trust becomes.
    ///
    /// - Parameters:
    ///   - sighting: its key is the one that is trusted.
    ///   - name: what a person read when trusting it, which makes the alias; `nil` for the name of the sighting.
    /// - Throws: `.badRequest` where a peer would be trusted whose key is not known or is another one.
    public func setTrust(_ trust: Trust, of sighting: PeerSighting, name: String?, at now: Int64) async throws {
        try await write { writer in
            try writer.upsertPeer(sighting, creating: true)
            _ = try writer.setTrust(
                sighting.peer, trust, fingerprint: sighting.fingerprint, name: name ?? sighting.name, at: now)
        }
    }

    /// Sets the alias of a peer, or takes it away, in one transaction with what a look at it showed. Each names one peer (`NameKey`).
    ///
    /// - Throws: `.badRequest` where another peer has it.
    public func setAlias(_ alias: String?, of sighting: PeerSighting) async throws {
        try await write { writer in
            try writer.upsertPeer(sighting, creating: true)
            try writer.setAlias(sighting.peer, alias)
        }
    }

    /// Forgets trust, alias, addresses and when a peer was seen. Its hexes, and what waits for it, stay with its UUID; its key and name
    /// are kept for them.
    public func forgetPeer(_ peer: PeerID) async throws { _ = try await write { try $0.forgetPeer(peer) } }
}

extension StoreWriter {
    /// Remembers what a look at a peer showed, where the peer is remembered.
    ///
    /// - Parameter creating: make a row where there is none.
    /// - Returns: whether the peer is remembered now.
    @discardableResult
    func upsertPeer(_ sighting: PeerSighting, creating: Bool = false) throws -> Bool {
        guard try peerRow(sighting.peer) != nil || creating else { return false }
        try change {
            let row = try peerRow(making: sighting.peer, fingerprint: sighting.fingerprint, name: sighting.name)
            if let known = row.fingerprint, let seen = sighting.fingerprint, known != seen.bytes { return }
            try run(
                """
                UPDATE peer SET fingerprint = coalesce(fingerprint, ?), name = ?, version = coalesce(?, version),
                    boot = coalesce(?, boot), lastSeenAt = ? WHERE id = ?
                """, sighting.fingerprint?.bytes, sighting.name, sighting.version, sighting.boot?.description, sighting.seenAt,
                row.id)
            for endpoint in sighting.endpoints { try remember(endpoint, of: row.id) }
        }
        return true
    }

    /// - Parameters:
    ///   - fingerprint: the key that is trusted, for a peer whose key the store does not know.
    ///   - name: what a person read when trusting it, also where that was no name; `nil` for the latest one that is known.
    func setTrust(
        _ peer: PeerID, _ trust: Trust, fingerprint: Fingerprint? = nil, name: String? = nil, at now: Int64
    ) throws -> TrustChange {
        var aliases: AliasBook?
        return try setTrust(peer, trust, fingerprint: fingerprint, name: name, at: now, &aliases)
    }

    /// - Parameter aliases: those there are, read where they are needed first.
    func setTrust(
        _ peer: PeerID, _ trust: Trust, fingerprint: Fingerprint?, name: String?, at now: Int64, _ aliases: inout AliasBook?
    ) throws -> TrustChange {
        if let fingerprint, fingerprint.peerID != peer { throw Self.anotherKey(peer) }
        let known = try peerRow(peer)
        if let known = known?.fingerprint, let fingerprint, known != fingerprint.bytes { throw Self.anotherKey(peer) }
        guard trust != .trusted || fingerprint != nil || known?.fingerprint != nil else {
            throw HexlistError(
                .badRequest, "The key of peer \(peer) is not known, so it cannot be trusted.",
                hint: "Trust it once it was seen on the network, or give its fingerprint.")
        }
        return try change {
            let row = try peerRow(making: peer, fingerprint: fingerprint, name: name ?? "")
            try run(
                "UPDATE peer SET trust = ?, fingerprint = coalesce(fingerprint, ?) WHERE id = ?",
                trust.rawValue, fingerprint?.bytes, row.id)
            changed(.peers)
            let held = try all(
                // What came without proof (plain TCP) is not the key's, and is only accepted one by one.
                "SELECT id FROM hex WHERE peer = ? AND inboxNumber IS NULL AND location = 'held' AND (isProven = 1 OR ?) ORDER BY id",
                row.id, trust == .blocked
            ) { $0.int64(0) }
            switch trust {
            case .trusted:
                if row.alias == nil { try giveAlias(of: name ?? row.name, to: peer, row.id, &aliases) }
                return TrustChange(moved: try takeIn(held, at: now), deleted: 0)
            case .blocked:
                return TrustChange(moved: [], deleted: try remove(held, remembering: nil))
            case .stranger:
                return TrustChange(moved: [], deleted: 0)
            }
        }
    }

    /// - Returns: whether nothing of it is left.
    @discardableResult
    func forgetPeer(_ peer: PeerID) throws -> Bool {
        guard let row = try peerRow(peer) else { return true }
        return try change {
            try run(
                "UPDATE peer SET trust = 'stranger', alias = NULL, version = NULL, boot = NULL, lastSeenAt = NULL WHERE id = ?", row.id)
            try run("DELETE FROM endpoint WHERE peer = ?", row.id)
            changed(.peers)
            return try dropPeers("AND id = ?", row.id) == 1
        }
    }

    // MARK: - Inside `change`

    /// Deletes rows of peers that nothing refers to.
    /// - Returns: rows deleted.
    func dropPeers(_ condition: String = "", _ values: any SQLValue...) throws -> Int {
        let statement = try SQLStatement(
            """
            DELETE FROM peer WHERE trust = 'stranger' AND alias IS NULL AND hexes = 0 AND queued = 0 \(condition)
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
            INSERT INTO endpoint (peer, host, port, interface, via, lastOKAt) VALUES (?, ?, ?, ?, ?, ?)
            ON CONFLICT DO UPDATE SET via = excluded.via, lastOKAt = excluded.lastOKAt
            """, row, endpoint.host, endpoint.port, endpoint.interface ?? "", endpoint.via, endpoint.lastOKAt)
        try run(
            """
            DELETE FROM endpoint WHERE peer = ? AND (host, port, interface) IN
                (SELECT host, port, interface FROM endpoint WHERE peer = ? ORDER BY lastOKAt DESC, host, port LIMIT -1 OFFSET ?)
            """, row, row, PeerRecord.endpointLimit)
    }

    private static func anotherKey(_ peer: PeerID) -> HexlistError {
        HexlistError(
            .badRequest, "That fingerprint is not the key of peer \(peer).",
            hint: "Compare the fingerprint on the other machine: hexlist id.")
    }
}

extension PeerRecord {
    fileprivate static let columns =
        "id, uuid, fingerprint, name, alias, trust, version, boot, lastSeenAt, hexes, unread, held, heldBytes, queued"

    /// `nil` where the row has no UUID: a damaged file.
    fileprivate init?(_ row: SQLStatement) {
        guard let uuid = row.uuid(1) else { return nil }
        peer = PeerID(uuid)
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
    }
}
