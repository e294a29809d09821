internal import GRDB
public import HexlistLists
public import HexlistModel

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
    func acknowledged(by peer: PeerID, in list: Int64) throws -> Int64 {
        try first("SELECT acked FROM listCursor WHERE list = ? AND peer = ?", list, peer.uuid) { $0.int64(0) } ?? 0
    }
}

extension HexStore {
    /// Draws a new replica number of a list, and forgets what was received of a peer, so that both request all rows of each other. They get
    /// back the rows that they sent earlier, in case they have lost them. Of a list that the user can only read, drops the rows that the
    /// owner has not any more, unless the owner has several machines: one of them may not have the rows of another one yet.
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
                if let exchanged = try writer.exchangedList(list, with: peer), case .owner = exchanged.relation, exchanged.access == .read {
                    let machines = try writer.first("SELECT count(*) FROM listPeer WHERE list = ? AND isOwner", record.row) { $0.int(0) }
                    if machines == 1 { try writer.beginNextEpoch(of: record) }
                }
            }
        }
    }
}
