internal import GRDB
internal import HexlistModel

/// All aliases in memory, each with its peer. They are read from the store at once, because aliases are compared as `NormalizedName`s, which no
/// index of SQLite can do.
struct AliasOwners {
    private var owners: [NormalizedName: PeerID] = [:]

    func owner(of key: NormalizedName) -> PeerID? { owners[key] }

    /// Whether a peer other than `peer` has this alias.
    func isTaken(_ key: NormalizedName, beside peer: PeerID) -> Bool { owners[key].map { $0 != peer } ?? false }

    mutating func set(_ alias: String?, of peer: PeerID, before: String?) {
        if let key = before.flatMap({ NormalizedName($0) }), owners[key] == peer { owners[key] = nil }
        if let key = alias.flatMap({ NormalizedName($0) }) { owners[key] = peer }
    }
}

extension StoreReader {
    /// Reads the aliases of all peers.
    func aliases() throws -> AliasOwners {
        var book = AliasOwners()
        for (peer, alias) in try all(
            "SELECT uuid, alias FROM peer WHERE alias IS NOT NULL", read: { ($0.uuid(0).map(PeerID.init), $0.text(1)) })
        {
            if let peer { book.set(alias, of: peer, before: nil) }
        }
        return book
    }
}

extension StoreWriter {
    /// Sets the alias of a peer, or removes it if `alias` is `nil`. No two peers have the same alias (compared as `NormalizedName`).
    ///
    /// - Throws: `.badRequest` if another peer has the alias.
    func setAlias(_ peer: PeerID, _ alias: String?) throws {
        if let key = alias.flatMap({ NormalizedName($0) }), let owner = try aliases().owner(of: key), owner != peer {
            let label = try self.peer(owner)?.label.text(.whole) ?? "\(owner)"
            throw HexlistError(
                .badRequest, "\(label) already has this alias.",
                hint: "Choose another one, or first rename that peer: `hexlist peer rename \(owner.shortID) ALIAS`.")
        }
        try change {
            let row = try peerRow(making: peer)
            try setAlias(alias, of: row.id)
        }
    }

    // MARK: - Inside `change`

    func giveAlias(of name: String, to peer: PeerID, _ row: Int64, _ aliases: inout AliasOwners?) throws {
        var book = try aliases ?? self.aliases()
        let alias = PeerAlias.made(of: name, for: peer) { book.isTaken($0, beside: peer) }
        try setAlias(alias, of: row)
        book.set(alias, of: peer, before: nil)
        aliases = book
    }

    func setAlias(_ alias: String?, of row: Int64) throws {
        try run("UPDATE peer SET alias = ? WHERE id = ?", alias, row)
        changed(.peers)
    }
}

extension StoreSchema {
    /// Migration 2: gives an alias to every peer without one that is or was trusted. As in `setTrust`, the alias is made from a name: the
    /// last name that the peer had while it was trusted. Existing aliases that differ only in case are resolved: the older row keeps its
    /// alias, the other gets a new one. The table of former names is deleted.
    static func giveAliases(_ db: Database) throws {
        try db.execute(sql: "DROP INDEX peerAlias")
        let peers = try SQLStatement(
            """
            SELECT id, uuid, alias, coalesce(alias, (SELECT name FROM trustedName WHERE peer = peer.id ORDER BY seenAt DESC, name LIMIT 1), name)
            FROM peer WHERE alias IS NOT NULL OR trust = 'trusted' OR EXISTS (SELECT 1 FROM trustedName WHERE trustedName.peer = peer.id)
            ORDER BY alias IS NULL, trust <> 'trusted', id
            """, on: db)
        var rows: [(id: Int64, peer: PeerID, alias: String?, name: String)] = []
        while try peers.step() {
            guard let uuid = peers.uuid(1) else { continue }  // happens only in a damaged file
            rows.append((peers.int64(0), PeerID(uuid), peers.optionalText(2), peers.text(3)))
        }
        let update = try SQLStatement("UPDATE peer SET alias = ? WHERE id = ?", on: db)
        var book = AliasOwners()
        for row in rows {
            var alias = row.alias
            if alias.flatMap({ NormalizedName($0) }).map({ book.isTaken($0, beside: row.peer) }) ?? true {
                alias = PeerAlias.made(of: row.name, for: row.peer) { book.isTaken($0, beside: row.peer) }
                try update.bind([alias, row.id])
                try update.run()
            }
            book.set(alias, of: row.peer, before: nil)
        }
        // The index only detects aliases that differ in the case of ASCII letters. `NormalizedName` is stricter, so an alias that passed its check
        // never violates the index.
        try db.execute(sql: "CREATE UNIQUE INDEX peerAlias ON peer (alias COLLATE NOCASE) WHERE alias IS NOT NULL")
        try db.execute(sql: "DROP TABLE trustedName")
    }
}
