internal import GRDB
internal import HexlistLists
internal import HexlistModel

// The owner of a list has made it read-only, and had not received all changes of this member. These cannot stay in the list. Their rows
// are marked as unconfirmed, and all rows are requested again. A received row replaces an unconfirmed one, and those that the owner does not
// have are removed at the end. Changes of this machine that the owner does not have are copied into a hex of My Hexlist. Each of the
// user's machines does that with its own changes.

/// Copies of nodes of a list whose changes were rejected.
struct RejectedChanges {
    struct Copy {
        /// With the id and the parent of the copy.
        var node: ListNode
        /// Whether the node was changed. Otherwise it is a hex around a changed one, and is not copied again.
        var isChanged: Bool
    }

    /// The id of the copy of the root.
    var root: ListNode.ID
    /// Each after those of the hexes around it.
    var copies: [Copy] = []
    fileprivate var ids: Set<ListNode.ID> = []

    fileprivate init(root: ListNode.ID) { self.root = root }
}

extension ListNode.ID {
    /// The id of the copy of a node. All machines of the user use the same one, so their copies are parts of one hex.
    fileprivate init(ofCopyOf node: ListNode.ID, in list: ListNode.ID, epoch: UTF8Text) {
        self.init(derivedFrom: node, with: list.uuid.bytes + epoch.bytes)
    }
}

extension StoreReader {
    /// Whether another person's list can be served to own machines: all rows of a machine of the owner, or of an own machine that had these,
    /// were received, and none is unconfirmed. Otherwise the other machine could not tell which rows the owner has.
    /// - Parameter list: `ListRecord.row`.
    func isComplete(_ list: Int64) throws -> Bool {
        let isReceived = try first("SELECT 1 FROM listCursor WHERE list = ? AND isFirstExchangeOver LIMIT 1", list) { _ in true }
        return try isReceived != nil && !hasUnconfirmedRows(in: list)
    }

    /// - Parameter list: `ListRecord.row`.
    func hasUnconfirmedRows(in list: Int64) throws -> Bool {
        try first("SELECT 1 FROM node INDEXED BY nodeUnconfirmed WHERE list = ? AND isUnconfirmed = 1 LIMIT 1", list) { _ in true } ?? false
    }

    fileprivate func epoch(of list: Int64) throws -> UTF8Text {
        UTF8Text(try first("SELECT epoch FROM list WHERE id = ?", list) { $0.text(0) } ?? "")
    }

    /// SQL condition: whether a row of the list ?1 neither came from a machine of its owner nor was acknowledged by one. The root that
    /// `showBeforeArrival` adds is no such row.
    fileprivate static let isUnaccepted = """
        list = ?1 AND NOT (kind = 1 AND titleClock = 1 AND registers IS NULL AND placeClock IS NULL)
            AND seq > coalesce((SELECT max(listCursor.acked) FROM listPeer JOIN listCursor USING (list, peer)
                WHERE listPeer.list = ?1 AND listPeer.isOwner), 0)
            AND (via IS NULL OR via NOT IN (SELECT listCursor.replica FROM listPeer JOIN listCursor USING (list, peer)
                WHERE listPeer.list = ?1 AND listPeer.isOwner AND listCursor.replica IS NOT NULL))
        """
}

extension StoreWriter {
    /// Sets the epoch of a list. In that of another person, marks the rows that the owner may not have as unconfirmed, and forgets what was
    /// received of the other machines, so that all rows are requested again.
    func begin(epoch: UTF8Text, of record: ListRecord, isOwned: Bool) throws {
        if !isOwned, try run("UPDATE node SET isUnconfirmed = 1 WHERE isUnconfirmed = 0 AND \(Self.isUnaccepted)", record.row) > 0 {
            try renewReplica(of: record.row)  // so that no row is left out because it came from here
            try run("UPDATE listCursor SET replica = NULL, seq = 0 WHERE list = ?", record.row)
        }
        try run("UPDATE list SET epoch = ? WHERE id = ?", epoch, record.row)
    }

    /// Removes the rows that are still unconfirmed. Call after all rows of a machine were received.
    func removeUnconfirmedRows(of record: ListRecord, at now: Int64) throws {
        // Links first, so that the hexes around them are empty then.
        let ids = try all(
            "SELECT uuid FROM node INDEXED BY nodeUnconfirmed WHERE list = ? AND isUnconfirmed = 1 AND uuid <> ? ORDER BY kind DESC",
            record.row, record.id.uuid
        ) { $0.nodeID(0) }.compactMap(\.self)
        try changeMine(at: now, in: record.row) { list in
            list.nodes.storage.source = SQLListStorage.severalReplicas
            for id in ids { try list.reject(id, inFavorOf: nil) }
            for id in ids {
                guard let version = try list.nodes.storage.row(id)?.node.version else { continue }
                var mark = ListNode(id: id)
                mark.deletion = DeletionMark(version: version)
                try list.nodes.merge(mark)
            }
            _ = list.nodes.takeChanges()  // not in the log
        }
        // Now they are not shown any more, except for hexes with confirmed links. The owner has these links without their hex.
        let storage = try SQLListStorage(ListRecord(on: self, row: record.row), on: self)
        var digest = try ListRecord(on: self, row: record.row).digest
        var (shown, links): ([Int64], [ListNode.ID]) = ([], [])
        for id in ids {
            guard let row = try storage.row(id) else { continue }
            if row.state != .deleted, let hex = try hex(ofNode: id, in: record.row) {
                shown.append(hex)
                links += try storage.ids(in: id).filter { $0.kind == .link }
            }
            digest?.toggle(row.node, in: record.id)
            try run("DELETE FROM node WHERE uuid = ? AND list = ?", id.uuid, record.row)
        }
        try run("UPDATE list SET digest = ? WHERE id = ?", digest.map { Int64(bitPattern: $0.value) }, record.row)
        try run("UPDATE node SET isUnconfirmed = 0 WHERE list = ? AND isUnconfirmed = 1", record.row)
        guard !shown.isEmpty else { return }
        try remove(shown, remembers: false)
        try changeMine(at: now, in: record.row) { list in
            list.nodes.storage.source = SQLListStorage.severalReplicas
            list.nodes.deriveAgain(links)
        }
        // The rows of all hexes inside those were deleted with them.
        try projectAll(SQLListStorage(ListRecord(on: self, row: record.row), on: self, at: now))
    }

    /// Returns the change for the user after the last unconfirmed row of a list was confirmed or removed; `nil` if no change was rejected.
    func takeRejection(in list: ListRecord) throws -> SharingChange? {
        let rows = try first("SELECT rejected FROM list WHERE id = ?", list.row) { $0.int(0) } ?? 0
        guard rows > 0, let shared = try sharedHex(inList: list.row) else { return nil }
        try run("UPDATE list SET rejected = 0 WHERE id = ?", list.row)
        let copy = ListNode.ID(ofCopyOf: list.id, in: list.id, epoch: try epoch(of: list.row))
        return .rejected(shared, rows: rows, copy: try hex(ofNode: copy, in: ListRecord.mine))
    }

    /// Adds copies of rejected changes to My Hexlist. Call after a change of My Hexlist is finished.
    func addRejected(at now: Int64) throws {
        let rejected = rejected
        self.rejected = []
        for changes in rejected { try changeMine(at: now) { try $0.add(changes) } }
    }

    /// Gives a list of another person a new epoch, and requests all its rows again, so that all machines of the user drop the rows that
    /// the owner has not any more. The owner may have restored a backup, and does not request rows of a reader.
    func beginNextEpoch(of record: ListRecord) throws {
        guard let entry = try entry(ofList: record.row) else { return }
        let last = Int64(try epoch(of: record.row).description) ?? 0
        try changeMine(at: 0) { mine in  // the version follows the last one
            try mine.nodes.setRegister(SharedListEntry.epoch, of: entry, to: UTF8Text(String(last.addingClamped(1))))
            _ = mine.nodes.takeChanges()
        }
    }
}

extension MyHexlistTransaction {
    /// Merges a received node. If the stored one is unconfirmed, the received one replaces it, also if it is older.
    /// - Parameter takesContent: `ListTransaction.merge`.
    mutating func mergeOrReplace(_ received: ListNode, sentAs sent: ListNode, takesContent: Bool) throws {
        let isUnconfirmed =
            try writer.first("SELECT isUnconfirmed FROM node WHERE uuid = ? AND list = ?", received.id.uuid, list.row) { $0.bool(0) }
            ?? false
        guard isUnconfirmed else {
            try nodes.merge(received, isReceived: true, sentAs: sent, takesContent: takesContent)
            return
        }
        try reject(received.id, inFavorOf: received)
        try nodes.replace(received)
        try writer.run("UPDATE node SET isUnconfirmed = 0 WHERE uuid = ? AND list = ?", received.id.uuid, list.row)
    }

    /// Counts an unconfirmed node as rejected, and copies it, if this machine changed it and the owner does not have the change.
    /// - Parameter received: the node as the owner has it; `nil` if the owner does not have it.
    fileprivate mutating func reject(_ id: ListNode.ID, inFavorOf received: ListNode?) throws {
        let isChangedHere = try writer.first("SELECT via IS NULL FROM node WHERE uuid = ? AND list = ?", id.uuid, list.row) { $0.bool(0) }
        guard isChangedHere ?? false, id.kind == .hex || id.kind == .link, let row = try nodes.storage.row(id) else { return }
        if var received {
            received.addPrivateRegisters(of: row.node)
            if received.merge(row.node).isEmpty { return }
        }
        try writer.run("UPDATE list SET rejected = rejected + 1 WHERE id = ?", list.row)
        guard row.state != .deleted else { return }
        let epoch = try writer.epoch(of: list.row)
        let root = ListNode.ID(ofCopyOf: list.id, in: list.id, epoch: epoch)
        var changes = writer.rejected.last.flatMap { $0.root == root ? $0 : nil } ?? RejectedChanges(root: root)
        try changes.add(row, isChanged: true, in: nodes.storage, epoch: epoch)
        if writer.rejected.last?.root == root { writer.rejected.removeLast() }
        writer.rejected.append(changes)
    }

    /// Adds copies of nodes to My Hexlist.
    fileprivate mutating func add(_ changes: RejectedChanges) throws {
        var generator = SystemRandomNumberGenerator()
        let key = try nodes.keys(at: .first, in: list.id, isNewestFirst: true, using: &generator)[0]
        nodes.storage.source = SQLListStorage.severalReplicas  // more links than a local change may add are shown
        let version = nodes.nextVersion()
        for copy in changes.copies where try copy.isChanged || nodes.storage.row(copy.node.id) == nil {
            var node = copy.node
            node.title = ListNode.Register(version: version, value: node.title?.value ?? .empty)
            node.registers = node.registers.mapValues { ListNode.Register(version: version, value: $0.value) }
            node.place?.version = version
            if node.id == changes.root { node.place = ListNode.Place(version: version, parent: list.id, key: key) }
            try nodes.merge(node)
        }
    }
}

extension RejectedChanges {
    /// Adds a copy of a node after those of the hexes around it.
    fileprivate mutating func add(_ row: ListRow, isChanged: Bool, in storage: SQLListStorage, epoch: UTF8Text) throws {
        func id(_ node: ListNode.ID) -> ListNode.ID { ListNode.ID(ofCopyOf: node, in: storage.list, epoch: epoch) }
        let (node, parent) = (row.node, row.container ?? storage.list)
        if node.id != storage.list, !ids.contains(parent), let around = try storage.row(parent) {
            try add(around, isChanged: false, in: storage, epoch: epoch)
        }
        ids.insert(node.id)
        var copy = ListNode(id: id(node.id))
        (copy.url, copy.service, copy.title, copy.registers) = (node.url, node.service, node.title, node.registers)
        copy.place = node.place.map { ListNode.Place(version: $0.version, parent: id(parent), key: $0.key) }
        if node.id == storage.list {
            copy.title?.value = UTF8Text("\(try storage.subject()) (not accepted)")
        }
        copies.append(Copy(node: copy, isChanged: isChanged))
    }
}
