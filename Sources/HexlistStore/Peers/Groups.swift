internal import GRDB
public import HexlistModel

/// A named group of peers, which can be used as a recipient or for a share.
public struct PeerGroup: Sendable, Equatable {
    public var name: String
    /// The members, ordered by alias or name.
    public var peers: [PeerID]

    /// Maximum number of groups.
    public static let limit = 1_000
    /// Maximum number of members of one group.
    public static let memberLimit = 10_000
}

extension StoreReader {
    /// Returns all groups, ordered by name.
    public func groups() throws -> [PeerGroup] {
        var groups: [PeerGroup] = []
        let rows = try all(
            """
            SELECT peerGroup.name, peer.uuid FROM peerGroup LEFT JOIN groupMember ON groupMember.peerGroup = peerGroup.id
                LEFT JOIN peer ON peer.id = groupMember.peer
            ORDER BY peerGroup.name COLLATE NOCASE, peerGroup.id, coalesce(peer.alias, peer.name), peer.uuid
            """
        ) { (name: $0.text(0), peer: $0.uuid(1).map(PeerID.init)) }
        for row in rows {
            if !(groups.last?.name.utf8.elementsEqual(row.name.utf8) ?? false) { groups.append(PeerGroup(name: row.name, peers: [])) }
            if let peer = row.peer { groups[groups.count - 1].peers.append(peer) }
        }
        return groups
    }

    /// Returns the row id and the stored name of a group; `nil` if there is none.
    /// - Parameter name: the name of the group, compared as a `NormalizedName`.
    fileprivate func groupRow(_ name: String) throws -> (id: Int64, name: String)? {
        guard let key = NormalizedName(name) else { return nil }
        return try all("SELECT id, name FROM peerGroup") { (id: $0.int64(0), name: $0.text(1)) }.first { key.isKey(of: $0.name) }
    }

    fileprivate func group(_ row: Int64, _ name: String) throws -> PeerGroup {
        let peers = try all(
            """
            SELECT peer.uuid FROM groupMember JOIN peer ON peer.id = groupMember.peer WHERE groupMember.peerGroup = ?
            ORDER BY coalesce(peer.alias, peer.name), peer.uuid
            """, row
        ) { $0.uuid(0).map(PeerID.init) }
        return PeerGroup(name: name, peers: peers.compactMap(\.self))
    }

    /// Returns the names of the groups to which peers belong, by the row id of the peer.
    func groupNames(of rows: [Int64]) throws -> [Int64: [String]] {
        let found = try all(
            """
            SELECT groupMember.peer, peerGroup.name FROM groupMember JOIN peerGroup ON peerGroup.id = groupMember.peerGroup
            WHERE groupMember.peer IN (SELECT value FROM json_each(?)) ORDER BY peerGroup.name COLLATE NOCASE, peerGroup.id
            """, jsonArray(rows)
        ) { ($0.int64(0), $0.text(1)) }
        return found.reduce(into: [:]) { $0[$1.0, default: []].append($1.1) }
    }
}

extension HexStore {
    /// Adds peers to a group in one transaction. Creates the group if it does not exist. Existing members stay.
    ///
    /// - Parameter name: the name of the group without `@`, compared as a `NormalizedName`.
    /// - Throws: `.badRequest` for an invalid name, or too many groups or members. Then nothing is changed.
    public func addToGroup(_ name: String, _ peers: [PeerContact]) async throws -> PeerGroup {
        try await write(rows: peers.count) { writer in
            for peer in peers { try writer.upsertPeer(peer, creating: true) }
            return try writer.addToGroup(name, peers.map(\.peer))
        }
    }

    /// Removes peers from a group. The group stays even if it has no members left.
    /// - Throws: `.notFound` if the group does not exist or a peer is not a member. Then nothing is changed.
    public func removeFromGroup(_ name: String, _ peers: [PeerID]) async throws -> PeerGroup {
        try await write(rows: peers.count) { try $0.removeFromGroup(name, peers) }
    }

    /// Deletes a group. The records of its members stay.
    /// - Returns: the deleted group.
    /// - Throws: `.notFound`
    public func deleteGroup(_ name: String) async throws -> PeerGroup { try await write { try $0.deleteGroup(name) } }
}

extension StoreWriter {
    func addToGroup(_ name: String, _ peers: [PeerID]) throws -> PeerGroup {
        if let fault = GroupName.fault(name) { throw HexlistError(.badRequest, fault, hint: "Choose another name.") }
        return try change {
            let group: (id: Int64, name: String)
            if let known = try groupRow(name) { group = known } else { group = (try makeGroup(name), name) }
            for peer in peers {
                try run("INSERT OR IGNORE INTO groupMember (peerGroup, peer) VALUES (?, ?)", group.id, try peerRow(making: peer).id)
            }
            let members = try first("SELECT count(*) FROM groupMember WHERE peerGroup = ?", group.id) { $0.int(0) } ?? 0
            guard members <= PeerGroup.memberLimit else {
                throw HexlistError(.badRequest, "A group has at most \(PeerGroup.memberLimit) peers.", hint: "Make another group.")
            }
            changed(.peers)
            return try self.group(group.id, group.name)
        }
    }

    /// Inserts a group. Call inside `change`.
    /// - Throws: `.badRequest` if the maximum number of groups exists.
    fileprivate func makeGroup(_ name: String) throws -> Int64 {
        guard try first("SELECT count(*) FROM peerGroup", read: { $0.int(0) }) ?? 0 < PeerGroup.limit else {
            throw HexlistError(
                .badRequest, "There are \(PeerGroup.limit) groups, which is the maximum.", hint: "`hexlist group rm` deletes one.")
        }
        try run("INSERT INTO peerGroup (name) VALUES (?)", name)
        return db.lastInsertedRowID
    }

    /// Returns the row id of a group.
    /// - Throws: `.notFound`
    func requiredGroup(_ name: String) throws -> Int64 {
        guard let group = try groupRow(name) else { throw HexlistError.noGroup(name, among: try groups().map(\.name)) }
        return group.id
    }

    func removeFromGroup(_ name: String, _ peers: [PeerID]) throws -> PeerGroup {
        guard let group = try groupRow(name) else { throw HexlistError.noGroup(name, among: try groups().map(\.name)) }
        return try change {
            for peer in peers {
                let count = try run(
                    "DELETE FROM groupMember WHERE peerGroup = ? AND peer = (SELECT id FROM peer WHERE uuid = ?)", group.id, peer.uuid)
                guard count == 1 else {
                    let label = try self.peer(peer)?.label.text(.named) ?? peer.shortID
                    throw HexlistError(
                        .notFound, "\(label) is not in \(GroupName.marked(group.name)).", hint: "Members: `hexlist group`.")
                }
            }
            changed(.peers)
            return try self.group(group.id, group.name)
        }
    }

    func deleteGroup(_ name: String) throws -> PeerGroup {
        guard let row = try groupRow(name) else { throw HexlistError.noGroup(name, among: try groups().map(\.name)) }
        return try change {
            let group = try self.group(row.id, row.name)
            try run("DELETE FROM peerGroup WHERE id = ?", row.id)
            changed(.peers)
            return group
        }
    }
}

/// All groups in memory, with the numbers of their members. Read once for an import of many peers.
struct GroupSizes {
    private struct Group {
        var id: Int64
        var members: Int
    }

    private var groups: [NormalizedName: Group] = [:]

    init(_ reader: StoreReader) throws {
        let rows = try reader.all(
            """
            SELECT id, name, (SELECT count(*) FROM groupMember WHERE peerGroup = peerGroup.id) FROM peerGroup
            """
        ) { (name: $0.text(1), group: Group(id: $0.int64(0), members: $0.int(2))) }
        for row in rows { if let key = NormalizedName(row.name) { groups[key] = row.group } }
    }

    /// Whether a peer that is not yet in these groups can be added to all of them without exceeding `PeerGroup.limit` or
    /// `PeerGroup.memberLimit`.
    func haveCapacity(for keys: some Collection<NormalizedName>) -> Bool {
        let known = keys.compactMap { groups[$0] }
        return groups.count + keys.count - known.count <= PeerGroup.limit && known.allSatisfy { $0.members < PeerGroup.memberLimit }
    }

    /// Adds a peer to a group. Creates the group if it does not exist. Call inside `change`.
    mutating func add(_ peer: Int64, to key: NormalizedName, _ name: String, on writer: StoreWriter) throws {
        var group = try groups[key] ?? Group(id: writer.makeGroup(name), members: 0)
        group.members += try writer.run("INSERT OR IGNORE INTO groupMember (peerGroup, peer) VALUES (?, ?)", group.id, peer)
        groups[key] = group
    }
}

extension HexlistError {
    /// Creates the error for a group that does not exist.
    /// - Parameters:
    ///   - name: the name of the missing group, without `@`.
    ///   - names: the names of the existing groups, for a suggestion.
    public static func noGroup(_ name: String, among names: [String]) -> HexlistError {
        let near = name.utf8.count <= NormalizedName.bytes ? NearestName.likely(name, among: names) : nil
        let meant = near.map { "Did you mean \(GroupName.marked($0))? " } ?? ""
        return HexlistError(
            .notFound, "There is no group \(GroupName.marked(TerminalText.clean(name, columns: 60))).",
            hint: meant + "`hexlist group` lists the groups; `hexlist group add NAME PEER…` makes one.")
    }
}
