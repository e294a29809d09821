internal import GRDB
import HexlistJSON
public import HexlistModel

extension HexStore {
    /// Records delivery results of a peer in one transaction. Sets the final states of rows and records their events, and records failed
    /// attempts of rows that stay queued. A row with too many failures (`FailedAttempt.failureLimit`) becomes `failed` with the code
    /// `retryLimit`.
    ///
    /// `stored` and `held` replace any state except each other, even `cancelled`, because the peer has the hex. `rejected` and `failed`
    /// apply only to queued rows. A delivery resets the failures of the peer's queued rows. Results for missing rows and for rows of other
    /// peers are ignored.
    ///
    /// If a crash loses results, the rows are sent again, and the peer answers `duplicate`.
    ///
    /// - Parameters:
    ///   - next: the time of the next attempt to send temporarily refused rows, in milliseconds since 1970.
    ///   - isAwaited: whether a caller waits for the write. If not, the write may be deferred for up to 20 ms to share a transaction.
    ///   - completion: called on the writer's thread with the rows whose state changed. After a failure no row is changed.
    public func settle(
        _ results: [RowResult], of peer: PeerID, next: Int64?, at now: Int64, isAwaited: Bool,
        completion: @escaping @Sendable (Result<[OutboxStateChange], any Error>) -> Void
    ) {
        submit(
            rows: results.count, isDeferrable: !isAwaited,
            { writer in
                let moves = try writer.settle(results.compactMap(Settlement.init), of: peer, at: now)
                let notes = results.compactMap { FailedAttempt($0, nextAttemptAt: next) }
                try writer.note(notes)
                return moves + (try writer.giveUp(notes, of: peer, at: now))
            }, completion: completion)
    }

    /// Records that sending to a peer failed, on one of its rows, in one transaction. A row with too many failures becomes `failed`, as in
    /// `settle`.
    ///
    /// - Parameters:
    ///   - row: the row in flight to which the failure is attributed; `nil` if there is none. Then the failure is recorded on the first
    ///     queued row, so that users see it.
    ///   - counts: whether the failure counts towards the row's `failureLimit`.
    ///   - next: the time of the next attempt, in milliseconds since 1970.
    ///   - error: the reason, for users.
    ///   - completion: as for `settle`.
    public func transferFailed(
        to peer: PeerID, blaming row: Int64?, counts: Bool, next: Int64, error: String, at now: Int64,
        completion: @escaping @Sendable (Result<[OutboxStateChange], any Error>) -> Void
    ) {
        submit(
            { writer -> [OutboxStateChange] in
                guard let id = try row ?? writer.firstQueued(for: peer) else { return [] }
                let note = FailedAttempt(
                    id: id, attempts: 1, failures: counts ? 1 : 0, nextAttemptAt: next, waitingFor: OutboxWaitReason.retry.rawValue,
                    lastError: error)
                try writer.note([note])
                return try writer.giveUp([note], of: peer, at: now)
            }, completion: completion)
    }

    /// Rejects the oldest queued rows of a peer that blocked this machine, at most `outboxRejectLimit` of them, in one transaction.
    ///
    /// - Parameter completion: called on the writer's thread with the rejected rows. If these are `outboxRejectLimit` rows, the caller has
    ///   to call the method again.
    public func rejectQueued(
        of peer: PeerID, code: String, message: String, at now: Int64,
        completion: @escaping @Sendable (Result<[OutboxStateChange], any Error>) -> Void
    ) {
        submit(
            { try $0.rejectQueued(peer, code: code, message: message, limit: HexStore.outboxRejectLimit, at: now) }, completion: completion)
    }

    /// Maximum number of rows that one transaction rejects, so that other requests are not delayed.
    public static let outboxRejectLimit = 1_000
}

extension StoreWriter {
    /// Time for which a delivered, cancelled or expired row is kept, so that its key is recognised if it is used again: 7 days, in
    /// milliseconds.
    private static let rememberedFor: Int64 = 7 * 86_400_000

    /// Sets the final states of rows of one peer and records their events (`hex.delivered`, `hex.rejected`, `hex.failed`). Consecutive rows
    /// with the same result are updated together.
    ///
    /// - Returns: the changed rows.
    @discardableResult
    func settle(_ settlements: [Settlement], of peer: PeerID, at now: Int64) throws -> [OutboxStateChange] {
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

    /// Marks rows as failed that have reached `failureLimit` after these attempts.
    /// - Returns: the changed rows.
    func giveUp(_ notes: [FailedAttempt], of peer: PeerID, at now: Int64) throws -> [OutboxStateChange] {
        let blamed = notes.filter { $0.failures > 0 }.map(\.id)
        guard !blamed.isEmpty else { return [] }
        let failed = try outboxRows(blamed).filter { $0.state == .queued && $0.failures >= FailedAttempt.failureLimit }
        return try settle(
            failed.map {
                Settlement(
                    id: $0.id, state: .failed, code: "retryLimit",
                    message: "The peer failed on it \(FailedAttempt.failureLimit) times. Last: \($0.lastError ?? "no reason given")")
            }, of: peer, at: now)
    }

    func firstQueued(for peer: PeerID) throws -> Int64? {
        try outboxBatch(peer, after: 0, limit: 1, maxBytes: 0).items.first?.id
    }

    /// Rejects the oldest queued rows of a peer, at most `limit` of them.
    /// - Returns: the rejected rows.
    func rejectQueued(_ peer: PeerID, code: String, message: String?, limit: Int, at now: Int64) throws -> [OutboxStateChange] {
        guard let row = try peerRow(peer) else { return [] }
        let rowRanges = try all(
            "SELECT \(OutboxRowRange.columns) FROM outbox WHERE peer = ? AND state = 'queued' ORDER BY id LIMIT ?", row.id, limit,
            read: OutboxRowRange.init)
        let ids = Array(rowRanges.compactMap(\.self).lazy.flatMap(\.ids).prefix(limit))
        return try settle(ids.map { Settlement(id: $0, state: .rejected, code: code, message: message) }, of: peer, at: now)
    }

    // MARK: - Inside `change`

    /// Moves a row range to a final state, without recording an event.
    func move(_ rowRange: OutboxRowRange, to state: OutboxState, at now: Int64, code: String? = nil, message: String? = nil) throws {
        // Delivered, cancelled and expired rows are deleted after 7 days; the others keep their deadline.
        try self.run(
            """
            UPDATE outbox SET state = ?1, code = ?2, message = ?3, settledAt = ?4, dueAt = coalesce(?5, dueAt), nextAttemptAt = NULL,
                waitingFor = NULL WHERE id = ?6
            """, state.rawValue, code, message, now, state.keepsBody ? nil : lived &+ Self.rememberedFor, rowRange.ids.lowerBound)
        if state.keepsBody { try moveToOwnPack(rowRange) } else { try cleanUp(pack: rowRange.pack) }
        counters.outbox[rowRange.state] &-= rowRange.count
        counters.outbox[state] &+= rowRange.count
        if rowRange.state == .queued { count(peer: rowRange.peer) { $0.queued &-= rowRange.count } }
    }

    private func settle(_ ids: ClosedRange<Int64>, as end: Settlement, of peer: PeerWriteColumns, at now: Int64) throws
        -> [OutboxStateChange]
    {
        var moves: [OutboxStateChange] = []
        for rowRange in try outboxRowRanges(ids) where rowRange.peer == peer.id && takes(end.state, after: rowRange.state) {
            let rowRange = try isolate(ids, of: rowRange)
            try move(rowRange, to: end.state, at: now, code: end.code, message: end.message)
            if end.state.isDelivered {
                try endOffers(deliveredBy: rowRange.ids, to: peer.uuid, keepingFor: Self.rememberedFor)
            } else {
                try endOffers(with: rowRange.ids, of: peer.id, forGood: false)
            }
            moves.append(OutboxStateChange(ids: rowRange.ids, peer: PeerID(peer.uuid), from: rowRange.state, to: end.state))
        }
        for range in ConsecutiveRuns(moves.flatMap(\.ids)) {
            let (type, data) = event(of: end)
            try record(type, at: now, count: range.count, peer: PeerID(peer.uuid), outboxID: range.lowerBound, data: data)
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
