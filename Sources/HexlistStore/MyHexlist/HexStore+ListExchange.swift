internal import GRDB
public import HexlistLists
public import HexlistModel

/// The answer to a request of an own machine for a page of My Hexlist.
public enum ListPageAnswer: Sendable, Equatable {
    /// The page's JSON.
    case page([UInt8])
    /// The peer may not see the list, or there is no such list.
    case notFound
    /// This machine has only a part of the list, or may not draw another new replica number yet (`mayRenewReplica`).
    case busy
}

extension StoreReader {
    /// Returns the answer to `GET /lists`.
    /// - Parameter now: milliseconds since 1970.
    public func listOverview(for peer: PeerID, at now: Int64) throws -> ListOverview {
        var overview = ListOverview(now: now, isOwnMachine: try isOwnMachine(peer))
        let list = try ListRecord(on: self)
        guard overview.isOwnMachine, let sequence = list.sequence, let digest = list.digest else { return overview }
        let size = try mineSize()
        overview.lists = [
            ListOverview.Entry(
                list: list.id, role: .own, hexes: Int64(size.hexes), links: Int64(size.links),
                replica: list.replica, sequence: sequence, digest: digest)
        ]
        return overview
    }

    /// Returns the state of My Hexlist in relation to an own machine; `nil` if the peer is none.
    public func localListState(with peer: PeerID) throws -> ListExchange.LocalState? {
        let list = try ListRecord(on: self)
        guard try isOwnMachine(peer), let sequence = list.sequence, let digest = list.digest else { return nil }
        return ListExchange.LocalState(
            list: list.id, sequence: sequence, digest: digest, cursor: try listCursor(of: peer),
            acknowledged: try acknowledged(by: peer))
    }

    /// Returns the request for the next page of a list: of My Hexlist, or of the collection that will replace it.
    public func listPageRequest(of list: ListNode.ID, from peer: PeerID) throws -> ListPageRequest {
        let record = try ListRecord(on: self)
        let cursor = list == record.id ? try listCursor(of: peer) : try joinCursor(of: list, from: peer)
        return ListPageRequest(cursor: cursor, requester: record.replica)
    }

    func listCursor(of peer: PeerID) throws -> ListCursor? {
        try first(
            "SELECT replica.number, seq FROM listCursor JOIN replica ON replica.id = listCursor.replica WHERE list = 1 AND peer = ?",
            peer.uuid, read: Self.cursor)
    }

    func joinCursor(of list: ListNode.ID, from peer: PeerID) throws -> ListCursor? {
        try first(
            "SELECT replica.number, seq FROM joining JOIN replica ON replica.id = joining.replica WHERE list = ? AND peer = ?", list.uuid,
            peer.uuid, read: Self.cursor)
    }

    private static func cursor(_ row: SQLStatement) -> ListCursor {
        ListCursor(replica: ReplicaNumber(UInt64(bitPattern: row.int64(0))), sequence: row.int64(1))
    }

    private func acknowledged(by peer: PeerID) throws -> Int64 {
        try first("SELECT acked FROM listCursor WHERE list = 1 AND peer = ?", peer.uuid) { $0.int64(0) } ?? 0
    }

    /// Returns the answer to a request, the number up to which the requester has all rows if it differs from the recorded one, whether the
    /// requester has a greater number than this store, because this is an old copy of the store (the answer is not to be sent then), and the
    /// replica whose numbers these are.
    fileprivate func serve(_ list: ListNode.ID, _ request: ListPageRequest, to peer: PeerID) throws -> (
        answer: ListPageAnswer, acknowledged: Int64?, isOutdated: Bool, replica: ReplicaNumber
    ) {
        let record = try ListRecord(on: self)
        guard try isOwnMachine(peer), let sequence = record.sequence else { return (.notFound, nil, false, record.replica) }
        guard list == record.id else {
            let isJoining = try first("SELECT 1 FROM joining WHERE list = ?", list.uuid) { _ in true } ?? false
            return (isJoining ? .busy : .notFound, nil, false, record.replica)
        }
        let after = request.cursor.map { $0.replica == record.replica ? $0.sequence : 0 } ?? 0
        guard after <= sequence else { return (.busy, nil, true, record.replica) }
        let requester = try first("SELECT id FROM replica WHERE number = ?", Int64(bitPattern: request.requester.value)) { $0.int64(0) }
        var encoder = ListPageEncoder(list: list, receiver: .ownMachine)
        var (through, rows, isLast, isEmpty) = (after, 0, true, true)
        try SQLListStorage(record, on: self).changed(after: after, limit: ListLimits.pageNodes + 1) { node, number, source in
            guard rows < ListLimits.pageNodes else {
                isLast = false
                return false
            }
            if source == nil || source != requester {
                guard encoder.append(node) else {
                    isLast = false
                    return false
                }
                isEmpty = false
            }
            rows += 1
            through = number
            return true
        }
        if isLast { through = sequence }
        let json = encoder.encoded(replica: record.replica, after: after, through: through, isLast: isLast)
        // Rows that were left out came from the requester.
        let acknowledged = isEmpty ? through : after
        return (.page(json), try self.acknowledged(by: peer) == acknowledged ? nil : acknowledged, false, record.replica)
    }
}

/// The effect of a page on My Hexlist.
public struct ListPageResult: Sendable, Equatable {
    /// The number of the page in the change log; `nil` if it changed nothing that is shown, and for a collection that is to be joined.
    public var change: Int64?
    /// Numbers of hexes and links, at all levels.
    public var hexes = MyHexlistChange.Counts()
    public var links = MyHexlistChange.Counts()
    /// The number of links in My Hexlist before the page; 0 if it deleted none.
    public var linksBefore = 0

    public init(change: Int64? = nil, hexes: MyHexlistChange.Counts = .init(), links: MyHexlistChange.Counts = .init()) {
        (self.change, self.hexes, self.links) = (change, hexes, links)
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
    /// Answers a request of a peer for a page, and records which rows it acknowledges. Blocks.
    /// - Parameter now: milliseconds since 1970.
    public func listPageSync(_ list: ListNode.ID, _ request: ListPageRequest, for peer: PeerID, at now: Int64) throws -> ListPageAnswer {
        let served = try readSync { try $0.serve(list, request, to: peer) }
        guard served.acknowledged != nil || served.isOutdated else { return served.answer }
        return try writeSync { writer in
            try writer.change {
                guard try writer.isOwnMachine(peer) else { return .notFound }
                var served = served
                // Since the read, the rows may have got other numbers, by a join or a repair.
                if try ListRecord(on: writer).replica != served.replica { served = try writer.serve(list, request, to: peer) }
                if served.isOutdated {
                    guard try writer.mayRenewReplica(at: now) else { return .busy }
                    try writer.renewReplica()
                    // Other machines left out rows that they had received from the lost part of this store.
                    try writer.run("UPDATE listCursor SET replica = NULL, seq = 0 WHERE list = 1")
                    served = try writer.serve(list, request, to: peer)
                }
                guard let acknowledged = served.acknowledged else { return served.answer }
                try writer.run(
                    """
                    INSERT INTO listCursor (list, peer, acked) VALUES (1, ?, ?) ON CONFLICT DO UPDATE SET acked = excluded.acked
                    """, peer.uuid, acknowledged)
                return served.answer
            }
        }
    }

    /// Merges a page of My Hexlist, and moves the cursor, in one transaction.
    /// - Parameters:
    ///   - request: the request that the page answers.
    ///   - backup: of the first page of a machine: the path of the caller's backup, for the event `list.joined`.
    ///   - now: milliseconds since 1970.
    ///   - diskReserve: bytes of the file system to leave free.
    /// - Throws: `ListFault`.
    public func mergeListPage(
        _ page: ListPage, answering request: ListPageRequest, from peer: PeerID, backup: String? = nil, at now: Int64, diskReserve: Int64
    ) async throws -> ListPageResult {
        try await write(rows: page.nodes.count) { writer in
            try writer.change {
                try writer.checkSpace(rows: page.nodes.count, bytes: page.nodes.reduce(0) { $0 + $1.textBytes }, reserve: diskReserve)
                if try page.list == writer.mineList(), !page.nodes.isEmpty, try !writer.hasReceivedList(from: peer) {
                    try writer.recordJoin(with: peer, backup: backup, at: now)
                }
                return try writer.mergeListPage(page, answering: request, from: peer, at: now)
            }
        }
    }

    /// Draws a new replica number, and forgets what was received of an own machine, so that both request all rows of each other.
    public func repairList(with peer: PeerID) async throws {
        try await write { writer in
            try writer.change {
                try writer.renewReplica()
                try writer.run("UPDATE listCursor SET replica = NULL, seq = 0 WHERE list = 1 AND peer = ?", peer.uuid)
            }
        }
    }
}

extension StoreWriter {
    /// Maximum number of rows of My Hexlist with other machines.
    static let maximumNodes: Int64 = 1_000_000
    /// Maximum number of replica numbers. Each transaction has them in memory. A machine gets a new one when it is restored, joins a
    /// collection or repairs a difference.
    static let maximumReplicas = 10_000
    /// Bytes on disk that are assumed for each row in addition to its texts: the rows of `node`, `link` and their indexes.
    private static let rowBytes: Int64 = 1_024

    /// - Parameter bytes: the bytes of the texts. They are stored in `node`, in `hex` or `link`, and in the change log.
    func checkSpace(rows: Int, bytes: Int, reserve: Int64) throws {
        if try isDiskFull(reserve: reserve, writing: Int64(rows) &* Self.rowBytes &+ 3 &* Int64(bytes)) { throw ListFault.diskFull }
    }

    fileprivate func mergeListPage(
        _ page: ListPage, answering request: ListPageRequest, from peer: PeerID, at now: Int64
    ) throws -> ListPageResult {
        let record = try ListRecord(on: self)
        guard page.answers(request, of: page.list) else { throw ListFault.invalid }
        guard try isOwnMachine(peer), try listPageRequest(of: page.list, from: peer) == request else { throw ListFault.outdated }
        guard page.list == record.id else { return try mergeJoinPage(page, from: peer, at: now) }
        let count = try first("SELECT count(*) FROM node") { $0.int64(0) } ?? 0
        guard count + Int64(page.nodes.count) <= Self.maximumNodes else { throw ListFault.full }
        try removeJoining(from: peer)
        // The first exchange adds the peer's former collection. Undoing that would delete it on both machines.
        let isFirstExchangeOver =
            try first("SELECT isFirstExchangeOver FROM listCursor WHERE list = 1 AND peer = ?", peer.uuid) { $0.bool(0) } ?? false
        var result = try changeMine(at: now, as: isFirstExchangeOver ? .received : .joined, from: peer) { try $0.merge(page) }
        if result.links.deleted > 0 {
            result.linksBefore = try mineSize().links + result.links.deleted - result.links.added - result.links.restored
        }
        let source = try replicaRow(of: page.replica)
        try checkReplicas()
        try run(
            """
            INSERT INTO listCursor (list, peer, replica, seq, at, isFirstExchangeOver) VALUES (1, ?, ?, ?, ?, ?)
            ON CONFLICT DO UPDATE SET (replica, seq, at, isFirstExchangeOver) = (excluded.replica, excluded.seq, excluded.at, excluded.isFirstExchangeOver)
            """, peer.uuid, source, page.through, now, isFirstExchangeOver || page.isLast && page.nodes.isEmpty)
        return result
    }

    /// Whether a request may cause a new replica number: once an hour, so that a peer cannot use up `maximumReplicas`.
    fileprivate func mayRenewReplica(at now: Int64) throws -> Bool {
        let last = try first("SELECT outdatedAt FROM list WHERE id = 1") { $0.optionalInt64(0) } ?? nil
        if let last, last <= now, now < last.addingClamped(3_600_000) { return false }
        try run("UPDATE list SET outdatedAt = ? WHERE id = 1", now)
        return true
    }

    /// Call after a merge, which adds the replica numbers of its versions.
    func checkReplicas() throws {
        guard try first("SELECT count(*) FROM replica", read: { $0.int(0) }) ?? 0 <= Self.maximumReplicas else { throw ListFault.full }
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
    fileprivate mutating func merge(_ page: ListPage) throws -> ListPageResult {
        nodes.storage.source = try nodes.storage.row(of: page.replica)
        for node in page.nodes { try nodes.merge(node, isReceived: true) }
        for change in nodes.changes where change.parts.contains(.restoring) { try countRestoredInside(change.after.id) }
        try deriveTree()
        return ListPageResult(change: draft.isEmpty ? nil : list.changes + 1, hexes: draft.hexes, links: draft.links)
    }
}
