internal import GRDB
public import HexlistLists
public import HexlistModel

/// The effect of a page on a list.
public struct ListPageResult: Sendable, Equatable {
    /// The shared hex; `nil` for My Hexlist.
    public var sharedHex: Int64?
    /// The numbers of the page in the change log. None if it changed nothing that is shown, and for a collection that is to be joined. Several
    /// if the page is large, or if other changes were made while it was merged.
    public var changes: [Int64] = []
    /// Numbers of hexes and links, at all levels.
    public var hexes = MyHexlistChange.Counts()
    public var links = MyHexlistChange.Counts()
    /// The number of links in the list before the page; 0 if it deleted none.
    public var linksBefore = 0
    /// Whether a row changed.
    public var changedRows = true
    /// The changes of this machine in another person's list that its owner did not accept. Known when all rows were received again.
    public var rejection: SharingChange?
    /// The reason for which only the first rows of the page were stored; `nil` if all were.
    public var fault: ListFault?

    public init(hexes: MyHexlistChange.Counts = .init(), links: MyHexlistChange.Counts = .init()) {
        (self.hexes, self.links) = (hexes, links)
    }

    /// Adds the effect of a later part of the page.
    fileprivate mutating func add(_ later: ListPageResult) {
        if links.deleted == 0, later.linksBefore > 0 { linksBefore = later.linksBefore - links.added - links.restored }
        sharedHex = later.sharedHex
        changes += later.changes.filter { !changes.contains($0) }
        hexes.add(later.hexes)
        links.add(later.links)
        changedRows = changedRows || later.changedRows
        rejection = rejection ?? later.rejection
    }
}

/// A reason for which rows of another machine cannot be stored now.
public enum ListFault: Error, Equatable {
    /// There would be more rows than `StoreWriter.maximumNodes`, or more replica numbers than `StoreWriter.maximumReplicas`.
    case full
    /// The disk would have less than its reserve.
    case diskFull
    /// The page does not answer the request.
    case invalid
    /// The store changed since the request: the peer is no own machine any more, another page was merged, or own rows were added before a
    /// join.
    case outdated
}

extension HexStore {
    /// Maximum links of a page of another person that one transaction merges. Other writes, such as that of an arriving hex, wait for one
    /// transaction. Without this bound it takes 0.2 to 0.4 s. Required by a bound of Tests/Faults/hostile: while a member fills a shared hex,
    /// the 99th percentile of the time for sending a hex to this machine is at most twice the usual one, or 50 ms.
    private static let linksPerTransaction = 100

    /// Merges a page of a list, and then moves the cursor. A page of an own machine is one transaction. Of a page of another person, the first
    /// transaction merges all hexes, because the tree of all hexes is derived in each one that has a hex. If a later transaction finds a
    /// fault, the rows of the earlier ones stay, and the page has to be requested again.
    /// - Parameters:
    ///   - request: the request that the page answers.
    ///   - sender: the relation of the peer for which the page was decoded.
    ///   - backup: of the first page of a machine: the path of the caller's backup, for the event `list.joined`.
    ///   - now: milliseconds since 1970.
    ///   - diskReserve: bytes of the file system to leave free.
    /// - Throws: `ListFault` if nothing was stored.
    public func mergeListPage(
        _ page: ListPage, answering request: ListPageRequest, from peer: PeerID, as sender: ListPage.Peer, backup: String? = nil,
        at now: Int64, diskReserve: Int64
    ) async throws -> ListPageResult {
        var (part, rest) = (page, page.nodes[...])
        var count = rest.count
        if sender == .otherPerson {
            let hexes = rest.filter { $0.id.kind == .hex }
            rest = (hexes + rest.filter { $0.id.kind != .hex })[...]
            count = max(hexes.count, Self.linksPerTransaction)
        }
        var result = ListPageResult()
        result.changedRows = false
        var logged: LoggedChange?
        repeat {
            part.nodes = Array(rest.prefix(count))
            rest = rest.dropFirst(count)
            count = Self.linksPerTransaction
            do {
                let (added, change) = try await write(rows: part.nodes.count) { [part, isLastPart = rest.isEmpty, logged] writer in
                    try writer.change {
                        var logged = logged
                        guard try writer.isOwnMachine(peer) == (sender == .ownMachine) else { throw ListFault.outdated }
                        try writer.checkSpace(
                            rows: part.nodes.count, bytes: part.nodes.reduce(0) { $0 + $1.textBytes }, reserve: diskReserve)
                        if try part.list == writer.mineList(), !part.nodes.isEmpty, try !writer.hasReceivedList(from: peer) {
                            try writer.recordJoin(with: peer, backup: backup, at: now)
                        }
                        let added = try writer.mergeListPage(
                            part, isLastPart: isLastPart, continuing: &logged, answering: request, from: peer, at: now)
                        return (added, logged)
                    }
                }
                result.add(added)
                logged = change
            } catch let fault as ListFault where result.changedRows {
                result.fault = fault
                return result
            }
        } while !rest.isEmpty
        return result
    }
}

extension StoreWriter {
    /// Maximum number of rows of My Hexlist with other machines.
    static let maximumNodes: Int64 = 1_000_000
    /// Maximum number of replica numbers. Each transaction has them in memory. A machine gets a new one when it is restored, joins a
    /// collection or repairs a difference.
    static let maximumReplicas = 10_000
    /// Maximum number of replica numbers that pages of one shared list add.
    static let maximumSharedReplicas = 500
    /// The part of the bounds of a shared list that the owner's machines accept of members, in percent. The rest is for the owner's own rows,
    /// texts and numbers, so that other members can receive all of it.
    private static let ownedListPercent = 75
    /// Maximum rows of an own shared list after a page.
    static let acceptedNodes = owned(ListLimits.sharedListNodes)

    private static func owned(_ maximum: Int) -> Int { maximum * ownedListPercent / 100 }

    /// Returns the part of a bound of a shared list up to which pages of a peer are accepted: less than all of it from a member.
    private func bound(_ maximum: Int, in list: ListRecord, from peer: PeerID) throws -> Int {
        try isOwned(list.row) && !isOwnMachine(peer) ? Self.owned(maximum) : maximum
    }

    /// Bytes on disk that are assumed for each row in addition to its texts: the rows of `node`, `link` and their indexes.
    private static let rowBytes: Int64 = 1_024

    /// - Parameter bytes: the bytes of the texts. They are stored in `node`, in `hex` or `link`, and in the change log.
    func checkSpace(rows: Int, bytes: Int, reserve: Int64) throws {
        if try isDiskFull(reserve: reserve, writing: Int64(rows) &* Self.rowBytes &+ 3 &* Int64(bytes)) { throw ListFault.diskFull }
    }

    /// - Parameters:
    ///   - isLastPart: whether `page` has the last rows of the received page, so that the cursor moves.
    ///   - logged: the change of the log with the earlier rows of the received page, and then with these ones too; `nil` for none.
    fileprivate func mergeListPage(
        _ page: ListPage, isLastPart: Bool, continuing logged: inout LoggedChange?, answering request: ListPageRequest, from peer: PeerID,
        at now: Int64
    ) throws -> ListPageResult {
        guard page.answers(request, of: page.list) else { throw ListFault.invalid }
        guard try listPageRequest(of: page.list, from: peer) == request else { throw ListFault.outdated }
        guard let record = try receivedList(page.list, from: peer) else {
            guard try isOwnMachine(peer), try ListRecord(page.list, on: self) == nil else { throw ListFault.outdated }
            return try mergeJoinPage(page, from: peer, at: now)
        }
        try checkFits(page, in: record, from: peer)
        // Otherwise a member could hide rows from another one, to which rows of its replica are not sent.
        guard page.replica != record.replica else { throw ListFault.invalid }
        if record.isShared,
            let replica = try first(
                "SELECT id FROM replica WHERE number = ?", Int64(bitPattern: page.replica.value), read: { $0.int64(0) }),
            try first(
                "SELECT 1 FROM listCursor WHERE list = ? AND replica = ? AND peer <> ?", record.row, replica, peer.uuid, read: { _ in true }
            ) != nil
        {
            throw ListFault.invalid
        }
        if !record.isShared { try removeJoining(from: peer) }
        // The first exchange adds everything that the other machine had. Undoing that would delete it on both machines. A member had nothing
        // before.
        let isMember =
            try first("SELECT 1 FROM listPeer WHERE list = ? AND peer = ? AND NOT isOwner", record.row, peer.uuid) { _ in true } ?? false
        let isFirstExchangeOver =
            try isMember
            || first("SELECT isFirstExchangeOver FROM listCursor WHERE list = ? AND peer = ?", record.row, peer.uuid) { $0.bool(0) }
                ?? false
        let replicas = try replicaCount()
        let hadUnconfirmedRows = try hasUnconfirmedRows(in: record.row)
        var result = try countingTexts(of: page, in: record, from: peer) {
            try changeMine(at: now, as: isFirstExchangeOver ? .received : .joined, from: peer, in: record.row) { transaction in
                if let logged { try transaction.continue(logged) }
                var result = try transaction.merge(page, from: peer, isMember: isMember)
                logged = transaction.loggedChange
                result.changes = logged.map { [$0.number] } ?? []
                return result
            }
        }
        if hadUnconfirmedRows, page.isLast, page.nodes.isEmpty { try removeUnconfirmedRows(of: record, at: now) }
        // Not earlier: the caller reports it.
        if isLastPart, try !hasUnconfirmedRows(in: record.row) { result.rejection = try takeRejection(in: record) }
        if record.isShared { result.sharedHex = try hex(ofNode: record.id, in: record.row) }
        if result.links.deleted > 0 {
            let links = try record.isShared ? sharedHexSize(record).links : mineSize().links
            result.linksBefore = links + result.links.deleted - result.links.added - result.links.restored
        }
        result.changedRows = try ListRecord(on: self, row: record.row).sequence != record.sequence
        let source = try replicaRow(of: page.replica)
        if try isOwnMachine(peer) { try markOwn(source) }
        try checkReplicas(of: record, since: replicas, from: peer)
        try recordExchange(of: record, at: now)
        guard isLastPart else { return result }
        try run(
            """
            INSERT INTO listCursor (list, peer, replica, seq, at, isFirstExchangeOver) VALUES (?, ?, ?, ?, ?, ?)
            ON CONFLICT DO UPDATE SET (replica, seq, at, isFirstExchangeOver) = (excluded.replica, excluded.seq, excluded.at, excluded.isFirstExchangeOver)
            """, record.row, peer.uuid, source, page.through, now, isFirstExchangeOver || page.isLast && page.nodes.isEmpty)
        if record.isShared, !isFirstExchangeOver, page.isLast, page.nodes.isEmpty { try removeRenewedFromTrash(sharedListEntries()) }
        return result
    }

    /// Throws `ListFault.full` if a list would have too many rows with a page.
    private func checkFits(_ page: ListPage, in record: ListRecord, from peer: PeerID) throws {
        guard record.isShared else {
            let count = try first("SELECT count(*) FROM node WHERE list = ?", record.row) { $0.int64(0) } ?? 0
            guard count + Int64(page.nodes.count) <= Self.maximumNodes else { throw ListFault.full }
            return
        }
        let new = try page.nodes.count { node in
            try first("SELECT 1 FROM node WHERE uuid = ? AND list = ?", node.id.uuid, record.row) { _ in true } == nil
        }
        // The greatest number is at least the number of rows, so the rows are counted only near the maximum.
        let maximum = try bound(ListLimits.sharedListNodes, in: record, from: peer)
        guard new > 0, (record.sequence ?? 0) + Int64(new) > Int64(maximum) else { return }
        guard try rowCount(of: record) + new <= maximum else { throw ListFault.full }
    }

    /// Adds the growth of the texts of a shared list by a page to `list.textBytes`.
    /// - Parameter merge: merges the page.
    /// - Throws: `ListFault.full` if they grow beyond the bound.
    private func countingTexts<Value>(
        of page: ListPage, in record: ListRecord, from peer: PeerID, _ merge: () throws -> Value
    ) throws -> Value {
        guard record.isShared else { return try merge() }
        let nodes = page.nodes.map(\.id)
        let before = try textBytes(of: nodes, in: record.row)
        let value = try merge()
        let growth = try textBytes(of: nodes, in: record.row) - before
        let total = max(0, (try first("SELECT textBytes FROM list WHERE id = ?", record.row) { $0.int(0) } ?? 0) + growth)
        guard try growth <= 0 || total <= bound(ListLimits.sharedListTextBytes, in: record, from: peer) else { throw ListFault.full }
        try run("UPDATE list SET textBytes = ? WHERE id = ?", total, record.row)
        return value
    }

    /// SQL expression: the UTF-8 bytes of the texts of a node.
    static let nodeTextBytes = """
        coalesce(length(CAST(title AS BLOB)), 0) + length(CAST(url AS BLOB)) + length(CAST(service AS BLOB)) + coalesce(length(registers), 0)
        """

    /// Returns the UTF-8 bytes of the texts of nodes.
    /// - Parameter list: `ListRecord.row`.
    func textBytes(of nodes: [ListNode.ID], in list: Int64) throws -> Int {
        let bytes = "SELECT \(Self.nodeTextBytes) FROM node WHERE uuid = ? AND list = ?"
        return try nodes.reduce(0) { try $0 + (first(bytes, $1.uuid, list) { $0.int(0) } ?? 0) }
    }

    func replicaCount() throws -> Int { try first("SELECT count(*) FROM replica") { $0.int(0) } ?? 0 }

    /// Call after a merge, which adds the replica numbers of its versions. Those of a shared list have a bound of their own, so that a member
    /// cannot use up the numbers of My Hexlist.
    /// - Parameter before: the number of replica numbers before the merge.
    private func checkReplicas(of record: ListRecord, since before: Int, from peer: PeerID) throws {
        let added = try replicaCount() - before
        guard added > 0 else { return }
        guard record.isShared else { return try checkReplicas() }
        try run("UPDATE list SET replicas = replicas + ? WHERE id = ?", added, record.row)
        let count = try first("SELECT replicas FROM list WHERE id = ?", record.row) { $0.int(0) } ?? 0
        guard try count <= bound(Self.maximumSharedReplicas, in: record, from: peer) else { throw ListFault.full }
    }

    /// Call after a merge into My Hexlist that added replica numbers.
    func checkReplicas() throws {
        let shared = try first("SELECT coalesce(sum(replicas), 0) FROM list") { $0.int(0) } ?? 0
        guard try replicaCount() - shared <= Self.maximumReplicas else { throw ListFault.full }
    }

    func replicaRow(of replica: ReplicaNumber) throws -> Int64 {
        let number = Int64(bitPattern: replica.value)
        if let row = try first("SELECT id FROM replica WHERE number = ?", number, read: { $0.int64(0) }) { return row }
        try run("INSERT INTO replica (number) VALUES (?)", number)
        return try first("SELECT last_insert_rowid()") { $0.int64(0) } ?? 0
    }
}

extension MyHexlistTransaction {
    /// Merges the nodes of a page.
    /// - Parameter isMember: whether the page came from a member of an own list. It cannot change the URL and service of a link, which have no
    ///   versions. A node that this machine has is deleted on its own if the trash would not list it: if its deletion mark names a hex that is
    ///   unknown, is no item of the trash, or was deleted with the node itself.
    ///
    /// In a list of another person, the URL and service of a link are those that its owner sent last. If the node of an own machine is older
    /// than the stored one, that machine does not have them yet.
    fileprivate mutating func merge(_ page: ListPage, from peer: PeerID, isMember: Bool) throws -> ListPageResult {
        let (hexesBefore, linksBefore) = (draft.hexes, draft.links)
        let isJoined = try !writer.isOwned(list.row)
        let isOwnersPage = try isJoined && !writer.isOwnMachine(peer)
        nodes.storage.source = try nodes.storage.row(of: page.replica)
        var marked: [ListNode.ID] = []
        for sent in page.nodes {
            var node = sent
            if isMember, let stored = try nodes.storage.row(node.id)?.node {
                if !stored.isPurged { (node.url, node.service) = (stored.url, stored.service) }
                if node.deletion?.with != nil, node.deletion != stored.deletion { marked.append(node.id) }
            }
            let takesContent = try isOwnersPage || isJoined && nodes.storage.row(node.id).map { !node.isOlder(than: $0.node) } ?? false
            try mergeOrReplace(node, sentAs: sent, takesContent: takesContent)
        }
        if !marked.isEmpty { try deleteAlone(marked) }
        // The owner does not receive a change of a reader.
        if try writer.isWritable(list.row) { try breakCycles(ofDeletionsOf: page.nodes.map(\.id)) }
        for change in nodes.changes where change.parts.contains(.restoring) { try countRestoredInside(change.after.id) }
        try deriveTree()
        var result = ListPageResult(hexes: draft.hexes, links: draft.links)
        result.hexes.subtract(hexesBefore)
        result.links.subtract(linksBefore)
        return result
    }

    /// Removes the hexes from the deletion marks of those nodes that are deleted, but in no item of the trash.
    private mutating func deleteAlone(_ marked: [ListNode.ID]) throws {
        derived.formUnion(try nodes.deriveTree())
        for id in marked {
            guard let row = try nodes.storage.row(id), row.state == .deleted, row.node.deletion?.with != nil, try !isInTrash(row.node)
            else {
                continue
            }
            try removeHex(fromMarkOf: row.node)
        }
    }

    private mutating func removeHex(fromMarkOf node: ListNode) throws {
        guard let deletion = node.deletion else { return }
        var changed = ListNode(id: node.id)
        changed.deletion = DeletionMark(version: deletion.version)
        try nodes.merge(changed, isReceived: true, sentAs: node)
    }

    /// Removes the hex from one deletion mark of each cycle of marks, because no hex of a cycle would be an item of the trash: from that of
    /// the hex with the smallest id, which all machines choose. Two machines make a cycle by moving one hex each into the other one and
    /// deleting that.
    private mutating func breakCycles(ofDeletionsOf nodes: [ListNode.ID]) throws {
        var visited: Set<ListNode.ID> = []  // each hex is read once, because a peer could send a long chain
        for start in nodes where start.kind == .hex {
            var path: [ListNode] = []
            var next: ListNode.ID? = start
            while let id = next, visited.insert(id).inserted {
                guard let node = try self.nodes.storage.row(id)?.node, node.isMarkedDeleted else { break }
                path.append(node)
                next = node.deletion?.with
            }
            // The path ends in a cycle if its last mark names one of its hexes.
            guard let last = path.last?.deletion?.with, let index = path.firstIndex(where: { $0.id == last }),
                let first = path[index...].min(by: { $0.id < $1.id })
            else { continue }
            try removeHex(fromMarkOf: first)
        }
    }

    /// Whether a deleted node was deleted together with an item of the trash.
    private func isInTrash(_ node: ListNode) throws -> Bool {
        var (top, level) = (node, 0)
        while let hex = top.deletion?.with {
            guard level < ListStructure.levels, hex.kind == .hex, let row = try nodes.storage.row(hex) else { return false }
            (top, level) = (row.node, level + 1)
        }
        let number = try writer.first("SELECT 1 FROM node WHERE uuid = ? AND list = ? AND trashNumber IS NOT NULL", top.id.uuid, list.row) {
            _ in true
        }
        return number ?? false
    }
}
