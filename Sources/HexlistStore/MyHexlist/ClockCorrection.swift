internal import HexlistLists
public import HexlistModel

// Other machines leave out versions in shared lists that are more than 12 hours ahead. A machine whose clock was ahead corrects such
// versions when its clock is right, as long as no other machine can have them: a lower version would lose against theirs. `list.exchangedAt`
// is the latest time at which a page of the list was sent or received. It never decreases, also if the clock does.

extension HexStore {
    /// Gives values of the lists that are exchanged with a peer new versions if this machine's clock was more than 12 hours ahead
    /// (`ListLimits.clockAhead`) when they were written. Later changes get versions by the present clock again. The change log cannot undo
    /// the corrected values, because they count as changed since.
    ///
    /// Call while the clocks of this machine and of the peer agree. A list stays as it is if a page of it was exchanged at a time that is
    /// more than 12 hours ahead: the present clock is the wrong one then, or the peer may have the values.
    /// - Parameter now: milliseconds since 1970.
    /// - Returns: the number of corrected hexes and links, deleted ones included.
    public func correctVersions(inListsOf peer: PeerID, at now: Int64) async throws -> Int {
        guard try await read({ try !$0.listsAhead(with: peer, at: now).isEmpty }) else { return 0 }
        return try await write { writer in
            try writer.change { try writer.correctVersions(of: writer.listsAhead(with: peer, at: now), at: now) }
        }
    }

    /// Corrects the versions of a list (`correctVersions(inListsOf:at:)`) before a page of it is sent to a peer, and records the time of the
    /// exchange. Blocks.
    func prepareToSend(_ list: ListNode.ID, to peer: PeerID, at now: Int64) throws {
        let isPrepared = try readSync { reader in
            guard let record = try ListRecord(list, on: reader), record.isShared else { return true }
            return try reader.isExchangeRecorded(record, at: now) && !reader.listsAhead(with: peer, at: now).contains(record.row)
        }
        guard !isPrepared else { return }
        try writeSync { writer in
            try writer.change {
                guard let record = try ListRecord(list, on: writer), record.isShared else { return }
                _ = try writer.correctVersions(of: writer.listsAhead(with: peer, at: now).filter { $0 == record.row }, at: now)
                try writer.recordExchange(of: record, at: now)
            }
        }
    }
}

extension StoreReader {
    /// Returns the shared lists with versions to be corrected that are exchanged with a peer and that the user may change, as
    /// `ListRecord.row`.
    /// - Parameter now: milliseconds since 1970.
    fileprivate func listsAhead(with peer: PeerID, at now: Int64) throws -> [Int64] {
        let latest = now.addingClamped(ListLimits.clockAhead)
        return try all(
            """
            SELECT id FROM list WHERE id <> ?1 AND entry IS NOT NULL AND clock > ?2 AND exchangedAt <= ?3
                AND (EXISTS (SELECT 1 FROM ownMachine WHERE peer = ?4)
                    OR EXISTS (SELECT 1 FROM listPeer WHERE listPeer.list = list.id AND listPeer.peer = ?4 AND access <> 'none'))
            """, ListRecord.mine, HybridClock.latest(milliseconds: latest), latest, peer.uuid
        ) { $0.int64(0) }.filter { try isWritable($0) }
    }

    /// The recorded time may be this much earlier than the last exchange, so that not every page is a write.
    private static let precision: Int64 = 3_600_000

    /// Whether `list.exchangedAt` is at most an hour before a time.
    fileprivate func isExchangeRecorded(_ list: ListRecord, at now: Int64) throws -> Bool {
        try first("SELECT exchangedAt FROM list WHERE id = ?", list.row) { $0.int64(0) } ?? .max >= now.addingClamped(-Self.precision)
    }
}

extension StoreWriter {
    /// Records that a page of a shared list was sent or received.
    /// - Parameter now: milliseconds since 1970.
    func recordExchange(of list: ListRecord, at now: Int64) throws {
        guard list.isShared, try !isExchangeRecorded(list, at: now) else { return }
        try run("UPDATE list SET exchangedAt = max(exchangedAt, ?) WHERE id = ?", now, list.row)
    }

    /// - Parameter lists: `ListRecord.row`.
    fileprivate func correctVersions(of lists: [Int64], at now: Int64) throws -> Int {
        let latest = HybridClock.latest(milliseconds: now.addingClamped(ListLimits.clockAhead))
        return try lists.reduce(0) { count, list in
            // The new number has written no versions. Other machines request all rows because of it.
            try renewReplica(of: list)
            return try changeMine(at: now, in: list) { try count + $0.nodes.renewVersions(after: latest) }
        }
    }
}
