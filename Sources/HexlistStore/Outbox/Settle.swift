internal import GRDB
import HexlistJSON
public import HexlistModel

extension HexStore {
    /// Records a peer's answers in one transaction: the final states of rows, with their events, and notes on rows that still wait. A row with
    /// too many failures (`AttemptRecord.failureLimit`) is given up: it becomes `failed` with the code `retryLimit`.
    ///
    /// `stored` and `held` replace any earlier state, because the peer reports them; `rejected` and `failed` only apply to rows that still
    /// wait. The bodies of a pack go with its last row that is not delivered. A delivery resets the failures of the peer's other rows. Rows of other peers, and
    /// missing ones, are skipped.
    ///
    /// A crash before it is written forgets it; then the rows are sent again, and their peer recognises them.
    ///
    /// - Parameters:
    ///   - next: the time of the next attempt of rows that were refused for now, in milliseconds since 1970.
    ///   - isAwaited: whether somebody waits for it. Otherwise it waits for a transaction to share, 20 ms at most (`WaitingPieces`).
    ///   - completion: called on the writer's thread with the rows whose state changed. A failure leaves them as they were.
    public func settle(
        _ results: [RowResult], of peer: PeerID, next: Int64?, at now: Int64, isAwaited: Bool,
        completion: @escaping @Sendable (Result<[OutboxMove], any Error>) -> Void
    ) {
        submit(
            rows: results.count, waitsForOthers: !isAwaited,
            { writer in
                let moves = try writer.settle(results.compactMap(Settlement.init), of: peer, at: now)
                let notes = results.compactMap { AttemptRecord($0, nextAttemptAt: next) }
                try writer.note(notes)
                return moves + (try writer.giveUp(notes, of: peer, at: now))
            }, completion: completion)
    }

    /// Records a failed transfer to a peer on one of its rows, in one transaction. A row with too many failures is given up, as by `settle`.
    ///
    /// - Parameters:
    ///   - row: the row that was on its way; `nil` for the first one that waits, which shows failures that no row is to blame for.
    ///   - counts: whether the failure counts against the row.
    ///   - next: the time of the next attempt, in milliseconds since 1970.
    ///   - error: the reason, for people.
    ///   - completion: called as that of `settle`.
    public func transferFailed(
        to peer: PeerID, blaming row: Int64?, counts: Bool, next: Int64, error: String, at now: Int64,
        completion: @escaping @Sendable (Result<[OutboxMove], any Error>) -> Void
    ) {
        submit(
            { writer -> [OutboxMove] in
                guard let id = try row ?? writer.firstQueued(for: peer) else { return [] }
                let note = AttemptRecord(
                    id: id, attempts: 1, failures: counts ? 1 : 0, nextAttemptAt: next, waitingFor: OutboxWait.retry.rawValue,
                    lastError: error)
                try writer.note([note])
                return try writer.giveUp([note], of: peer, at: now)
            }, completion: completion)
    }

    /// Rejects the oldest rows waiting for a peer that blocked this node, up to `outboxRejectLimit`, in one transaction.
    ///
    /// - Parameter completion: called on the writer's thread with the rejected rows; reject again while there are as many.
    public func rejectQueued(
        of peer: PeerID, code: String, message: String, at now: Int64,
        completion: @escaping @Sendable (Result<[OutboxMove], any Error>) -> Void
    ) {
        submit(
            { try $0.rejectQueued(peer, code: code, message: message, limit: HexStore.outboxRejectLimit, at: now) }, completion: completion)
    }

    /// The most rows that one transaction rejects, so that one piece of work does not delay the others.
    public static let outboxRejectLimit = 1_000
}

extension StoreWriter {
    /// 7 days in milliseconds: the time a delivered, cancelled or expired row is remembered, so that its key stays known.
    private static let rememberedFor: Int64 = 7 * 86_400_000

    /// Records the final states of rows of one peer, with their events (`hex.delivered`, `hex.rejected`, `hex.failed`). Consecutive rows
    /// with the same result are written together.
    ///
    /// - Returns: the rows that changed.
    @discardableResult
    func settle(_ settlements: [Settlement], of peer: PeerID, at now: Int64) throws -> [OutboxMove] {
        guard let row = try peerRow(peer) else { return [] }
        return try change {
            var together: [Settlement] = []
            for settlement in settlements { settlement.add(to: &together) }
            let moves = try together.flatMap { try settle($0.ids, as: $0, of: row, at: now) }
            if settlements.contains(where: \.state.isDelivered) {
                try self.run("UPDATE outbox SET failures = 0 WHERE peer = ? AND failures > 0 AND state = 'queued'", row.id)
            }
            return moves
        }
    }

    /// Gives up those rows with a noted failure that have `failureLimit` failures by now.
    /// - Returns: the rows that changed.
    func giveUp(_ notes: [AttemptRecord], of peer: PeerID, at now: Int64) throws -> [OutboxMove] {
        let blamed = notes.filter { $0.failures > 0 }.map(\.id)
        guard !blamed.isEmpty else { return [] }
        let failed = try outboxRows(blamed).filter { $0.state == .queued && $0.failures >= AttemptRecord.failureLimit }
        return try settle(
            failed.map {
                Settlement(
                    id: $0.id, state: .failed, code: "retryLimit",
                    message: "The peer failed on it \(AttemptRecord.failureLimit) times. Last: \($0.lastError ?? "no reason given")")
            }, of: peer, at: now)
    }

    func firstQueued(for peer: PeerID) throws -> Int64? {
        try outboxBatch(peer, after: 0, limit: 1, maxBytes: 0).items.first?.id
    }

    /// - Returns: the rejected rows.
    func rejectQueued(_ peer: PeerID, code: String, message: String?, limit: Int, at now: Int64) throws -> [OutboxMove] {
        guard let row = try peerRow(peer) else { return [] }
        let runs = try all(
            "SELECT \(OutboxRowRange.columns) FROM outbox WHERE peer = ? AND state = 'queued' ORDER BY id LIMIT ?", row.id, limit,
            read: OutboxRowRange.init)
        let ids = Array(runs.compactMap(\.self).lazy.flatMap(\.ids).prefix(limit))
        return try settle(ids.map { Settlement(id: $0, state: .rejected, code: code, message: message) }, of: peer, at: now)
    }

    // MARK: - Inside `change`

    /// Moves a run to a final state, without an event.
    func move(_ run: OutboxRowRange, to state: OutboxState, at now: Int64, code: String? = nil, message: String? = nil) throws {
        // A delivered, cancelled or expired row is forgotten after a while, the others expire when they would have.
        try self.run(
            """
            UPDATE outbox SET state = ?1, code = ?2, message = ?3, settledAt = ?4, dueAt = coalesce(?5, dueAt), nextAttemptAt = NULL,
                waitingFor = NULL WHERE id = ?6
            """, state.rawValue, code, message, now, state.keepsBody ? nil : lived &+ Self.rememberedFor, run.ids.lowerBound)
        if state.keepsBody { try takeOut(run) } else { try letGo(ofPack: run.pack) }
        tally.outbox[run.state] &-= run.count
        tally.outbox[state] &+= run.count
        if run.state == .queued { count(peer: run.peer) { $0.queued &-= run.count } }
    }

    private func settle(_ ids: ClosedRange<Int64>, as end: Settlement, of peer: PeerRow, at now: Int64) throws -> [OutboxMove] {
        var moves: [OutboxMove] = []
        for run in try outboxRuns(ids) where run.peer == peer.id && takes(end.state, after: run.state) {
            let run = try cut(run, to: ids)
            try move(run, to: end.state, at: now, code: end.code, message: end.message)
            if end.state.isDelivered {
                try endOffers(deliveredBy: run.ids, to: peer.uuid)
            } else {
                try endOffers(with: run.ids, of: peer.id, forGood: false)
            }
            moves.append(OutboxMove(ids: run.ids, peer: PeerID(peer.uuid), from: run.state, to: end.state))
        }
        for run in ConsecutiveRuns(moves.flatMap(\.ids)) {
            let (type, data) = event(of: end)
            try record(type, at: now, count: run.count, peer: PeerID(peer.uuid), outboxID: run.lowerBound, data: data)
        }
        return moves
    }

    private func takes(_ state: OutboxState, after earlier: OutboxState) -> Bool {
        switch state {
        case .stored, .held: !earlier.isDelivered
        case .rejected, .failed: earlier == .queued
        case .queued, .sending, .expired, .cancelled: false
        }
    }

    private func event(of end: Settlement) -> (EventType, String) {
        switch end.state {
        case .stored, .held: (.hexDelivered, JSONText.object([("state", end.state.rawValue)]))
        case .failed: (.hexFailed, JSONText.object([("code", end.code), ("message", end.message)]))
        case .rejected, .queued, .sending, .expired, .cancelled:
            (.hexRejected, JSONText.object([("code", end.code), ("message", end.message)]))
        }
    }
}
