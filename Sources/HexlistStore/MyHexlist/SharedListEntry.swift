internal import GRDB
internal import HexlistLists
internal import HexlistModel

/// The entry of a shared list in My Hexlist: a node of the kind `sharedList`, which only own machines exchange. It is always at the top level.
struct SharedListEntry {
    /// Of a list of another person: the hybrid time at which the owner made it read-only the last time (`list.epoch`).
    static let epoch: UTF8Text = "epoch"
    /// Of a list of another person: the access that the owner granted, and the hybrid time at which that was, separated by a space.
    static let access: UTF8Text = "access"
    /// The id of the hex of which the list is a copy. Its deletion is part of the sharing.
    static let copied: UTF8Text = "copied"
    /// The id of the list that this one replaces, and the digest of its rows at the copy, separated by a space (`ListRenewal`).
    static let renewed: UTF8Text = "renewed"
    /// The links that the user has seen (`SeenLinks`).
    static let seen: UTF8Text = "seen"
    /// The register of a member, with its access as the value.
    static func member(_ peer: PeerID) -> UTF8Text { UTF8Text("with/\(peer)") }
    /// Whether a register is that of a member.
    static func isMember(_ name: UTF8Text) -> Bool { name.bytes.starts(with: "with/".utf8) }
    /// The register of a machine of the owner that the user has confirmed. A list with such registers belongs to another person.
    static func owner(_ peer: PeerID) -> UTF8Text { UTF8Text("from/\(peer)") }

    var node: ListNode
    var list: ListNode.ID
    var isShown: Bool

    /// - Returns: `nil` if the node does not name a list.
    init?(_ row: ListRow) {
        // The title is the id of the list, because registers above the maximum are dropped.
        guard row.node.id.kind == .sharedList, let text = row.node.title?.value.description,
            let list = UUIDBytes(text).flatMap({ ListNode.ID($0) }), list.kind == .hex
        else { return nil }
        (node, self.list, isShown) = (row.node, list, row.state == .present)
    }

    /// The hex of which the list is a copy, and the hybrid time of the copy; `nil` for a list of another person.
    var copied: (hex: ListNode.ID, at: Int64)? {
        guard let register = node.registers[Self.copied], let hex = UUIDBytes(register.value.description).flatMap({ ListNode.ID($0) })
        else { return nil }
        return (hex, register.version.clock)
    }

    /// The list that this one replaces, and the digest of its rows at the copy; `nil` if there is none.
    var renewed: (list: ListNode.ID, digest: ListDigest)? {
        let words = node.registers[Self.renewed]?.value.description.split(separator: " ") ?? []
        guard words.count == 2, let list = UUIDBytes(String(words[0])).flatMap({ ListNode.ID($0) }),
            let digest = ReplicaNumber(words[1]).map({ ListDigest($0.value) })
        else { return nil }
        return (list, digest)
    }

    static func renewedValue(_ list: ListNode.ID, _ digest: ListDigest) -> UTF8Text { UTF8Text("\(list.uuid) \(digest)") }

    /// The access that the owner granted last.
    var granted: (access: ListOverview.Access, at: Int64)? {
        let words = node.registers[Self.access]?.value.description.split(separator: " ") ?? []
        guard words.count == 2, let access = ListOverview.Access(rawValue: String(words[0])), let time = Int64(words[1]) else { return nil }
        return (access, time)
    }

    static func accessValue(_ access: ListOverview.Access, at time: Int64) -> UTF8Text { UTF8Text("\(access.rawValue) \(time)") }

    /// Whether the list belongs to the user. The registers of owners stay, without a value, after their machines were forgotten.
    var isOwned: Bool { peers("from/").isEmpty }

    var owners: Set<PeerID> { Set(peers("from/").lazy.filter { !$0.register.value.isEmpty }.map(\.peer)) }

    /// The members, also the former ones, whose access is `ended`, each with the hybrid time at which the access was set.
    var members: [PeerID: (access: ListOverview.Access, at: Int64)] {
        let members = peers("with/").map { peer, register in
            (peer, (access: ListOverview.Access(rawValue: register.value.description) ?? .ended, at: register.version.clock))
        }
        return Dictionary(members) { first, _ in first }
    }

    private func peers(_ prefix: String) -> [(peer: PeerID, register: ListNode.Register)] {
        node.registers.compactMap { name, register in
            guard name.bytes.starts(with: prefix.utf8) else { return nil }
            return PeerID(String(decoding: name.bytes.dropFirst(prefix.utf8.count), as: UTF8.self)).map { ($0, register) }
        }
    }
}

extension StoreReader {
    /// Returns the shared list that an entry names; `nil` if there is none.
    func sharedList(of entry: ListNode.ID) throws -> ListRecord? {
        let storage = try SQLListStorage(ListRecord(on: self), on: self)
        guard let list = try storage.row(entry).flatMap({ SharedListEntry($0) })?.list else { return nil }
        return try ListRecord(list, on: self)
    }

    /// Returns the entry that shows a shared list; `nil` if it was deleted.
    /// - Parameter list: `ListRecord.row`.
    func entry(ofList list: Int64) throws -> ListNode.ID? {
        try first("SELECT entry FROM list WHERE id = ?", list) { $0.nodeID(0) } ?? nil
    }

    /// Returns all entries, also deleted ones.
    func sharedListEntries() throws -> [SharedListEntry] {
        let storage = try SQLListStorage(ListRecord(on: self), on: self)
        let ids = try all("SELECT uuid FROM node INDEXED BY nodeEntries WHERE kind = 3 AND list = ? ORDER BY uuid", ListRecord.mine) {
            $0.nodeID(0)
        }
        return try ids.compactMap(\.self).compactMap { try storage.row($0).flatMap { SharedListEntry($0) } }
    }

    /// Returns the other shown entries that name the list of an entry.
    func otherEntries(ofListOf entry: ListNode.ID) throws -> [ListNode.ID] {
        guard entry.kind == .sharedList else { return [] }
        let entries = try sharedListEntries()
        let list = entries.first { $0.node.id == entry }?.list
        return entries.filter { $0.list == list && $0.isShown && $0.node.id != entry }.map(\.node.id)
    }

    /// Returns the hexes of My Hexlist of which shared lists are copies, with the hybrid times of the copies.
    func copiedHexes() throws -> [ListNode.ID: Int64] {
        Dictionary(try sharedListEntries().compactMap(\.copied).map { ($0.hex, $0.at) }) { max($0, $1) }
    }

    /// Throws `.badRequest` if a list belongs to another person who does not let the user change it.
    func checkIsWritable(_ list: ListRecord) throws {
        guard let reason = try readOnlyReason(list) else { return }
        let hex = try hex(ofNode: list.id, in: list.row)
        throw HexlistError(.badRequest, reason, hint: hex.map { "To make your own copy: `hexlist save \($0)`." })
    }

    /// Whether the user may change a list.
    /// - Parameter list: `ListRecord.row`.
    func isWritable(_ list: Int64) throws -> Bool { try readOnlyReason(ListRecord(on: self, row: list)) == nil }

    /// Whether a list is My Hexlist or a shared list of the user.
    /// - Parameter list: `ListRecord.row`.
    func isOwned(_ list: Int64) throws -> Bool { try first("SELECT isOwned FROM list WHERE id = ?", list) { $0.bool(0) } ?? true }

    private func readOnlyReason(_ list: ListRecord) throws -> String? {
        guard list.isShared else { return nil }
        let access = try first("SELECT access FROM list WHERE id = ? AND isOwned = 0", list.row) { $0.text(0) }
        guard let access = access.flatMap({ ListOverview.Access(rawValue: $0) }) else { return nil }
        // That of the hex as it was before the change that is refused.
        let subject = try hex(ofNode: list.id, in: list.row).flatMap { try summary(ofTop: $0)?.subject } ?? ""
        let owner = try first(
            """
            SELECT coalesce(peer.alias, nullif(peer.name, ''), '') FROM listPeer LEFT JOIN peer ON peer.uuid = listPeer.peer
            WHERE list = ? AND isOwner ORDER BY listPeer.peer LIMIT 1
            """, list.row
        ) { $0.text(0) }
        guard owner != nil || access == .ended else {
            return "“\(subject)” belongs to another person, whose machines were forgotten, so it cannot be changed."
        }
        guard access != .write else { return nil }
        let name = owner.flatMap { $0.isEmpty ? nil : $0 } ?? "another person"
        return access == .read
            ? "“\(subject)” belongs to \(name), and you can only read it."
            : "\(name) stopped sharing “\(subject)”, so it cannot be changed."
    }
}

extension StoreWriter {
    /// Brings the shared lists in line with their entries: creates the lists of new ones, shows and hides their hexes, and stores the peers.
    /// Call inside `change`, after the rows of My Hexlist were projected.
    ///
    /// If several entries name one list, because two machines joined it before they exchanged their changes, the one with the smallest id
    /// shows it, and the registers of all count. If one of them is that of an own list, only such entries count, also deleted ones: a machine
    /// may have been a member before it became an own machine.
    func updateSharedLists(at now: Int64) throws {
        let mine = try mineList()
        let all = try sharedListEntries()
        for (list, entries) in Dictionary(grouping: all, by: \.list) where list != mine {
            let owned = entries.filter(\.isOwned)
            let entries = owned.isEmpty ? entries : owned
            let shown = entries.filter(\.isShown)
            let counted = shown.isEmpty ? entries : shown
            var entry = counted[0]
            for other in counted.dropFirst() {
                for (name, register) in other.node.registers where entry.node.registers[name].map({ $0 < register }) ?? true {
                    entry.node.registers[name] = register
                }
            }
            let known = try ListRecord(list, on: self)
            guard let record = try known ?? (shown.isEmpty ? nil : addSharedList(list)) else { continue }
            if known == nil { try offerFiles(toListOf: entry, record) }
            try run(
                "UPDATE list SET entry = ?, isOwned = ? WHERE id = ?", shown.isEmpty ? nil : entry.node.id.uuid, entry.isOwned,
                record.row)
            if !entry.isOwned, !shown.isEmpty, let granted = entry.granted {
                // The entry may have an older access, from a machine that was not connected to the owner since.
                try run(
                    "UPDATE list SET access = ?1, accessAt = ?2 WHERE id = ?3 AND accessAt <= ?2", granted.access.rawValue, granted.at,
                    record.row)
            }
            try updatePeers(of: record, entry)
            try store(seen: entry.node.registers[SharedListEntry.seen]?.value ?? .empty, of: record)
            let epoch = entry.node.registers[SharedListEntry.epoch]?.value ?? .empty
            if !shown.isEmpty, try first("SELECT epoch = ? FROM list WHERE id = ?", epoch, record.row, read: { $0.bool(0) }) == false {
                try begin(epoch: epoch, of: record, isOwned: entry.isOwned)
            }
            let access = try first("SELECT access FROM list WHERE id = ?", record.row) { $0.text(0) }
            if access != ListOverview.Access.read.rawValue || entry.owners.isEmpty {
                // The changes are accepted now, or nobody decides about them any more. They were not sent so far.
                if try run("UPDATE node SET isUnconfirmed = 0 WHERE list = ? AND isUnconfirmed = 1", record.row) > 0 {
                    try renewReplica(of: record.row)
                }
            }
            if shown.isEmpty {
                if let hex = try hex(ofNode: list, in: record.row) { try remove([hex], remembers: false) }
            } else {
                try showSharedList(SQLListStorage(record, on: self, at: now))
            }
        }
        try removeRenewedFromTrash(all)
        changed([.list, .peers])
    }

    /// Ends the access of a peer that is forgotten, as a member and as an owner's machine, because another key may get its UUID.
    /// - Parameter successor: the peer that replaces it, which gets its access; `nil` for none.
    func removeFromSharedLists(_ peer: PeerID, replacedBy successor: PeerID? = nil) throws {
        guard try first("SELECT 1 FROM listPeer WHERE peer = ? LIMIT 1", peer.uuid, read: { _ in true }) != nil else { return }
        let (member, owner) = (SharedListEntry.member(peer), SharedListEntry.owner(peer))
        try changeMine(at: 0) { mine in  // the versions follow the last one
            for entry in try sharedListEntries() {
                var isChanged = false
                for (old, new, ended) in [
                    (member, successor.map(SharedListEntry.member), UTF8Text(ListOverview.Access.ended.rawValue)),
                    (owner, successor.map(SharedListEntry.owner), .empty),
                ] {
                    guard let value = entry.node.registers[old]?.value, value != ended else { continue }
                    if let new { try mine.nodes.setRegister(new, of: entry.node.id, to: value) }
                    try mine.nodes.setRegister(old, of: entry.node.id, to: ended)
                    isChanged = true
                }
                guard isChanged, !entry.isShown else { continue }
                // The change would show a deleted entry again.
                var mark = ListNode(id: entry.node.id)
                mark.deletion = DeletionMark(version: mine.nodes.nextVersion())
                try mine.nodes.merge(mark)
            }
            _ = mine.nodes.takeChanges()
        }
        try run("DELETE FROM listOffer WHERE peer = ?", peer.uuid)
    }

    func addSharedList(_ list: ListNode.ID) throws -> ListRecord {
        let replica = try replicaRow(of: ReplicaNumber(.random(in: .min ... .max)))
        try markOwn(replica)
        try run("INSERT INTO list (uuid, replica, clock, seq, digest, isReplicated) VALUES (?, ?, 0, 0, 0, 1)", list.uuid, replica)
        guard let record = try ListRecord(list, on: self) else { throw HexlistError(.storeUnusable, "The list was not stored.") }
        return record
    }

    private func updatePeers(of record: ListRecord, _ entry: SharedListEntry) throws {
        // After the deletion of the entry, the members have no access any more. Members ignore an `accessAt` that is not greater than the
        // last one, so it is increased by 1.
        let members = entry.isShown ? entry.members : entry.members.mapValues { (.ended, $0.access == .ended ? $0.at : $0.at + 1) }
        let peers =
            entry.isOwned
            ? members.map { (peer: $0, isOwner: false, access: $1.access, at: $1.at) }
            : entry.owners.map { (peer: $0, isOwner: true, access: .write, at: 0) }
        let known = try all("SELECT peer FROM listPeer WHERE list = ?", record.row) { $0.uuid(0).map { PeerID($0) } }
        for peer in Set(known.compactMap(\.self)).subtracting(peers.map(\.peer)) {
            try run("DELETE FROM listPeer WHERE list = ? AND peer = ?", record.row, peer.uuid)
        }
        for (peer, isOwner, access, time) in peers {
            try run(
                """
                INSERT INTO listPeer (list, peer, isOwner, access, accessAt) VALUES (?, ?, ?, ?, ?)
                ON CONFLICT DO UPDATE SET (isOwner, access, accessAt) = (excluded.isOwner, excluded.access, excluded.accessAt)
                """, record.row, peer.uuid, isOwner, access.rawValue, time)
            // The offer is accepted.
            if isOwner { try run("DELETE FROM listOffer WHERE peer = ? AND list = ?", peer.uuid, record.id.uuid) }
        }
    }

    /// Deletes the rows of a shared list. Called when its entry leaves the trash. The list itself stays, so that its members learn that the
    /// sharing has ended.
    func removeSharedList(of entry: ListNode.ID) throws {
        guard let record = try sharedList(of: entry), try self.entry(ofList: record.row) == nil else { return }
        try removeRows(of: record)
        try run("UPDATE mineChange SET nodes = NULL WHERE list = ?", record.row)  // they cannot be undone
    }

    /// Deletes the rows of a shared list. Rows that are added later have a new replica number, because their numbers begin at 1 again.
    func removeRows(of record: ListRecord) throws {
        for table in ["node", "listCursor"] { try run("DELETE FROM \(table) WHERE list = ?", record.row) }
        try run("UPDATE list SET seq = 0, digest = 0, textBytes = 0, rejected = 0 WHERE id = ?", record.row)
        try renewReplica(of: record.row)
    }

    /// Shows the hex of a shared list at the place of its entry, with everything inside. No effect before the root has arrived, or if the list
    /// has no entry; only updates the place if it is shown already.
    func showSharedList(_ storage: SQLListStorage) throws {
        guard let entry = try entry(ofList: storage.listRow), try storage.row(storage.list) != nil else { return }
        let place = try first("SELECT orderKey, hex FROM node WHERE uuid = ? AND list = ?", entry.uuid, ListRecord.mine) {
            (key: $0.bytes(0), hex: $0.optionalInt64(1))
        }
        guard let place else { return }
        let number = try place.hex ?? hex(ofNode: storage.list, in: storage.listRow) ?? counters.nextHex
        counters.nextHex = max(counters.nextHex, number &+ 1)
        try run("UPDATE node SET hex = ? WHERE uuid = ? AND list = ?", number, entry.uuid, ListRecord.mine)
        try run("UPDATE node SET hex = ? WHERE uuid = ? AND list = ?", number, storage.list.uuid, storage.listRow)
        if try first("SELECT 1 FROM hex WHERE id = ?", number, read: { _ in true }) == nil {
            try addRow(number, receivedAt: entry.time)
            try projectAll(storage)
        }
        try run("UPDATE hex SET orderKey = ?1 WHERE id = ?2 AND orderKey IS NOT ?1", place.key, number)
    }
}
