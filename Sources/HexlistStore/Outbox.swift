internal import GRDB
internal import HexlistModel

extension StoreWriter {
    /// Queues hexes, each durable before anything is promised about it.
    ///
    /// - Parameter group: the number of consecutive inserts that are one hex for as many peers: there is room for all of them or for none.
    /// - Returns: the outcome of each. A refused one does not affect the others, except for lack of room: then all later ones are refused
    ///   too, so that their order is kept.
    public func enqueue(_ batch: [OutboxInsert], groupsOf group: Int = 1, bounds: OutboxBounds = OutboxBounds()) throws -> [Enqueued] {
        guard !batch.isEmpty else { return [] }
        return try change {
            let writer = try OutboxInserter(self)
            var peers: [PeerID: Int64] = [:]
            var outcomes: [Enqueued] = []
            outcomes.reserveCapacity(batch.count)
            var noRoom: HexlistError?
            for start in stride(from: 0, to: batch.count, by: Swift.max(1, group)) {
                let group = batch[start..<Swift.min(start + Swift.max(1, group), batch.count)]
                let earlier = try noRoom == nil ? group.map { try $0.isFresh ? nil : writer.earlier($0) } : []
                if noRoom == nil { noRoom = full(for: group[start].body.count, times: earlier.count { $0 == nil }, bounds) }
                if let noRoom {
                    outcomes += group.map { _ in .refused(noRoom) }
                    continue
                }
                for (insert, earlier) in zip(group, earlier) {
                    if let earlier {
                        outcomes.append(earlier)
                        continue
                    }
                    let peer = try peers[insert.peer] ?? peerRow(making: insert.peer).id
                    peers[insert.peer] = peer
                    let id = tally.nextOutbox
                    try writer.insert(insert, id: id, peer: peer)
                    tally.nextOutbox &+= 1
                    tally.outbox.queued &+= 1
                    tally.outboxBytes &+= Int64(insert.body.count)
                    count(peer: peer) { $0.queued &+= 1 }
                    outcomes.append(.new(id))
                }
            }
            return outcomes
        }
    }

    /// Queues one hex.
    ///
    /// - Throws: `.keyConflict`, `.outboxFull`.
    public func enqueue(_ insert: OutboxInsert, bounds: OutboxBounds = OutboxBounds()) throws -> Enqueued {
        guard let outcome = try enqueue([insert], bounds: bounds).first else { throw StoreFault.lost }
        if case .refused(let error) = outcome { throw error }
        return outcome
    }

    private func full(for bytes: Int, times count: Int = 1, _ bounds: OutboxBounds) -> HexlistError? {
        guard count > 0 else { return nil }
        let waiting = tally.outboxBytes &+ tally.outbox.undelivered &* OutboxBounds.rowBytes
        let more = Int64(bytes &* count) &+ Int64(count) &* OutboxBounds.rowBytes
        guard tally.outbox.undelivered &+ Int64(count) > Int64(bounds.rows) || waiting &+ more > Int64(bounds.bytes) else { return nil }
        return HexlistError(
            .outboxFull, "The outbox is full: \(tally.outbox.undelivered) hexes, \(waiting) bytes wait.",
            hint: "Wait until some are delivered, cancel some (hexlist outbox cancel), or raise outbox.rows and outbox.bytes.")
    }

    /// Updates rows that still wait. Others are skipped.
    public func note(_ notes: [AttemptNote]) throws {
        try change {
            for note in notes {
                try run(
                    """
                    UPDATE outbox SET attempts = attempts + ?, failures = failures + ?, nextAttemptAt = ?, waitingFor = ?,
                        lastError = coalesce(?, lastError) WHERE id = ? AND state = 'queued'
                    """, note.attempts, note.failures, note.nextAttemptAt, note.waitingFor, note.lastError, note.id)
            }
        }
    }

    /// Cancels rows that are not delivered. A row in flight may have arrived all the same; if that turns out, its state says so.
    ///
    /// - Returns: the ids of the cancelled rows.
    public func cancel(_ ids: [Int64], at now: Int64) throws -> [Int64] {
        try change {
            try ids.filter { id in
                guard let row = try outboxEntry(id), row.state.keepsBody else { return false }
                try move(row, to: .cancelled, at: now)
                return true
            }
        }
    }

    /// Queues `failed` and `rejected` rows again, at their old position in the order, with no failures counted.
    ///
    /// - Returns: the ids of the rows that were not queued and now are.
    public func retry(_ ids: [Int64], at now: Int64, expiresAt: Int64) throws -> [Int64] {
        try change {
            try ids.filter { id in
                guard let row = try outboxEntry(id), row.state == .failed || row.state == .rejected else { return false }
                try requeue(row, at: now, expiresAt: expiresAt)
                return true
            }
        }
    }

    /// Queues a row again whose content was sent once more with the same key after the row failed, was rejected, cancelled or expired.
    ///
    /// - Returns: whether the row was queued. A queued or delivered row, and one with another digest, stays unchanged.
    /// - Throws: `.outboxFull` if the row's body is gone and there is no room for it.
    public func requeue(_ id: Int64, _ insert: OutboxInsert, bounds: OutboxBounds = OutboxBounds(), at now: Int64) throws -> Bool {
        if let row = try outboxEntry(id), !row.state.keepsBody, !row.state.isDelivered, let full = full(for: insert.body.count, bounds) {
            throw full
        }
        return try change {
            guard let row = try outboxEntry(id), row.state != .queued, !row.state.isDelivered else { return false }
            let same = try first("SELECT 1 FROM outbox WHERE id = ? AND digest = ?", id, insert.digest) { _ in true } ?? false
            guard same else { return false }
            if !row.state.keepsBody {
                try run("INSERT INTO outboxBody (id, body) VALUES (?, ?)", id, insert.body)
                try run("UPDATE outbox SET bytes = ? WHERE id = ?", insert.body.count, id)
                tally.outboxBytes &+= Int64(insert.body.count)
            }
            try requeue(row, at: now, expiresAt: insert.expiresAt)
            return true
        }
    }

    private func requeue(_ row: OutboxEntry, at now: Int64, expiresAt: Int64) throws {
        try run(
            """
            UPDATE outbox SET state = 'queued', dueAt = ?, settledAt = NULL, failures = 0, nextAttemptAt = NULL,
                waitingFor = NULL, lastError = NULL, code = NULL, message = NULL WHERE id = ?
            """, expiresAt, row.id)
        tally.outbox[row.state] &-= 1
        tally.outbox.queued &+= 1
        count(peer: row.peer) { $0.queued &+= 1 }
    }
}

/// The statements of `enqueue`, prepared once per batch.
private struct OutboxInserter {
    private let store: StoreWriter
    private let earlier: SQLStatement
    private let row: SQLStatement
    private let body: SQLStatement

    init(_ store: StoreWriter) throws {
        self.store = store
        earlier = try SQLStatement(
            "SELECT outbox.id, outbox.digest, peer.uuid FROM outbox JOIN peer ON peer.id = outbox.peer WHERE messageID = ?", on: store.db)
        row = try SQLStatement(
            """
            INSERT INTO outbox (id, messageID, peer, digest, state, bytes, createdAt, dueAt, subject)
            VALUES (?, ?, ?, ?, 'queued', ?, ?, ?, ?)
            """, on: store.db)
        body = try SQLStatement("INSERT INTO outboxBody (id, body) VALUES (?, ?)", on: store.db)
    }

    /// The outcome that follows from an earlier insert of the same message, for whichever peer; `nil` if there is none.
    func earlier(_ insert: OutboxInsert) throws -> Enqueued? {
        defer { earlier.reset() }
        try earlier.check(insert.messageID.uuid.bindValue(to: earlier.handle, at: 1))
        var existing: Int64?
        while try earlier.step() {
            guard earlier.withBytes(1, { $0.elementsEqual(insert.digest) }) else {
                return .refused(
                    HexlistError(
                        .keyConflict, "The same key was used before for other content (outbox \(earlier.int64(0))).",
                        hint: "Use another key, or send the same content."))
            }
            if earlier.uuid(2) == insert.peer.uuid { existing = earlier.int64(0) }
        }
        guard let existing else { return nil }
        guard let row = try store.outboxRow(existing) else { throw StoreFault.lost }
        return .existing(row)
    }

    func insert(_ insert: OutboxInsert, id: Int64, peer: Int64) throws {
        try row.check(id.bindValue(to: row.handle, at: 1))
        try row.check(insert.messageID.uuid.bindValue(to: row.handle, at: 2))
        try row.check(peer.bindValue(to: row.handle, at: 3))
        try row.check(insert.digest.bindValue(to: row.handle, at: 4))
        try row.check(insert.body.count.bindValue(to: row.handle, at: 5))
        try row.check(insert.createdAt.bindValue(to: row.handle, at: 6))
        try row.check(insert.expiresAt.bindValue(to: row.handle, at: 7))
        try row.check(insert.subject.bindValue(to: row.handle, at: 8))
        try row.run()
        try body.check(id.bindValue(to: body.handle, at: 1))
        try body.check(insert.body.bindValue(to: body.handle, at: 2))
        try body.run()
    }
}
