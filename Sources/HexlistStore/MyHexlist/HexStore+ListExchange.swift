internal import GRDB
public import HexlistLists
public import HexlistModel

/// The answer to a request of a peer for a page of a list.
public enum ListPageAnswer: Sendable, Equatable {
    /// The page's JSON.
    case page([UInt8])
    /// The peer may not see the list, or there is no such list.
    case notFound
    /// This machine has only a part of the list, or may not draw another new replica number yet (`mayRenewReplica`).
    case busy
}

/// The state of a list, of which changes are announced to peers.
public struct AnnouncedList: Equatable, Sendable {
    public enum Access: Equatable, Sendable {
        case ownMachine
        /// - Parameters:
        ///   - peer: the access of a member; `write` for a machine of the owner.
        ///   - user: the access of the user.
        ///   - isShown: whether My Hexlist has an entry for the list.
        case otherPerson(peer: ListOverview.Access, user: ListOverview.Access, isShown: Bool)
    }

    public var id: ListNode.ID
    /// The greatest number of a row.
    public var sequence: Int64
    /// The access of each peer that exchanges the list, or exchanged it before.
    public var access: [PeerID: Access]
    /// The peers with which the sharing has ended. They do not learn of changed rows.
    public var former: Set<PeerID>
}

extension StoreReader {
    /// Returns the answer to `GET /lists`.
    /// - Parameter now: milliseconds since 1970.
    public func listOverview(for peer: PeerID, at now: Int64) throws -> ListOverview {
        var overview = ListOverview(now: now, isOwnMachine: try isOwnMachine(peer))
        let mine = try ListRecord(on: self)
        if overview.isOwnMachine, let sequence = mine.sequence, let digest = mine.digest {
            let size = try mineSize()
            overview.lists = [
                ListOverview.Entry(
                    list: mine.id, role: .own, hexes: Int64(size.hexes), links: Int64(size.links),
                    replica: mine.replica, sequence: sequence, digest: digest)
            ]
        }
        guard try overview.isOwnMachine || isTrusted(peer) else { return overview }
        for exchanged in try exchangedLists(with: peer) {
            let record = exchanged.record
            if exchanged.isRelayed, try !isComplete(record.row) { continue }
            var entry = ListOverview.Entry(
                list: record.id, role: exchanged.isOwned ? .shared : .joined, access: exchanged.announcedAccess, replica: record.replica,
                sequence: 0, digest: ListDigest())
            if case .member(_, let time) = exchanged.relation { entry.accessAt = time }
            if entry.access != .ended {
                let size = try sharedHexSize(record)
                entry.title = UTF8Text(PeerName.cut(try subject(of: record.id, in: record.row), bytes: ListLimits.overviewTitleBytes))
                (entry.hexes, entry.links) = (Int64(size.hexes), Int64(size.links))
                (entry.sequence, entry.digest) = (record.sequence ?? 0, record.digest ?? ListDigest())
                if overview.isOwnMachine { entry.epoch = exchanged.epoch }
            }
            overview.lists.append(entry)
        }
        return overview
    }

    func isTrusted(_ peer: PeerID) throws -> Bool {
        try first("SELECT 1 FROM peer WHERE uuid = ? AND trust = 'trusted'", peer.uuid) { _ in true } ?? false
    }

    /// A shared list that is exchanged with a peer.
    private struct ExchangedList {
        enum Relation { case ownMachine, owner, member(ListOverview.Access, at: Int64) }

        var record: ListRecord
        var isOwned: Bool
        /// Whether My Hexlist has an entry for it.
        var isShown: Bool
        /// The access that the owner granted to the user; `write` to an own list.
        var access: ListOverview.Access
        var epoch: UTF8Text
        var relation: Relation

        /// The member `access` in the overview for the peer: the access of a member; for the owner and own machines, that of the user;
        /// `ended` after the entry was deleted.
        var servedAccess: ListOverview.Access {
            guard isShown else { return .ended }
            return if case .member(let access, _) = relation { access } else { access }
        }

        /// The access in an overview. For the owner, `ended` means that the user has deleted the list, not that the owner ended the sharing.
        var announcedAccess: ListOverview.Access {
            if case .owner = relation, isShown, access == .ended { return .read }
            return servedAccess
        }

        /// Whether the peer may read rows of this machine.
        var isServed: Bool { isShown && servedAccess != .ended }

        /// Whether the peer requests rows of this machine. An owner does not request those of a reader, so there is nothing to acknowledge.
        var isRequested: Bool { if case .owner = relation { access != .read } else { true } }

        /// `ListExchange.LocalState.List.repairs`.
        var repairs: Bool { if case .member = relation { false } else { true } }

        /// The epoch that has to be equal on both machines. Other persons have none.
        var exchangedEpoch: UTF8Text { if case .ownMachine = relation { epoch } else { .empty } }

        /// Whether it is a list of another person, which the peer, an own machine, gets from this one.
        var isRelayed: Bool { if case .ownMachine = relation { !isOwned } else { false } }

        /// Whether rows of the peer are accepted.
        var receives: Bool {
            guard isShown else { return false }
            return switch relation {
            case .ownMachine: true
            case .owner: access != .ended
            case .member(let access, _): access == .write
            }
        }
    }

    /// Returns the shared lists that a peer may have, also those with ended access. Those that are shown come first, so that they fit into
    /// the overview.
    private func exchangedLists(with peer: PeerID) throws -> [ExchangedList] {
        let isOwn = try isOwnMachine(peer)
        return try all(
            """
            SELECT list.id, list.isOwned, list.entry IS NOT NULL, list.access, list.epoch, listPeer.isOwner, listPeer.access,
                coalesce(listPeer.accessAt, 0)
            FROM list LEFT JOIN listPeer ON listPeer.list = list.id AND listPeer.peer = ?
            WHERE list.id <> \(ListRecord.mine) AND (\(isOwn ? "list.entry IS NOT NULL" : "listPeer.peer IS NOT NULL"))
            ORDER BY list.entry IS NULL, list.id
            """, peer.uuid
        ) { row in
            (
                list: row.int64(0), isOwned: row.bool(1), isShown: row.bool(2), access: row.text(3), epoch: UTF8Text(row.text(4)),
                isOwner: row.bool(5), memberAccess: row.text(6), at: row.int64(7)
            )
        }.map { row in
            ExchangedList(
                record: try ListRecord(on: self, row: row.list), isOwned: row.isOwned, isShown: row.isShown,
                access: row.isOwned ? .write : ListOverview.Access(rawValue: row.access) ?? .ended, epoch: row.epoch,
                relation: isOwn
                    ? .ownMachine
                    : row.isOwner ? .owner : .member(ListOverview.Access(rawValue: row.memberAccess) ?? .ended, at: row.at))
        }
    }

    /// Returns a shared list that is exchanged with a peer; `nil` if there is none.
    private func exchangedList(_ list: ListNode.ID, with peer: PeerID) throws -> ExchangedList? {
        guard try isOwnMachine(peer) || isTrusted(peer) else { return nil }
        return try exchangedLists(with: peer).first { $0.record.id == list }
    }

    /// Returns the state of the lists that this machine exchanges with a peer.
    /// - Throws: `ListFault.outdated` if the peer is not trusted any more.
    public func localListState(with peer: PeerID) throws -> ListExchange.LocalState {
        guard try isTrusted(peer) else { throw ListFault.outdated }
        var state = ListExchange.LocalState(lists: [])
        let mine = try ListRecord(on: self)
        if try isOwnMachine(peer), let sequence = mine.sequence, let digest = mine.digest {
            state.lists = [
                ListExchange.LocalState.List(
                    id: mine.id, isCollection: true, sequence: sequence, digest: digest, cursor: try listCursor(in: mine.row, of: peer),
                    acknowledged: try acknowledged(by: peer, in: mine.row), receives: true, repairs: true)
            ]
        }
        for exchanged in try exchangedLists(with: peer) where exchanged.isShown {
            let record = exchanged.record
            let acknowledged = exchanged.isRequested ? try acknowledged(by: peer, in: record.row) : record.sequence
            state.lists.append(
                ListExchange.LocalState.List(
                    id: record.id, isCollection: false, sequence: record.sequence ?? 0, digest: record.digest ?? ListDigest(),
                    cursor: try listCursor(in: record.row, of: peer), acknowledged: acknowledged ?? 0, receives: exchanged.receives,
                    repairs: exchanged.repairs, epoch: exchanged.exchangedEpoch))
        }
        return state
    }

    /// Returns the state of all lists, for announcements.
    public func announcedLists() throws -> [AnnouncedList] {
        let own = try all("SELECT peer FROM ownMachine") { $0.uuid(0).map { PeerID($0) } }.compactMap(\.self)
        return try all("SELECT id, uuid, coalesce(seq, 0), access, entry IS NOT NULL FROM list ORDER BY id") {
            (
                row: $0.int64(0), id: $0.nodeID(1), sequence: $0.int64(2), access: ListOverview.Access(rawValue: $0.text(3)),
                isShown: $0.bool(4)
            )
        }.compactMap { list in
            guard let id = list.id else { return nil }
            var access: [PeerID: AnnouncedList.Access] = Dictionary(own.map { ($0, .ownMachine) }) { first, _ in first }
            var former: Set<PeerID> = []
            let others = try all("SELECT peer, access FROM listPeer WHERE list = ?", list.row) {
                (peer: $0.uuid(0).map { PeerID($0) }, access: ListOverview.Access(rawValue: $0.text(1)) ?? .ended)
            }
            for other in others {
                guard let peer = other.peer, access[peer] == nil else { continue }
                access[peer] = .otherPerson(peer: other.access, user: list.access ?? .ended, isShown: list.isShown)
                if other.access == .ended { former.insert(peer) }
            }
            return AnnouncedList(id: id, sequence: list.sequence, access: access, former: former)
        }
    }

    /// Returns the request for the next page of a list: of My Hexlist, of the collection that will replace it, or of a shared list.
    public func listPageRequest(of list: ListNode.ID, from peer: PeerID) throws -> ListPageRequest {
        guard let record = try ListRecord(list, on: self) else {
            return ListPageRequest(cursor: try joinCursor(of: list, from: peer), requester: try ListRecord(on: self).replica)
        }
        return ListPageRequest(cursor: try listCursor(in: record.row, of: peer), requester: record.replica)
    }

    /// - Parameter list: `ListRecord.row`.
    func listCursor(in list: Int64, of peer: PeerID) throws -> ListCursor? {
        try first(
            "SELECT replica.number, seq FROM listCursor JOIN replica ON replica.id = listCursor.replica WHERE list = ? AND peer = ?", list,
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

    /// - Parameter list: `ListRecord.row`.
    private func acknowledged(by peer: PeerID, in list: Int64) throws -> Int64 {
        try first("SELECT acked FROM listCursor WHERE list = ? AND peer = ?", list, peer.uuid) { $0.int64(0) } ?? 0
    }

    /// Returns the list whose rows a peer may read; `nil` if there is none.
    fileprivate func servedList(_ list: ListNode.ID, to peer: PeerID) throws -> ListRecord? {
        let mine = try ListRecord(on: self)
        if list == mine.id { return try isOwnMachine(peer) && mine.sequence != nil ? mine : nil }
        guard let exchanged = try exchangedList(list, with: peer), exchanged.isServed else { return nil }
        return try exchanged.isRelayed && !isComplete(exchanged.record.row) ? nil : exchanged.record
    }

    /// Returns the list for which rows of a peer are accepted; `nil` if there is none.
    fileprivate func receivedList(_ list: ListNode.ID, from peer: PeerID) throws -> ListRecord? {
        let mine = try ListRecord(on: self)
        if list == mine.id { return try isOwnMachine(peer) ? mine : nil }
        guard let exchanged = try exchangedList(list, with: peer), exchanged.receives else { return nil }
        return exchanged.record
    }

    /// Returns the answer to a request, the number up to which the requester has all rows if it differs from the recorded one, and the list
    /// as it was.
    fileprivate func serve(_ list: ListNode.ID, _ request: ListPageRequest, to peer: PeerID) throws -> ServedPage {
        let isOwn = try isOwnMachine(peer)
        guard let record = try servedList(list, to: peer), let sequence = record.sequence else {
            let isJoining = try isOwn && first("SELECT 1 FROM joining WHERE list = ?", list.uuid) { _ in true } ?? false
            return ServedPage(answer: isJoining ? .busy : .notFound)
        }
        var after = request.cursor.map { $0.replica == record.replica ? $0.sequence : 0 } ?? 0
        if after > sequence {
            guard !isOwn else { return ServedPage(answer: .busy, list: record, isOutdated: true) }
            after = 0  // another person cannot cause a new replica number, because of which all members would request all rows again
        }
        let requester = try first("SELECT id FROM replica WHERE number = ?", Int64(bitPattern: request.requester.value)) { $0.int64(0) }
        var encoder = ListPageEncoder(list: list, receiver: isOwn ? .ownMachine : .otherPerson)
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
        return ServedPage(
            answer: .page(json), list: record,
            acknowledged: try self.acknowledged(by: peer, in: record.row) == acknowledged ? nil : acknowledged)
    }
}

/// The answer to a request for a page, and its effects on the store.
private struct ServedPage {
    var answer: ListPageAnswer
    /// The list as it was when the answer was made; `nil` if the peer may not read it.
    var list: ListRecord?
    /// The number up to which the requester has all rows, if it differs from the recorded one.
    var acknowledged: Int64?
    /// Whether the requester, an own machine, has a greater number than this store, because this is an old copy of the store. The answer is
    /// not to be sent then.
    var isOutdated = false
}

/// The effect of a page on a list.
public struct ListPageResult: Sendable, Equatable {
    /// The shared hex; `nil` for My Hexlist.
    public var sharedHex: Int64?
    /// The number of the page in the change log; `nil` if it changed nothing that is shown, and for a collection that is to be joined.
    public var change: Int64?
    /// Numbers of hexes and links, at all levels.
    public var hexes = MyHexlistChange.Counts()
    public var links = MyHexlistChange.Counts()
    /// The number of links in the list before the page; 0 if it deleted none.
    public var linksBefore = 0
    /// Whether a row changed.
    public var changedRows = true
    /// The changes of this machine in another person's list that its owner did not accept. Known when all rows were received again.
    public var rejection: SharingChange?

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
        try prepareToSend(list, to: peer, at: now)
        let served = try readSync { try $0.serve(list, request, to: peer) }
        guard served.acknowledged != nil || served.isOutdated else { return served.answer }
        return try writeSync { writer in
            try writer.change {
                guard let record = try writer.servedList(list, to: peer) else { return .notFound }
                var served = served
                // Since the read, the rows may have got other numbers, by a join or a repair.
                if record.replica != served.list?.replica { served = try writer.serve(list, request, to: peer) }
                if served.isOutdated {
                    guard try writer.mayRenewReplica(of: record, at: now) else { return .busy }
                    try writer.renewReplica(of: record.row)
                    // Other machines left out rows that they had received from the lost part of this store.
                    try writer.run("UPDATE listCursor SET replica = NULL, seq = 0 WHERE list = ?", record.row)
                    served = try writer.serve(list, request, to: peer)
                }
                guard let acknowledged = served.acknowledged else { return served.answer }
                try writer.run(
                    """
                    INSERT INTO listCursor (list, peer, acked) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET acked = excluded.acked
                    """, record.row, peer.uuid, acknowledged)
                if acknowledged == record.sequence { writer.changed(.listAcknowledged) }
                return served.answer
            }
        }
    }

    /// Merges a page of a list, and moves the cursor, in one transaction.
    /// - Parameters:
    ///   - request: the request that the page answers.
    ///   - sender: the relation of the peer for which the page was decoded.
    ///   - backup: of the first page of a machine: the path of the caller's backup, for the event `list.joined`.
    ///   - now: milliseconds since 1970.
    ///   - diskReserve: bytes of the file system to leave free.
    /// - Throws: `ListFault`.
    public func mergeListPage(
        _ page: ListPage, answering request: ListPageRequest, from peer: PeerID, as sender: ListPage.Peer, backup: String? = nil,
        at now: Int64, diskReserve: Int64
    ) async throws -> ListPageResult {
        try await write(rows: page.nodes.count) { writer in
            try writer.change {
                guard try writer.isOwnMachine(peer) == (sender == .ownMachine) else { throw ListFault.outdated }
                try writer.checkSpace(rows: page.nodes.count, bytes: page.nodes.reduce(0) { $0 + $1.textBytes }, reserve: diskReserve)
                if try page.list == writer.mineList(), !page.nodes.isEmpty, try !writer.hasReceivedList(from: peer) {
                    try writer.recordJoin(with: peer, backup: backup, at: now)
                }
                return try writer.mergeListPage(page, answering: request, from: peer, at: now)
            }
        }
    }

    /// Draws a new replica number of a list, and forgets what was received of a peer, so that both request all rows of each other. They get
    /// back the rows that they sent earlier, in case they have lost them.
    public func repairList(_ list: ListNode.ID, with peer: PeerID) async throws {
        try await write { writer in
            try writer.change {
                guard let record = try writer.receivedList(list, from: peer) else { return }
                try writer.renewReplica(of: record.row)
                try writer.run(
                    """
                    UPDATE node SET via = \(SQLListStorage.severalReplicas) WHERE list = ?1 AND seq IS NOT NULL
                        AND via = (SELECT replica FROM listCursor WHERE list = ?1 AND peer = ?2)
                    """, record.row, peer.uuid)
                try writer.run("UPDATE listCursor SET replica = NULL, seq = 0 WHERE list = ? AND peer = ?", record.row, peer.uuid)
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
    /// Maximum number of replica numbers that pages of one shared list add.
    static let maximumSharedReplicas = 500
    /// The part of the bounds of a shared list that the owner's machines accept of members, in percent. The rest is for the owner's own rows,
    /// texts and numbers, so that other members can receive all of it.
    private static let ownedListPercent = 75
    /// Maximum rows of an own shared list after a page.
    static let acceptedNodes = owned(ListLimits.sharedListNodes)

    private static func owned(_ maximum: Int) -> Int { maximum * ownedListPercent / 100 }

    private func bound(_ maximum: Int, in list: ListRecord) throws -> Int { try isOwned(list.row) ? Self.owned(maximum) : maximum }

    /// Bytes on disk that are assumed for each row in addition to its texts: the rows of `node`, `link` and their indexes.
    private static let rowBytes: Int64 = 1_024

    /// - Parameter bytes: the bytes of the texts. They are stored in `node`, in `hex` or `link`, and in the change log.
    func checkSpace(rows: Int, bytes: Int, reserve: Int64) throws {
        if try isDiskFull(reserve: reserve, writing: Int64(rows) &* Self.rowBytes &+ 3 &* Int64(bytes)) { throw ListFault.diskFull }
    }

    fileprivate func mergeListPage(
        _ page: ListPage, answering request: ListPageRequest, from peer: PeerID, at now: Int64
    ) throws -> ListPageResult {
        guard page.answers(request, of: page.list) else { throw ListFault.invalid }
        guard try listPageRequest(of: page.list, from: peer) == request else { throw ListFault.outdated }
        guard let record = try receivedList(page.list, from: peer) else {
            guard try isOwnMachine(peer), try ListRecord(page.list, on: self) == nil else { throw ListFault.outdated }
            return try mergeJoinPage(page, from: peer, at: now)
        }
        try checkFits(page, in: record)
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
        var result = try countingTexts(of: page, in: record) {
            try changeMine(at: now, as: isFirstExchangeOver ? .received : .joined, from: peer, in: record.row) {
                try $0.merge(page, isMember: isMember)
            }
        }
        if hadUnconfirmedRows {
            if page.isLast, page.nodes.isEmpty { try removeUnconfirmedRows(of: record, at: now) }
            if try !hasUnconfirmedRows(in: record.row) { result.rejection = try takeRejection(in: record) }
        }
        if record.isShared { result.sharedHex = try hex(ofNode: record.id, in: record.row) }
        if result.links.deleted > 0 {
            let links = try record.isShared ? sharedHexSize(record).links : mineSize().links
            result.linksBefore = links + result.links.deleted - result.links.added - result.links.restored
        }
        result.changedRows = try ListRecord(on: self, row: record.row).sequence != record.sequence
        let source = try replicaRow(of: page.replica)
        try checkReplicas(of: record, since: replicas)
        try recordExchange(of: record, at: now)
        try run(
            """
            INSERT INTO listCursor (list, peer, replica, seq, at, isFirstExchangeOver) VALUES (?, ?, ?, ?, ?, ?)
            ON CONFLICT DO UPDATE SET (replica, seq, at, isFirstExchangeOver) = (excluded.replica, excluded.seq, excluded.at, excluded.isFirstExchangeOver)
            """, record.row, peer.uuid, source, page.through, now, isFirstExchangeOver || page.isLast && page.nodes.isEmpty)
        if record.isShared, !isFirstExchangeOver, page.isLast, page.nodes.isEmpty { try removeRenewedFromTrash(sharedListEntries()) }
        return result
    }

    /// Throws `ListFault.full` if a list would have too many rows with a page.
    private func checkFits(_ page: ListPage, in record: ListRecord) throws {
        guard record.isShared else {
            let count = try first("SELECT count(*) FROM node WHERE list = ?", record.row) { $0.int64(0) } ?? 0
            guard count + Int64(page.nodes.count) <= Self.maximumNodes else { throw ListFault.full }
            return
        }
        let new = try page.nodes.count { node in
            try first("SELECT 1 FROM node WHERE uuid = ? AND list = ?", node.id.uuid, record.row) { _ in true } == nil
        }
        // The greatest number is at least the number of rows, so the rows are counted only near the maximum.
        let maximum = try bound(ListLimits.sharedListNodes, in: record)
        guard new > 0, (record.sequence ?? 0) + Int64(new) > Int64(maximum) else { return }
        guard try rowCount(of: record) + new <= maximum else { throw ListFault.full }
    }

    /// Adds the growth of the texts of a shared list by a page to `list.textBytes`.
    /// - Parameter merge: merges the page.
    /// - Throws: `ListFault.full` if they grow beyond the bound.
    private func countingTexts<Value>(of page: ListPage, in record: ListRecord, _ merge: () throws -> Value) throws -> Value {
        guard record.isShared else { return try merge() }
        let nodes = page.nodes.map(\.id)
        let before = try textBytes(of: nodes, in: record.row)
        let value = try merge()
        let growth = try textBytes(of: nodes, in: record.row) - before
        let total = max(0, (try first("SELECT textBytes FROM list WHERE id = ?", record.row) { $0.int(0) } ?? 0) + growth)
        guard try growth <= 0 || total <= bound(ListLimits.sharedListTextBytes, in: record) else { throw ListFault.full }
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

    /// Whether a request may cause a new replica number: once an hour, so that a peer cannot use up `maximumReplicas`.
    fileprivate func mayRenewReplica(of record: ListRecord, at now: Int64) throws -> Bool {
        let last = try first("SELECT outdatedAt FROM list WHERE id = ?", record.row) { $0.optionalInt64(0) } ?? nil
        if let last, last <= now, now < last.addingClamped(3_600_000) { return false }
        try run("UPDATE list SET outdatedAt = ? WHERE id = ?", now, record.row)
        return true
    }

    func replicaCount() throws -> Int { try first("SELECT count(*) FROM replica") { $0.int(0) } ?? 0 }

    /// Call after a merge, which adds the replica numbers of its versions. Those of a shared list have a bound of their own, so that a member
    /// cannot use up the numbers of My Hexlist.
    /// - Parameter before: the number of replica numbers before the merge.
    private func checkReplicas(of record: ListRecord, since before: Int) throws {
        let added = try replicaCount() - before
        guard added > 0 else { return }
        guard record.isShared else { return try checkReplicas() }
        try run("UPDATE list SET replicas = replicas + ? WHERE id = ?", added, record.row)
        let count = try first("SELECT replicas FROM list WHERE id = ?", record.row) { $0.int(0) } ?? 0
        guard try count <= bound(Self.maximumSharedReplicas, in: record) else { throw ListFault.full }
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
    fileprivate mutating func merge(_ page: ListPage, isMember: Bool) throws -> ListPageResult {
        nodes.storage.source = try nodes.storage.row(of: page.replica)
        var marked: [ListNode.ID] = []
        for sent in page.nodes {
            var node = sent
            if isMember, let stored = try nodes.storage.row(node.id)?.node {
                if !stored.isPurged { (node.url, node.service) = (stored.url, stored.service) }
                if node.deletion?.with != nil { marked.append(node.id) }
            }
            try mergeOrReplace(node, sentAs: sent)
        }
        if !marked.isEmpty { try deleteAlone(marked) }
        // The owner does not receive a change of a reader.
        if try writer.isWritable(list.row) { try breakCycles(ofDeletionsOf: page.nodes.map(\.id)) }
        for change in nodes.changes where change.parts.contains(.restoring) { try countRestoredInside(change.after.id) }
        try deriveTree()
        return ListPageResult(change: draft.isEmpty ? nil : try ListRecord(on: writer).changes + 1, hexes: draft.hexes, links: draft.links)
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
