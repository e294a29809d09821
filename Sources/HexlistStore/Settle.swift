internal import GRDB
public import HexlistModel

/// What moving a row of the outbox needs to know of it.
struct OutboxEntry {
    var id: Int64
    var peer: Int64
    var state: OutboxState
    var bytes: Int64
}

extension HexStore {
    /// Records a peer's answers in one transaction: how rows of it ended, with their events, and what is known of those that still wait. Rows
    /// the peer has failed on too often (`AttemptNote.failureLimit`) are given up, `failed` with the code `retryLimit`.
    ///
    /// `stored` and `held` are taken whatever was recorded before, for the peer says so; `rejected` and `failed` only of rows that still
    /// wait. Delivered rows lose their body at once. A delivery clears what counted against the peer's other rows. Rows of other peers, and
    /// rows that are not there, are passed over.
    ///
    /// - Parameter completion: rows that changed their state, on the writer's thread. With a failure they are as they were.
    public func settle(
        _ settlements: [Settlement], noting notes: [AttemptNote] = [], of peer: PeerID, at now: Int64,
        completion: @escaping @Sendable (Result<[OutboxMove], any Error>) -> Void
    ) {
        submit(
            { writer in
                let moves = try writer.settle(settlements, of: peer, at: now)
                try writer.note(notes)
                return moves + (try writer.giveUp(notes, of: peer, at: now))
            }, completion: completion)
    }

    /// Records that a transfer to a peer failed, of one row, in one transaction; a row the peer has failed on too often is given up, as by
    /// `settle`.
    ///
    /// - Parameters:
    ///   - row: the one that was on its way; `nil` for the first that waits for the peer, which tells of failures no row is to blame for.
    ///   - counts: whether it counts against the row.
    ///   - next: when it is tried again, in milliseconds since 1970.
    ///   - error: what is told of it, for people.
    ///   - completion: as that of `settle`.
    public func transferFailed(
        to peer: PeerID, blaming row: Int64?, counts: Bool, next: Int64, error: String, at now: Int64,
        completion: @escaping @Sendable (Result<[OutboxMove], any Error>) -> Void
    ) {
        submit(
            { writer -> [OutboxMove] in
                guard let id = try row ?? writer.firstQueued(for: peer) else { return [] }
                let note = AttemptNote(
                    id: id, attempts: 1, failures: counts ? 1 : 0, nextAttemptAt: next, waitingFor: "retry", lastError: error)
                try writer.note([note])
                return try writer.giveUp([note], of: peer, at: now)
            }, completion: completion)
    }

    /// Rejects the oldest rows waiting for a peer, `outboxRejectLimit` at most, in one transaction: the peer blocked this machine.
    ///
    /// - Parameter completion: the rows, on the writer's thread; as many as the limit says that there may be more.
    public func rejectQueued(
        of peer: PeerID, code: String, message: String, at now: Int64, completion: @escaping @Sendable (Result<[Int64], any Error>) -> Void
    ) {
        submit(
            { try $0.rejectQueued(peer, code: code, message: message, limit: HexStore.outboxRejectLimit, at: now) }, completion: completion)
    }

    /// Rows of a peer that one transaction rejects, at most, so that one piece of work does not hold up the others.
    public static let outboxRejectLimit = 1_000
}

extension StoreWriter {
    /// 7 days a delivered, cancelled or expired row is remembered, so that the same key is still known.
    private static let rememberedFor: Int64 = 7 * 86_400_000

    /// Records how rows of one peer ended, with their events (`hex.delivered`, `hex.rejected`, `hex.failed`). Those that
    /// follow each other with the same end go as one.
    ///
    /// - Returns: rows that changed.
    @discardableResult
    func settle(_ settlements: [Settlement], of peer: PeerID, at now: Int64) throws -> [OutboxMove] {
        guard let row = try peerRow(peer) else { return [] }
        return try change {
            var moves: [OutboxMove] = []
            var start = settlements.startIndex
            while start < settlements.endIndex {
                let end = settlements[start]
                var last = end.id
                start += 1
                while start < settlements.endIndex, settlements[start].follows(last, as: end) {
                    last = settlements[start].id
                    start += 1
                }
                moves += try settle(end.id...last, as: end, of: row, at: now)
            }
            if settlements.contains(where: \.state.isDelivered) {
                try self.run("UPDATE outbox SET failures = 0 WHERE peer = ? AND failures > 0 AND state = 'queued'", row.id)
            }
            return moves
        }
    }

    /// Gives up rows of one peer that have `failureLimit` failures since it last took one, of those a failure was noted of just now.
    func giveUp(_ notes: [AttemptNote], of peer: PeerID, at now: Int64) throws -> [OutboxMove] {
        let blamed = notes.filter { $0.failures > 0 }.map(\.id)
        guard !blamed.isEmpty else { return [] }
        let failed = try outboxRows(blamed).filter { $0.state == .queued && $0.failures >= AttemptNote.failureLimit }
        return try settle(
            failed.map {
                Settlement(
                    id: $0.id, state: .failed, code: "retryLimit",
                    message: "The peer failed on it \(AttemptNote.failureLimit) times. Last: \($0.lastError ?? "no reason given")")
            }, of: peer, at: now)
    }

    func firstQueued(for peer: PeerID) throws -> Int64? {
        try outboxBatch(peer, after: 0, limit: 1, maxBytes: 0).items.first?.id
    }

    /// - Returns: the rows.
    func rejectQueued(_ peer: PeerID, code: String, message: String?, limit: Int, at now: Int64) throws -> [Int64] {
        guard let row = try peerRow(peer) else { return [] }
        let ids = try all("SELECT id FROM outbox WHERE peer = ? AND state = 'queued' ORDER BY id LIMIT ?", row.id, limit) { $0.int64(0) }
        try settle(ids.map { Settlement(id: $0, state: .rejected, code: code, message: message) }, of: peer, at: now)
        return ids
    }

    // MARK: - Inside `change`

    func outboxEntry(_ id: Int64) throws -> OutboxEntry? {
        try first("SELECT id, peer, state, bytes FROM outbox WHERE id = ?", id, read: OutboxEntry.init) ?? nil
    }

    /// One row into a final state, without an event.
    func move(_ row: OutboxEntry, to state: OutboxState, at now: Int64, code: String? = nil, message: String? = nil) throws {
        try move(row.id...row.id, to: state, at: now, code: code, message: message)
        count(row, movedTo: state)
    }

    private func settle(_ ids: ClosedRange<Int64>, as end: Settlement, of peer: PeerRow, at now: Int64) throws -> [OutboxMove] {
        let rows = try all(
            "SELECT id, peer, state, bytes FROM outbox WHERE id BETWEEN ? AND ? AND peer = ? ORDER BY id",
            ids.lowerBound, ids.upperBound, peer.id, read: OutboxEntry.init
        ).compactMap(\.self).filter { takes(end.state, after: $0.state) }
        for run in ConsecutiveRuns(rows.map(\.id)) {
            let range = run.lowerBound...(run.upperBound - 1)
            try move(range, to: end.state, at: now, code: end.code, message: end.message)
            let (type, data) = event(of: end)
            try record(type, at: now, count: run.count, peer: PeerID(peer.uuid), outboxID: run.lowerBound, data: data)
        }
        for row in rows { count(row, movedTo: end.state) }
        return rows.map { OutboxMove(id: $0.id, from: $0.state, to: end.state) }
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

    /// Rows of consecutive ids into a final state.
    private func move(_ ids: ClosedRange<Int64>, to state: OutboxState, at now: Int64, code: String?, message: String?) throws {
        if state.keepsBody {
            try run(
                """
                UPDATE outbox SET state = ?, code = ?, message = ?, settledAt = ?, nextAttemptAt = NULL, waitingFor = NULL
                WHERE id BETWEEN ? AND ?
                """, state.rawValue, code, message, now, ids.lowerBound, ids.upperBound)
        } else {
            try run(
                """
                UPDATE outbox SET state = ?, code = ?, message = ?, settledAt = ?, dueAt = ?, nextAttemptAt = NULL, waitingFor = NULL
                WHERE id BETWEEN ? AND ?
                """, state.rawValue, code, message, now, now &+ Self.rememberedFor, ids.lowerBound, ids.upperBound)
            try run("DELETE FROM outboxBody WHERE id BETWEEN ? AND ?", ids.lowerBound, ids.upperBound)
        }
    }

    private func count(_ row: OutboxEntry, movedTo state: OutboxState) {
        tally.outbox[row.state] &-= 1
        tally.outbox[state] &+= 1
        if row.state.keepsBody && !state.keepsBody { tally.outboxBytes &-= row.bytes }
        if row.state == .queued { count(peer: row.peer) { $0.queued &-= 1 } }
    }
}

extension Settlement {
    /// Whether it is the same end of the next row.
    fileprivate func follows(_ id: Int64, as end: Settlement) -> Bool {
        self.id > id && self.id &- id == 1 && state == end.state && code == end.code && message == end.message
    }
}

extension OutboxEntry {
    /// `nil` where the state is none: a damaged file.
    init?(_ row: SQLStatement) {
        guard let state = OutboxState(rawValue: row.text(2)) else { return nil }
        self.init(id: row.int64(0), peer: row.int64(1), state: state, bytes: row.int64(3))
    }
}
