internal import GRDB
public import HexlistModel

extension HexStore {
    /// Queues hexes in their order, one row per recipient, in one transaction: each is durable before anything is promised about it.
    ///
    /// A hex gets a row for every recipient, or none: a refused one does not affect the others, but lack of room ends the batch, so that the
    /// order is kept.
    ///
    /// - Parameter completion: called on the writer's thread, in the order of the calls. A failure is that of the whole batch: `.storageFull`,
    ///   `.internal`.
    public func enqueue(
        _ hexes: ArraySlice<PreparedHex>, _ terms: OutboxTerms, completion: @escaping @Sendable (Result<EnqueueReport, any Error>) -> Void
    ) {
        submit({ try $0.enqueue(hexes, terms) }, completion: completion)
    }

    /// The most rows of a peer that one transaction changes.
    public static let outboxChangeLimit = 2_000

    /// Queues `failed` and `rejected` rows again, at their old position in the order, with no failures counted, in one transaction.
    ///
    /// - Returns: those rows, and the queued ones of the selection, which stay as they are. Delivered, cancelled and expired ones are skipped.
    /// - Throws: `.notFound` if a row selected by its id is missing; then nothing is changed.
    public func retry(_ selection: OutboxSelection, expiresAt: Int64) async throws -> ChangedRows {
        try await write { writer in
            let changed = try writer.outboxRows(selection, in: OutboxFilter.undelivered)
            _ = try writer.retry(changed.rows.map(\.id), expiresAt: expiresAt)
            return changed
        }
    }

    /// Cancels rows in one transaction: of those selected by id all that are not delivered, of a peer's those that wait. A row in flight may
    /// have arrived all the same; if that turns out, its state says so. A delivered one selected by its id stays what it is, and what it offers
    /// ends.
    ///
    /// - Throws: `.notFound` if a row selected by its id is missing; then nothing is changed.
    public func cancel(_ selection: OutboxSelection, at now: Int64) async throws -> ChangedRows {
        try await write { writer in
            let states: Set<OutboxState> = if case .peer = selection { [.queued] } else { OutboxFilter.undelivered }
            let changed = try writer.outboxRows(selection, in: states)
            _ = try writer.cancel(changed.rows.map(\.id), at: now)
            if case .ids(let ids) = selection, changed.passedOver > 0 { try writer.endOffersOfDelivered(ids) }
            return changed
        }
    }
}

extension HexlistError {
    public static func noOutboxRow(_ id: Int64) -> HexlistError {
        HexlistError(.notFound, "There is no outbox row \(id).", hint: "`hexlist outbox list` lists those there are.")
    }
}

extension StoreWriter {
    func enqueue(_ hexes: ArraySlice<PreparedHex>, _ terms: OutboxTerms) throws -> EnqueueReport {
        let failed = try failedLately(hexes, terms)
        return try change {
            let inserter = try OutboxInserter(self)
            var peers: [PeerID: Int64] = [:]
            var report = EnqueueReport()
            report.results.reserveCapacity(hexes.count)
            for (index, hex) in zip(hexes.indices, hexes) {
                if let row = failed[index] {
                    report.results.append(.failure(Self.failedLately(row)))
                    continue
                }
                let earlier: [PeerID: OutboxRow]
                switch try hex.hasKey ? inserter.earlier(hex) : .success([:]) {
                case .success(let rows): earlier = rows
                case .failure(let conflict):
                    report.results.append(.failure(conflict))
                    continue
                }
                let bodies = terms.recipients.count { earlier[$0.peer].map { !$0.state.keepsBody && !$0.state.isDelivered } ?? true }
                report.full = full(for: hex.body.count, times: bodies, terms.bounds)
                guard report.full == nil else { break }
                let rows = try terms.recipients.map { recipient -> Enqueued in
                    if let row = earlier[recipient.peer] {
                        if !hex.offers.isEmpty { try note(offers: hex.offers, of: row.id, to: recipient.peer) }
                        return try requeue(row, body: hex.body, expiresAt: terms.expiresAt)
                    }
                    let peer = try peers[recipient.peer] ?? peerRow(of: recipient)
                    peers[recipient.peer] = peer
                    let id = tally.nextOutbox
                    try inserter.insert(hex, id: id, peer: peer, terms)
                    if !hex.offers.isEmpty { try note(offers: hex.offers, of: id, to: recipient.peer) }
                    tally.nextOutbox &+= 1
                    tally.outbox.queued &+= 1
                    tally.outboxBytes &+= Int64(hex.body.count)
                    count(peer: peer) { $0.queued &+= 1 }
                    return .new(id)
                }
                report.results.append(.success(rows))
            }
            return report
        }
    }

    /// The row that failed lately, by the index of each hex without a key that has one.
    private func failedLately(_ hexes: ArraySlice<PreparedHex>, _ terms: OutboxTerms) throws -> [Int: OutboxRow] {
        guard terms.warns, tally.outbox.failed > 0 else { return [:] }
        var rows: [Int: OutboxRow] = [:]
        for (index, hex) in zip(hexes.indices, hexes) where !hex.hasKey {
            for recipient in terms.recipients {
                guard let row = try recentlyFailed(recipient.peer, digest: hex.digest, since: terms.now - OutboxTerms.warningTime)
                else { continue }
                rows[index] = row
            }
        }
        return rows
    }

    private static func failedLately(_ row: OutboxRow) -> HexlistError {
        HexlistError(
            .recentlyFailed,
            "The same hex to the same peer failed less than 3 minutes ago: \(row.message ?? row.lastError ?? "no reason given")",
            hint: "`hexlist outbox retry \(row.id)` tries that one again; --force sends another.")
    }

    /// The error of an outbox without room; `nil` if there is room.
    /// - Parameter count: the number of rows whose bodies are added.
    private func full(for bytes: Int, times count: Int, _ bounds: OutboxBounds) -> HexlistError? {
        guard count > 0 else { return nil }
        let waiting = tally.outboxBytes &+ tally.outbox.undelivered &* OutboxBounds.rowBytes
        let more = Int64(bytes &* count) &+ Int64(count) &* OutboxBounds.rowBytes
        guard tally.outbox.undelivered &+ Int64(count) > Int64(bounds.rows) || waiting &+ more > Int64(bounds.bytes) else { return nil }
        return HexlistError(
            .outboxFull, "The outbox is full: \(tally.outbox.undelivered) hexes, \(waiting) bytes wait.",
            hint: "Wait until some are delivered, cancel some (hexlist outbox cancel), or raise outbox.rows and outbox.bytes.")
    }

    /// Updates rows that still wait. Others are skipped.
    func note(_ notes: [AttemptNote]) throws {
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

    /// The rows of a selection that are in one of these states.
    func outboxRows(_ selection: OutboxSelection, in states: Set<OutboxState>) throws -> ChangedRows {
        switch selection {
        case .ids(let ids):
            let all = try outboxRows(ids)
            if let missing = Set(ids).subtracting(all.map(\.id)).min() { throw HexlistError.noOutboxRow(missing) }
            let fitting = all.filter { states.contains($0.state) }
            return ChangedRows(rows: fitting, passedOver: all.count - fitting.count)
        case .peer(let peer, let after):
            let page = try outboxPage(OutboxFilter(peer: peer, states: states), limit: HexStore.outboxChangeLimit, after: after)
            return ChangedRows(rows: page.items, next: page.next)
        }
    }

    /// - Returns: the ids of the cancelled rows.
    func cancel(_ ids: [Int64], at now: Int64) throws -> [Int64] {
        try change {
            try ids.filter { id in
                guard let row = try outboxEntry(id), row.state.keepsBody else { return false }
                try move(row, to: .cancelled, at: now)
                try endOffers(with: id...id, of: row.peer, forGood: true)
                return true
            }
        }
    }

    /// Ends what delivered rows offer; others are skipped.
    func endOffersOfDelivered(_ ids: [Int64]) throws {
        try change {
            for id in ids {
                guard let row = try outboxEntry(id), row.state.isDelivered else { continue }
                try endOffers(with: id...id, of: row.peer, forGood: true)
            }
        }
    }

    /// - Returns: the ids of the rows that were not queued and now are.
    func retry(_ ids: [Int64], expiresAt: Int64) throws -> [Int64] {
        try change {
            try ids.filter { id in
                guard let row = try outboxEntry(id), row.state == .failed || row.state == .rejected else { return false }
                try requeue(row, expiresAt: expiresAt)
                return true
            }
        }
    }

    // MARK: - Inside `change`

    /// Queues the row of an earlier send with the same key and content again, unless it waits or was delivered.
    private func requeue(_ earlier: OutboxRow, body: [UInt8], expiresAt: Int64) throws -> Enqueued {
        guard earlier.state != .queued, !earlier.state.isDelivered, let row = try outboxEntry(earlier.id) else { return .existing(earlier) }
        if !row.state.keepsBody {
            try run("INSERT INTO outboxBody (id, body) VALUES (?, ?)", row.id, body)
            try run("UPDATE outbox SET bytes = ? WHERE id = ?", body.count, row.id)
            tally.outboxBytes &+= Int64(body.count)
        }
        try requeue(row, expiresAt: expiresAt)
        return .requeued(row.id, from: row.state)
    }

    private func requeue(_ row: OutboxEntry, expiresAt: Int64) throws {
        try run(
            """
            UPDATE outbox SET state = 'queued', dueAt = ?, settledAt = NULL, failures = 0, nextAttemptAt = NULL,
                waitingFor = NULL, lastError = NULL, code = NULL, message = NULL WHERE id = ?
            """, expiresAt, row.id)
        try renewOffers(of: row.id, to: row.peer)
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
            "SELECT id, digest FROM outbox WHERE messageID = ?", on: store.db)
        row = try SQLStatement(
            """
            INSERT INTO outbox (id, messageID, peer, digest, state, bytes, createdAt, dueAt, subject)
            VALUES (?, ?, ?, ?, 'queued', ?, ?, ?, ?)
            """, on: store.db)
        body = try SQLStatement("INSERT INTO outboxBody (id, body) VALUES (?, ?)", on: store.db)
    }

    /// The rows of earlier sends of the same message, by peer; a failure if one of them has other content.
    func earlier(_ hex: PreparedHex) throws -> Result<[PeerID: OutboxRow], HexlistError> {
        defer { earlier.reset() }
        try earlier.check(hex.messageID.uuid.bindValue(to: earlier.handle, at: 1))
        var ids: [Int64] = []
        while try earlier.step() {
            guard earlier.withBytes(1, { $0.elementsEqual(hex.digest) }) else {
                return .failure(
                    HexlistError(
                        .keyConflict, "The same key was used before for other content (outbox \(earlier.int64(0))).",
                        hint: "Use another key, or send the same content."))
            }
            ids.append(earlier.int64(0))
        }
        let rows = try ids.isEmpty ? [] : store.outboxRows(ids)
        guard rows.count == ids.count else { throw StoreFault.lost }
        return .success(Dictionary(rows.map { ($0.peer, $0) }) { _, last in last })
    }

    func insert(_ hex: PreparedHex, id: Int64, peer: Int64, _ terms: OutboxTerms) throws {
        try row.check(id.bindValue(to: row.handle, at: 1))
        try row.check(hex.messageID.uuid.bindValue(to: row.handle, at: 2))
        try row.check(peer.bindValue(to: row.handle, at: 3))
        try row.check(hex.digest.bindValue(to: row.handle, at: 4))
        try row.check(hex.body.count.bindValue(to: row.handle, at: 5))
        try row.check(terms.now.bindValue(to: row.handle, at: 6))
        try row.check(terms.expiresAt.bindValue(to: row.handle, at: 7))
        try row.check(hex.subject.bindValue(to: row.handle, at: 8))
        try row.run()
        try body.check(id.bindValue(to: body.handle, at: 1))
        try body.check(hex.body.bindValue(to: body.handle, at: 2))
        try body.run()
    }
}
