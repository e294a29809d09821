internal import GRDB
public import HexlistLists
public import HexlistModel

/// A hex of My Hexlist that is shared with other persons.
public struct SharedHex: Sendable, Equatable {
    /// The id of the hex. `nil` on a machine that did not join it itself, until the first rows have arrived there.
    public var hex: Int64?
    public var list: ListNode.ID
    public var subject: String
    /// Whether the user owns the list.
    public var isOwned: Bool
    /// The access of the user: `write` to an own list; of another person's list the access that the owner granted.
    public var access: ListOverview.Access
    /// The members of an own list, also former ones; of another person's list the owner's machines.
    public var peers: [Member]
    /// The number of hexes and links inside.
    public var hexes = 0
    public var links = 0
    /// Whether the user owns the list, and changes of members may not be received because of its deleted rows (`ListRenewal`).
    public var needsRenewal = false
    /// The number of links that others added and that the user has not seen, counted up to `HexSharing.maximumNew`.
    public var new = 0

    public struct Member: Sendable, Equatable {
        public var peer: PeerID
        public var access: ListOverview.Access
        public var state: State
        /// The time of the last page that was received of the peer, in milliseconds since 1970; `nil` if there was none.
        public var receivedAt: Int64?
        /// The number of rows that the peer has not acknowledged.
        public var behind: Int
    }

    /// `offered`: the peer has not joined. `joined`: it exchanges the list. `left`: its user has deleted the hex. Only for members of an
    /// own list.
    public enum State: String, Sendable { case offered, joined, left }
}

extension HexStore {
    /// Shares a hex of My Hexlist with peers, or changes their access. A hex inside another one moves to the top level. The hex keeps its id.
    /// - Parameters:
    ///   - access: by peer; `ended` ends the sharing with it.
    ///   - now: milliseconds since 1970.
    /// - Throws: `.notFound`; `.badRequest` if the hex is not in My Hexlist, is inside a shared hex, belongs to another person, or would
    ///   have more than `ListLimits.members`, or if My Hexlist has the maximum of shared hexes.
    public func shareMine(_ hex: Int64, with access: [PeerID: ListOverview.Access], at now: Int64) async throws -> SharedHex {
        try await write { try $0.shareMine(hex, with: access, at: now) }
    }

    /// Adds a list that a peer offers to My Hexlist. Its rows arrive with the next exchange.
    /// - Parameters:
    ///   - number: `ListOffer.number`.
    ///   - now: milliseconds since 1970.
    /// - Throws: `.notFound` if there is no such offer; `.badRequest` if there are too many shared hexes.
    public func joinOffer(_ number: Int64, at now: Int64) async throws -> SharedHex {
        try await write { try $0.joinOffer(number, at: now) }
    }

    /// Declines an offer. It stays among the offers as `isDeclined`, is not reported again, and can still be joined.
    /// - Parameter number: `ListOffer.number`.
    /// - Throws: `.notFound` if there is no such offer of a trusted peer.
    public func declineOffer(_ number: Int64) async throws -> ListOffer {
        try await write { writer in
            try writer.change {
                try writer.run("UPDATE listOffer SET isDeclined = 1 WHERE id = ?", number)
                writer.changed(.list)
                guard let offer = try writer.listOffers().first(where: { $0.number == number }) else { throw HexlistError.noOffer(number) }
                return offer
            }
        }
    }
}

/// The sharing of a hex with other persons.
public struct HexSharing: Sendable, Equatable {
    public var list: ListNode.ID
    public var isOwned: Bool
    /// The access of the user.
    public var access: ListOverview.Access
    /// The number of members with access, if the user owns the list.
    public var members: Int
    /// Of another person's list: the owner's machine with the smallest UUID; `nil` if the owner's machines were forgotten.
    public var owner: PeerID?
    /// The number of links that others added and that the user has not seen, counted up to `maximumNew`.
    public var new: Int
    /// The greatest number of a row, for `markSeen`.
    public var sequence: Int64

    /// Maximum to which new links of one hex are counted, so that the cost of a page of My Hexlist is bounded.
    public static let maximumNew = 1_000
}

extension ListOverview.Access {
    /// The access of the user to a shared list.
    /// - Parameter text: the column `list.access`, which has no meaning for the owner.
    fileprivate static func ofUser(_ text: String, isOwner: Bool) -> Self { isOwner ? .write : Self(rawValue: text) ?? .ended }
}

extension StoreReader {
    /// Returns the sharing of those hexes that are shared and at the top level of My Hexlist.
    public func sharing(of hexes: [Int64]) throws -> [Int64: HexSharing] {
        // CROSS JOIN, because SQLite would read all nodes otherwise.
        let rows = try all(
            """
            SELECT node.hex, list.uuid, list.isOwned, list.access,
                (SELECT count(*) FROM listPeer WHERE listPeer.list = list.id AND listPeer.access <> 'none'), list.id, coalesce(list.seq, 0),
                (SELECT peer FROM listPeer WHERE listPeer.list = list.id AND isOwner ORDER BY peer LIMIT 1)
            FROM list CROSS JOIN node ON node.uuid = list.uuid AND node.list = list.id
            WHERE list.id <> ? AND list.entry IS NOT NULL AND node.hex IN (SELECT value FROM json_each(?))
            """, ListRecord.mine, jsonArray(Set(hexes))
        ) {
            (
                hex: $0.int64(0), list: $0.nodeID(1), isOwned: $0.bool(2), access: $0.text(3), members: $0.int(4), row: $0.int64(5),
                sequence: $0.int64(6), owner: $0.uuid(7).map { PeerID($0) }
            )
        }
        let new = try newLinkCounts(of: rows.map(\.row))
        var sharing: [Int64: HexSharing] = [:]
        for row in rows {
            guard let list = row.list, !row.isOwned || row.members > 0 else { continue }
            sharing[row.hex] = HexSharing(
                list: list, isOwned: row.isOwned, access: .ofUser(row.access, isOwner: row.isOwned),
                members: row.isOwned ? row.members : 0, owner: row.isOwned ? nil : row.owner, new: new[row.row] ?? 0,
                sequence: row.sequence)
        }
        return sharing
    }

    /// Returns the shared hex around a hex of My Hexlist, with its sharing; `nil` if it is not inside a shared hex.
    public func sharing(around hex: Int64) throws -> (hex: Int64, sharing: HexSharing)? {
        guard let node = try node(ofHex: hex), node.list != ListRecord.mine, !node.isRoot else { return nil }
        guard let outer = try self.hex(ofNode: ListRecord(on: self, row: node.list).id, in: node.list) else { return nil }
        return try sharing(of: [outer])[outer].map { (outer, $0) }
    }

    /// Returns the shared hexes of My Hexlist, in the order of their sharing.
    public func sharedHexes() throws -> [SharedHex] {
        try all("SELECT id FROM list WHERE id <> ? AND entry IS NOT NULL ORDER BY id", ListRecord.mine) { $0.int64(0) }
            .compactMap { try sharedHex(inList: $0) }
    }

    /// Returns the shared hex that is, or contains, a hex of My Hexlist; `nil` if it is not shared.
    public func sharedHex(_ hex: Int64) throws -> SharedHex? {
        guard let node = try node(ofHex: hex), node.list != ListRecord.mine else { return nil }
        return try sharedHex(inList: node.list)
    }

    func sharedHex(inList row: Int64) throws -> SharedHex? {
        let record = try ListRecord(on: self, row: row)
        let columns = try first("SELECT isOwned, access FROM list WHERE id = ?", row) { (isOwned: $0.bool(0), access: $0.text(1)) }
        guard let columns else { return nil }
        let hex = try hex(ofNode: record.id, in: row) ?? entry(ofList: row).flatMap { try self.hex(ofNode: $0, in: ListRecord.mine) }
        let size = try sharedHexSize(record)
        let peers = try all(
            """
            SELECT listPeer.peer, listPeer.access, listPeer.state, listCursor.at, coalesce(listCursor.acked, 0), listCursor.replica
            FROM listPeer LEFT JOIN listCursor ON listCursor.list = listPeer.list AND listCursor.peer = listPeer.peer
            WHERE listPeer.list = ? ORDER BY listPeer.peer
            """, row
        ) {
            (
                peer: $0.uuid(0), access: $0.text(1), state: $0.text(2), at: $0.optionalInt64(3), acknowledged: $0.int64(4),
                replica: $0.optionalInt64(5)
            )
        }
        let members = try peers.compactMap { found -> SharedHex.Member? in
            guard let peer = found.peer else { return nil }
            return SharedHex.Member(
                peer: PeerID(peer), access: ListOverview.Access(rawValue: found.access) ?? .ended,
                state: SharedHex.State(rawValue: found.state) ?? .offered, receivedAt: found.at,
                behind: try rowsBehind(in: row, after: found.acknowledged, from: found.replica))
        }
        return SharedHex(
            hex: hex, list: record.id, subject: try subject(of: record.id, in: row), isOwned: columns.isOwned,
            access: .ofUser(columns.access, isOwner: columns.isOwned), peers: members,
            hexes: size.hexes, links: size.links, needsRenewal: try needsRenewal(record, shown: size),
            new: try newLinkCounts(of: [row])[row] ?? 0)
    }

    /// Returns the numbers of shown hexes and links inside a shared hex; 0 if it is not shown.
    func sharedHexSize(_ list: ListRecord) throws -> ListSize {
        try hex(ofNode: list.id, in: list.row).map(sizeOfContents) ?? ListSize()
    }

    /// Returns the numbers of shown hexes and links inside a hex, at all levels.
    func sizeOfContents(ofHex hex: Int64) throws -> ListSize {
        try first("SELECT hexesInside, linkCount + linksInside FROM hex WHERE id = ?", hex) {
            ListSize(hexes: $0.int(0), links: $0.int(1))
        } ?? ListSize()
    }

    /// Returns the number of rows that a peer has not acknowledged. Those that came from there are not counted.
    /// - Parameters:
    ///   - list: `ListRecord.row`.
    ///   - replica: the row of the peer's replica in the table `replica`; `nil` if none is known.
    func rowsBehind(in list: Int64, after acknowledged: Int64, from replica: Int64?) throws -> Int {
        try first(
            "SELECT count(*) FROM node WHERE list = ? AND seq > ? AND (via IS NULL OR via IS NOT ?)", list, acknowledged, replica
        ) { $0.int(0) } ?? 0
    }
}

extension StoreWriter {
    /// Maximum shared lists in My Hexlist, so that they fit into one overview beside My Hexlist and former ones.
    static let maximumSharedLists = 200

    func shareMine(_ hex: Int64, with access: [PeerID: ListOverview.Access], at now: Int64) throws -> SharedHex {
        try change {
            try checkIsMine(hex)
            guard let node = try node(ofHex: hex) else { throw HexlistError.noHex(hex) }
            let list = node.isRoot ? node.list : try makeShared(hex, node, at: now)
            let record = try ListRecord(on: self, row: list)
            guard let entry = try entry(ofList: list) else { throw HexlistError.noHex(hex) }
            try checkIsOwned(record, hex)
            try changeMine(at: now) { mine in
                // With one version, so that all machines of one member know the change by the same time.
                let registers = access.map { (SharedListEntry.member($0), UTF8Text($1.rawValue)) }
                try mine.nodes.setRegisters(Dictionary(uniqueKeysWithValues: registers), of: entry)
                _ = mine.nodes.takeChanges()  // access is not a change of the contents
            }
            let members = try first("SELECT count(*) FROM listPeer WHERE list = ?", list) { $0.int(0) } ?? 0
            guard members <= ListLimits.members else {
                throw HexlistError(
                    .badRequest, "A hex can be shared with \(ListLimits.members) peers, including those with whom it was shared before.")
            }
            guard let shared = try sharedHex(inList: list) else { throw HexlistError.noHex(hex) }
            return shared
        }
    }

    /// Throws `.badRequest` if a shared list belongs to another person.
    /// - Parameter hex: the hex that the list shows.
    func checkIsOwned(_ list: ListRecord, _ hex: Int64) throws {
        guard try !isOwned(list.row) else { return }
        throw HexlistError(
            .badRequest, "“\(try subject(of: list.id, in: list.row))” belongs to another person, who decides about its members.",
            hint: "To share your own copy, save it first: `hexlist save \(hex)`.")
    }

    /// Returns the error for a hex that is inside a shared one.
    /// - Parameters:
    ///   - list: `ListRecord.row`.
    ///   - hint: the advice for the shared hex, whose id is the parameter.
    func insideSharedHex(_ hex: Int64, in list: Int64, hint: (Int64) -> String) throws -> HexlistError {
        let outer = try sharedHex(inList: list)
        return HexlistError(
            .badRequest, "Hex \(hex) is inside the shared hex “\(outer?.subject ?? "")”.", hint: outer?.hex.map(hint))
    }

    /// Makes a hex of My Hexlist a list of its own: copies its nodes, with new ids, and replaces them by an entry at the top level.
    /// - Returns: `ListRecord.row`.
    private func makeShared(_ hex: Int64, _ node: HexNode, at now: Int64) throws -> Int64 {
        guard node.list == ListRecord.mine else {
            throw try insideSharedHex(hex, in: node.list) { "To share all of it: `hexlist mine share \($0) --with PEER`." }
        }
        try checkSharedListCount()
        try moveMine(hex, into: nil, beside: nil, at: now)
        let record = try addSharedList(copying: node.id, from: ListRecord(on: self), at: now)
        try offerFiles(inside: node.id, alsoTo: record.row)
        try changeMine(at: now) { mine in
            // The entry has a smaller number than the deletions, so other machines receive it in the same page or an earlier one.
            let entry = try mine.addEntry(
                of: record.id, before: node.id,
                registers: [SharedListEntry.copied: UTF8Text("\(node.id.uuid)"), SharedListEntry.seen: SeenLinks(base: 0).value])
            try run("UPDATE node SET hex = ? WHERE uuid = ? AND list = ?", hex, entry.uuid, ListRecord.mine)
            // The deletions are not in the log: everything is still there.
            try mine.nodes.delete(node.id)
            _ = mine.nodes.takeChanges()
        }
        return record.row
    }

    /// Adds a list with a copy of a hex and of everything shown inside as its root. The copies get the numbers of the hexes.
    /// - Parameter source: the list of the hex.
    func addSharedList(copying hex: ListNode.ID, from source: ListRecord, at now: Int64) throws -> ListRecord {
        var generator = SystemRandomNumberGenerator()
        let record = try addSharedList(ListNode.ID(kind: .hex, time: now, using: &generator))
        try changeMine(at: now, in: record.row) { shared in
            let copied = try shared.copy(hex, from: SQLListStorage(source, on: self), at: now)
            for (old, new) in copied where old.kind == .hex {
                let number = try self.hex(ofNode: old, in: source.row)
                try run("UPDATE node SET hex = ? WHERE uuid = ? AND list = ?", number, new.uuid, record.row)
                try run("UPDATE node SET hex = NULL WHERE uuid = ? AND list = ?", old.uuid, source.row)
            }
        }
        return record
    }

    private func checkSharedListCount() throws {
        guard try first("SELECT count(*) FROM list WHERE entry IS NOT NULL", read: { $0.int(0) }) ?? 0 < Self.maximumSharedLists else {
            throw HexlistError(.badRequest, "My Hexlist has \(Self.maximumSharedLists) shared hexes, which is the maximum.")
        }
    }

    /// Adds the root of a list with a known title, so that the hex is shown before its rows arrive. The title has the lowest
    /// version, so every other one replaces it.
    func showBeforeArrival(_ record: ListRecord, title: [UInt8], at now: Int64) throws {
        guard try SQLListStorage(record, on: self).row(record.id) == nil else { return }
        try changeMine(at: now, in: record.row) { list in
            var root = ListNode(id: record.id)
            root.title = ListNode.Register(version: ListVersion(clock: 1, replica: record.replica), value: UTF8Text(utf8: title))
            try list.nodes.merge(root)
            _ = list.nodes.takeChanges()
        }
    }

    func joinOffer(_ number: Int64, at now: Int64) throws -> SharedHex {
        try change {
            let offer = try first(
                """
                SELECT peer.uuid, list, access, title, accessAt FROM listOffer JOIN peer ON peer.uuid = listOffer.peer AND peer.trust = 'trusted'
                WHERE listOffer.id = ?
                """, number
            ) {
                (
                    peer: $0.uuid(0).map { PeerID($0) }, list: $0.nodeID(1), access: ListOverview.Access(rawValue: $0.text(2)),
                    title: $0.bytes(3),
                    at: $0.int64(4)
                )
            }
            guard let offer, let peer = offer.peer, let list = offer.list, let access = offer.access else {
                throw HexlistError.noOffer(number)
            }
            let known = try ListRecord(list, on: self)
            if let known, try first("SELECT isOwned FROM list WHERE id = ?", known.row, read: { $0.bool(0) }) ?? true {
                throw HexlistError.noOffer(number)
            }
            let present = try known.flatMap { try entry(ofList: $0.row) }
            if present == nil { try checkSharedListCount() }
            // Of a list that the user has left: with read access, changes that the owner did not receive are rejected.
            let epoch =
                access == .read
                ? UTF8Text(String(offer.at))
                : try known.flatMap { try first("SELECT epoch FROM list WHERE id = ?", $0.row) { UTF8Text($0.text(0)) } }
            try changeMine(at: now) { mine in
                let entry = try present ?? mine.addEntry(of: list, before: nil)
                try mine.nodes.setRegister(SharedListEntry.owner(peer), of: entry, to: UTF8Text("1"))
                if present == nil {
                    let seen = SeenLinks(base: mine.nodes.nextVersion().clock)  // joining counts as seeing what is there
                    try mine.nodes.setRegister(SharedListEntry.seen, of: entry, to: seen.value)
                    try mine.nodes.setRegister(SharedListEntry.access, of: entry, to: SharedListEntry.accessValue(access, at: offer.at))
                    if let epoch, !epoch.isEmpty { try mine.nodes.setRegister(SharedListEntry.epoch, of: entry, to: epoch) }
                }
                _ = mine.nodes.takeChanges()
            }
            guard let record = try ListRecord(list, on: self) else { throw HexlistError.noOffer(number) }
            try showBeforeArrival(ListRecord(on: self, row: record.row), title: offer.title, at: now)
            guard let shared = try sharedHex(inList: record.row) else { throw HexlistError.noOffer(number) }
            return shared
        }
    }
}

extension MyHexlistTransaction {
    /// Copies a hex with all shown nodes inside into this list, as its root, without values that are empty.
    /// - Returns: the new ids by the old ones.
    fileprivate mutating func copy(_ hex: ListNode.ID, from source: SQLListStorage, at now: Int64) throws -> [ListNode.ID: ListNode.ID] {
        var ids = ListNode.IDSequence()
        var generator = SystemRandomNumberGenerator()
        var copied = [hex: list.id]
        var open = [hex]
        let version = nodes.nextVersion()
        func copy(_ node: ListNode, as id: ListNode.ID) -> ListNode {
            var copy = ListNode(id: id)
            (copy.url, copy.service) = (node.url, node.service)
            copy.title = node.title.map { ListNode.Register(version: version, value: $0.value) }
            copy.registers = node.registers.filter { !$1.value.isEmpty }
                .mapValues { ListNode.Register(version: version, value: $0.value) }
            return copy
        }
        try nodes.merge(copy(source.row(hex)?.node ?? ListNode(id: hex), as: list.id))
        while let outer = open.popLast(), let parent = copied[outer] {
            for row in try source.contents(of: outer) where row.node.id.kind == .hex || row.node.id.kind == .link {
                let id = ids.next(row.node.id.kind, time: now, using: &generator)
                var node = copy(row.node, as: id)
                // A node without a place is the first one in the root.
                let key = row.node.place?.key ?? OrderKey.first(number: 0, using: &generator)
                node.place = ListNode.Place(version: version, parent: parent, key: key)
                try nodes.merge(node)
                copied[row.node.id] = id
                if id.kind == .hex { open.append(row.node.id) }
            }
            _ = nodes.takeChanges()  // bounds the memory
        }
        return copied
    }

    /// Adds the entry of a shared list at the top level.
    /// - Parameter node: the hex or entry at the top level directly before which it is; `nil` for the beginning.
    mutating func addEntry(
        of list: ListNode.ID, before node: ListNode.ID?, registers: [UTF8Text: UTF8Text] = [:]
    ) throws -> ListNode.ID {
        var generator = SystemRandomNumberGenerator()
        let position = node.map { ListPosition.before($0) } ?? .first
        let key = try nodes.keys(at: position, in: self.list.id, isNewestFirst: true, using: &generator)[0]
        let entry = try nodes.add(
            .sharedList, in: self.list.id, key: key, title: UTF8Text("\(list.uuid)"), registers: registers, using: &generator)
        _ = nodes.takeChanges()
        return entry
    }

    /// Ends the sharing with all members before an entry is deleted, so that it does not begin again if the entry is restored.
    mutating func endSharing(_ entry: ListNode.ID) throws {
        guard let row = try nodes.storage.row(entry), let members = SharedListEntry(row)?.members else { return }
        for (peer, access) in members.sorted(by: { $0.key < $1.key }) where access.access != .ended {
            try nodes.setRegister(SharedListEntry.member(peer), of: entry, to: UTF8Text(ListOverview.Access.ended.rawValue))
        }
        _ = nodes.takeChanges()
    }
}

extension HexlistError {
    public static func notShared(_ hex: Int64) -> HexlistError {
        HexlistError(.badRequest, "Hex \(hex) is not shared.", hint: "To share it: `hexlist mine share \(hex) --with PEER`.")
    }

    static func noOffer(_ number: Int64) -> HexlistError {
        HexlistError(.notFound, "There is no offer \(number).", hint: "`hexlist mine join` lists the hexes that others offer you.")
    }
}
