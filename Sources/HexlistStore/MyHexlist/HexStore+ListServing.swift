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

extension StoreReader {
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
}

extension StoreWriter {
    /// Whether a request may cause a new replica number: once an hour, so that a peer cannot use up `maximumReplicas`.
    fileprivate func mayRenewReplica(of record: ListRecord, at now: Int64) throws -> Bool {
        let last = try first("SELECT outdatedAt FROM list WHERE id = ?", record.row) { $0.optionalInt64(0) } ?? nil
        if let last, last <= now, now < last.addingClamped(3_600_000) { return false }
        try run("UPDATE list SET outdatedAt = ? WHERE id = ?", now, record.row)
        return true
    }
}
