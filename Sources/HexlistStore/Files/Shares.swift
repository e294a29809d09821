internal import GRDB
public import HexlistModel

/// A share: a folder of this machine that chosen peers may read.
public struct ShareRow: Sendable, Equatable {
    public var id: Int64 = 0
    /// The name of the share, which links contain and peers see.
    public var name: String
    /// The absolute path of the folder. Symbolic links were resolved when the folder was shared.
    public var path: String
    public var showsHidden: Bool
    /// Whether every trusted peer may read the share. If not, only `peers` and members of `groups` may, as long as they are trusted.
    public var isForAll: Bool
    public var peers: [PeerID]
    /// Names of groups, without `@`. Whether a peer is a member is checked at each request.
    public var groups: [String]

    /// Maximum number of shares.
    public static let limit = 200
    /// Maximum number of peers and groups together of one share.
    public static let audienceLimit = 1_000

    public init(name: String, path: String, showsHidden: Bool, isForAll: Bool, peers: [PeerID] = [], groups: [String] = []) {
        self.name = name
        self.path = path
        self.showsHidden = showsHidden
        self.isForAll = isForAll
        self.peers = peers
        self.groups = groups
    }

    fileprivate static let columns = "share.id, share.name, path, showsHidden, forAll"

    fileprivate init(_ row: SQLStatement) {
        self.init(name: row.text(1), path: row.text(2), showsHidden: row.int(3) != 0, isForAll: row.int(4) != 0)
        id = row.int64(0)
    }
}

extension StoreReader {
    /// Returns all shares with their peers and groups, ordered by name.
    public func shares() throws -> [ShareRow] {
        var shares = try all("SELECT \(ShareRow.columns) FROM share ORDER BY name", read: ShareRow.init)
        for index in shares.indices {
            shares[index].peers = try all("SELECT peer FROM sharePeer WHERE share = ? ORDER BY peer", shares[index].id) {
                $0.uuid(0).map(PeerID.init)
            }.compactMap(\.self)
            shares[index].groups = try all(
                """
                SELECT peerGroup.name FROM shareGroup JOIN peerGroup ON peerGroup.id = shareGroup.peerGroup WHERE share = ?
                ORDER BY peerGroup.name
                """, shares[index].id
            ) { $0.text(0) }
        }
        return shares
    }

    /// SQL condition: the peer with the UUID ?1 may read the share.
    private static let mayRead = """
        (forAll OR EXISTS (SELECT 1 FROM sharePeer WHERE share = share.id AND peer = ?1)
            OR EXISTS (SELECT 1 FROM shareGroup JOIN groupMember ON groupMember.peerGroup = shareGroup.peerGroup
                JOIN peer ON peer.id = groupMember.peer WHERE shareGroup.share = share.id AND peer.uuid = ?1))
        """

    /// Returns the shares that a peer may read, ordered by name, without their peers and groups. The caller has to check that the peer is
    /// trusted.
    public func shares(for peer: PeerID) throws -> [ShareRow] {
        try all("SELECT \(ShareRow.columns) FROM share WHERE \(Self.mayRead) ORDER BY name", peer.uuid, read: ShareRow.init)
    }

    /// Returns the share with this name (case-sensitive); `nil` if the peer may not read it. The caller has to check that the peer is
    /// trusted.
    public func share(_ name: String, for peer: PeerID) throws -> ShareRow? {
        try first("SELECT \(ShareRow.columns) FROM share WHERE \(Self.mayRead) AND name = ?2", peer.uuid, name, read: ShareRow.init)
    }

    /// Returns the share with this name; `nil` if there is none.
    public func share(_ name: String) throws -> ShareRow? { try shares().first { PeerTextComparison.areEqual($0.name, name) } }
}

extension HexStore {
    /// Adds a share, or replaces the share with the same name and path. Names of groups are compared as `NormalizedName`s.
    /// - Throws: `.badRequest` if another folder is shared under the name, or a limit is exceeded; `.notFound` if a group does not exist.
    public func share(_ row: ShareRow) async throws -> ShareRow { try await write(rows: 1 + row.peers.count) { try $0.share(row) } }

    /// Deletes a share. The caller has to end running transfers from it.
    /// - Returns: the deleted share.
    /// - Throws: `.notFound`
    public func endShare(_ name: String) async throws -> ShareRow { try await write { try $0.endShare(name) } }
}

extension StoreWriter {
    func share(_ row: ShareRow) throws -> ShareRow {
        try change {
            let known = try share(row.name)
            if let known, !PeerTextComparison.areEqual(known.path, row.path) {
                throw HexlistError(
                    .badRequest,
                    "\(TerminalText.clean(row.name, columns: 80)) is shared already: \(TerminalText.clean(known.path, columns: 200)).",
                    hint: "Give it another name with --as, or `hexlist share rm` the other first.")
            }
            guard row.peers.count + row.groups.count <= ShareRow.audienceLimit else {
                throw HexlistError(
                    .badRequest, "A share is for \(ShareRow.audienceLimit) peers and groups at most.", hint: "Put them into a group.")
            }
            if let known { try run("DELETE FROM share WHERE id = ?", known.id) }
            guard try first("SELECT count(*) FROM share", read: { $0.int(0) }) ?? 0 < ShareRow.limit else {
                throw HexlistError(
                    .badRequest, "\(ShareRow.limit) folders are shared, which is the maximum.", hint: "`hexlist share rm` ends one.")
            }
            try run(
                "INSERT INTO share (name, path, showsHidden, forAll) VALUES (?, ?, ?, ?)", row.name, row.path, row.showsHidden ? 1 : 0,
                row.isForAll ? 1 : 0)
            guard var added = try share(row.name) else { throw StoreFault.lost }
            for peer in row.peers { try run("INSERT OR IGNORE INTO sharePeer (share, peer) VALUES (?, ?)", added.id, peer.uuid) }
            for name in row.groups {
                try run("INSERT OR IGNORE INTO shareGroup (share, peerGroup) VALUES (?, ?)", added.id, try requiredGroup(name))
            }
            changed(.peers)
            (added.peers, added.groups) = (row.peers, row.groups)
            return added
        }
    }

    func endShare(_ name: String) throws -> ShareRow {
        guard let row = try share(name) else {
            let names = try shares().map(\.name)
            let near = NearestName.likely(name, among: names)
            throw HexlistError(
                .notFound, "There is no share \(TerminalText.clean(name, columns: 80)).",
                hint: (near.map { "Did you mean \($0)? " } ?? "") + "`hexlist share` lists the shares.")
        }
        return try change {
            try run("DELETE FROM share WHERE id = ?", row.id)
            changed(.peers)
            return row
        }
    }
}
