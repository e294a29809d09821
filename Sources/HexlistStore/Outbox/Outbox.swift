internal import GRDB
public import HexlistModel

extension HexStore {
    /// Queues hexes in their order, one row per recipient, in one transaction: each is durable before anything is promised about it.
    ///
    /// A hex gets a row for every recipient, or none: a refused one does not affect the others, but lack of room ends the batch, so that the
    /// order is kept.
    ///
    /// - Parameters:
    ///   - start: the number of hexes at the beginning that are passed over.
    ///   - completion: called on the writer's thread, in the order of the calls. A failure is that of the whole batch: `.storageFull`,
    ///     `.internal`.
    public func enqueue(
        _ hexes: [PreparedHexes], from start: Int = 0, _ terms: EnqueueOptions,
        completion: @escaping @Sendable (Result<EnqueueReport, any Error>) -> Void
    ) {
        let room = OutboxCapacity(hexes, from: start, terms)
        let first = writes.outbox.withLock { $0.begin(room) }
        submit({ try $0.enqueue(hexes, from: start, terms, ids: first) }) { [writes] result in
            let new = (try? result.get())?.newRows(for: terms.recipients.count) ?? 0
            writes.outbox.withLock { $0.ended(room, first: first, told: new, isWritten: new > 0) }
            completion(result)
        }
    }

    /// Queues one hex as `enqueue` does, which leaves before it is written (decision 21).
    ///
    /// - Parameters:
    ///   - hex: without a key, and without offers of files.
    ///   - leave: called at once with what will become of the hex. If that fails, no other rows get these ids.
    ///   - completion: called as that of `enqueue`, with the last of these ids.
    /// - Returns: `false`, and nothing was done, where it can only be known once it is written.
    public func enqueueAhead(
        _ hex: PreparedHexes, _ terms: EnqueueOptions, leave: (EnqueueReport) -> Void,
        completion: @escaping @Sendable (Result<EnqueueReport, any Error>, _ last: Int64) -> Void
    ) -> Bool {
        let room = OutboxCapacity([hex], from: 0, terms)
        let first: Int64? = writes.outbox.withLock { $0.isSure(of: room, terms) ? $0.begin(room) : nil }
        guard let first else { return false }
        // First on its way: the writer is likely to be woken where whoever takes the hex would run.
        leave(EnqueueReport(parts: [.new(hexes: 1, first: terms.recipients.indices.map { first &+ Int64($0) })]))
        var terms = terms
        terms.warns = false  // decided above; a row that fails meanwhile must not refuse one that has left
        submit({ [terms] in try $0.enqueue([hex], terms, ids: first) }) { [writes] result in
            let isWritten = (try? result.get()).map { $0.full == nil } ?? false
            writes.outbox.withLock { $0.ended(room, first: first, told: room.rows, isWritten: isWritten) }
            completion(result, first &+ room.rows &- 1)
        }
        return true
    }

    /// The most rows of a peer that one transaction changes.
    public static let outboxChangeLimit = 2_000

    /// Queues `failed` and `rejected` rows again, at their old position in the order, with no failures counted, in one transaction.
    ///
    /// - Returns: those rows, and the queued ones of the selection, which stay as they are. Delivered, cancelled and expired ones are skipped.
    /// - Throws: `.notFound` if a row selected by its id is missing; then nothing is changed.
    public func retry(_ selection: OutboxSelection, lifetime: Int64) async throws -> ChangedRows {
        try await write { writer in
            let changed = try writer.outboxRows(selection, in: OutboxFilter.undelivered)
            _ = try writer.retry(changed.rows.map(\.id), lifetime: lifetime)
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
        HexlistError(.notFound, "There is no outbox entry \(id).", hint: "`hexlist outbox --all` lists them.")
    }
}

extension StoreWriter {
    /// - Parameter first: the lowest id of those given to the rows; `OutboxCapacity.rows` follow it.
    func enqueue(_ batch: [PreparedHexes], from start: Int = 0, _ terms: EnqueueOptions, ids first: Int64) throws -> EnqueueReport {
        let failed = try FailedHexes(failedLately(terms))
        return try change {
            let next = tally.nextOutbox
            tally.nextOutbox = first
            defer { tally.nextOutbox = max(next, tally.nextOutbox) }  // higher ones may be written already
            var report = EnqueueReport()
            var passedOver = 0
            for hexes in batch {
                let position = Swift.min(start - passedOver, hexes.count)
                passedOver += position
                try queue(hexes, from: position, failed, terms, &report)
                if report.full != nil { break }
            }
            return report
        }
    }

    /// Queues hexes from an index on, and says what became of them, as far as there was room.
    private func queue(
        _ hexes: PreparedHexes, from start: Int, _ failed: FailedHexes, _ terms: EnqueueOptions,
        _ report: inout EnqueueReport
    ) throws {
        let recipients = Set(terms.recipients.map(\.peer))
        var packing = OutboxPackBuilder(hexes, from: start, terms)
        for index in start..<hexes.count {
            let hasKey = hexes.hasKey(index)
            if !hasKey, let row = failed.row(of: hexes.body(index)) {
                try queue(&packing, &report)
                report.parts.append(.refused(Self.failedLately(row)))
                continue
            }
            if !packing.fits(index) { try queue(&packing, &report) }
            var earlier: [PeerID: OutboxRow] = [:]
            if hasKey {
                switch try self.earlier(hexes, index, recipients) {
                case .success(let rows): earlier = rows
                case .failure(let conflict):
                    try queue(&packing, &report)
                    report.parts.append(.refused(conflict))
                    continue
                }
            }
            let new = earlier.isEmpty ? terms.recipients : terms.recipients.filter { earlier[$0.peer] == nil }
            let again = earlier.values.count { !$0.state.keepsBody && !$0.state.isDelivered }
            report.full = full(
                for: hexes.body(index).count * (again + (new.isEmpty ? 0 : 1)), rows: again + new.count, packing, terms.bounds)
            guard report.full == nil else { break }
            if earlier.isEmpty {
                packing.add(index)
            } else {
                try queue(&packing, &report)
                report.parts.append(.again(try queueAgain(hexes, index, earlier, new, terms)))
            }
        }
        try queue(&packing, &report)
    }

    /// The rows that earlier sends of a hex with a key made for these recipients; a failure if one of them has other content.
    private func earlier(
        _ hexes: PreparedHexes, _ index: Int, _ recipients: Set<PeerID>
    ) throws -> Result<[PeerID: OutboxRow], HexlistError> {
        let digest = hexes.packed.digest(at: index)
        let found = try outboxRows(keyed: hexes.messageID(index).uuid)
        if let other = found.first(where: { !$0.digest.elementsEqual(digest) })?.ids.first { return .failure(Self.keyConflict(other)) }
        let rows = try found.isEmpty ? [] : outboxRows(found.flatMap(\.ids)).filter { recipients.contains($0.peer) }
        return .success(Dictionary(rows.map { ($0.peer, $0) }) { _, last in last })
    }

    /// Queues the hexes that were gathered: a run for each recipient, all of one pack.
    private func queue(_ packing: inout OutboxPackBuilder, _ report: inout EnqueueReport) throws {
        guard !packing.gathered.isEmpty else { return }
        let first = try insertRuns(packing.hexes, packing.gathered, packing.terms.recipients, packing.terms)
        report.parts.append(.new(hexes: packing.gathered.count, first: first))
        packing.removeAll()
    }

    /// Queues a hex that some recipients have rows of, from earlier sends with the same key.
    private func queueAgain(
        _ hexes: PreparedHexes, _ index: Int, _ earlier: [PeerID: OutboxRow], _ new: [ContactInfo], _ terms: EnqueueOptions
    ) throws -> [Enqueued] {
        let made = new.isEmpty ? [] : try insertRuns(hexes, index..<(index + 1), new, terms)
        let ids = Dictionary(zip(new.map(\.peer), made)) { first, _ in first }
        let offers = hexes.offers(index)
        return try terms.recipients.map { recipient in
            if let id = ids[recipient.peer] { return .new(id) }
            guard let row = earlier[recipient.peer] else { throw StoreFault.lost }
            if !offers.isEmpty { try note(offers: offers, of: row.id, to: recipient.peer) }
            return try requeue(row, hexes, index, lifetime: terms.lifetime)
        }
    }

    /// Inserts a run for each recipient, all of one new pack, behind the rows there are.
    /// - Parameter range: the hexes, by their indices: all with a key or all without, and one that offers files alone.
    /// - Returns: for each recipient the id of the first of its rows; it has one for each hex, in their order.
    private func insertRuns(
        _ hexes: PreparedHexes, _ range: Range<Int>, _ recipients: [ContactInfo], _ terms: EnqueueOptions
    ) throws -> [Int64] {
        let first = tally.nextOutbox
        // Rows that nothing would read are not promised.
        guard OutboxPack.ids.contains(first) else { throw StoreFault.lost }
        let count = Int64(range.count)
        let offers = hexes.offers(range.lowerBound)
        let pack = try insertPack(
            hexes.packed, range, bodies: hexes.bodies, first: first, copies: Int64(recipients.count),
            isKeyed: hexes.hasKey(range.lowerBound))
        for recipient in recipients {
            let peer = try peerRow(of: recipient)
            let id = tally.nextOutbox
            try run(
                "INSERT INTO outbox (id, last, peer, pack, state, createdAt, dueAt) VALUES (?, ?, ?, ?, 'queued', ?, ?)",
                id, id &+ count &- 1, peer, pack, terms.now, lived &+ terms.lifetime)
            if !offers.isEmpty { try note(offers: offers, of: id, to: recipient.peer) }
            tally.nextOutbox &+= count
            tally.outbox.queued &+= count
            self.count(peer: peer) { $0.queued &+= count }
        }
        return recipients.indices.map { first &+ Int64($0) &* count }
    }

    /// The rows that failed lately for a recipient, with their bodies.
    private func failedLately(_ terms: EnqueueOptions) throws -> [(row: OutboxRow, body: ArraySlice<UInt8>)] {
        guard terms.warns, tally.outbox.failed > 0 else { return [] }
        return try terms.recipients.flatMap { try failed(of: $0.peer, in: (terms.now - EnqueueOptions.warningTime)...terms.now) }
    }

    private static func keyConflict(_ row: Int64) -> HexlistError {
        HexlistError(
            .keyConflict, "This key was already used for another hex (outbox \(row)).",
            hint: "Use another key, or send the same content.")
    }

    private static func failedLately(_ row: OutboxRow) -> HexlistError {
        HexlistError(
            .recentlyFailed,
            "The same hex to the same peer failed less than 3 minutes ago: \(row.message ?? row.lastError ?? "no reason given")",
            hint: "To retry it: `hexlist outbox retry \(row.id)`. To send it anew: --force.")
    }

    /// The error of an outbox without room for more bytes of bodies and more rows; `nil` if there is room.
    private func full(for bytes: Int, rows: Int, _ packing: OutboxPackBuilder, _ bounds: OutboxBounds) -> HexlistError? {
        guard rows > 0 else { return nil }
        let undelivered = tally.outbox.undelivered &+ Int64(packing.rows)
        let bodies = tally.outboxBytes &+ Int64(packing.bytes)
        guard !bounds.take(rows: undelivered &+ Int64(rows), bytes: bodies &+ Int64(bytes)) else { return nil }
        let waiting = bodies &+ undelivered &* OutboxBounds.rowBytes
        return HexlistError(
            .outboxFull, "The outbox is full: \(undelivered) hexes, \(waiting) bytes wait.",
            hint: "Wait until some are delivered, cancel some (hexlist outbox cancel), or raise outbox.rows and outbox.bytes.")
    }

    /// Updates rows that still wait. Others are skipped.
    func note(_ notes: [AttemptRecord]) throws {
        try change {
            for note in notes {
                guard let found = try outboxRun(note.id), found.state == .queued else { continue }
                let row = try cut(found, to: note.id...note.id)
                try run(
                    """
                    UPDATE outbox SET attempts = attempts + ?, failures = failures + ?, nextAttemptAt = ?, waitingFor = ?,
                        lastError = coalesce(?, lastError) WHERE id = ?
                    """, note.attempts, note.failures, note.nextAttemptAt, note.waitingFor, note.lastError, row.ids.lowerBound)
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
            try cutRuns(ids, where: \.keepsBody).flatMap { run in
                try move(run, to: .cancelled, at: now)
                try endOffers(with: run.ids, of: run.peer, forGood: true)
                return run.ids
            }
        }
    }

    /// Ends what delivered rows offer; others are skipped.
    func endOffersOfDelivered(_ ids: [Int64]) throws {
        try change {
            for id in ids {
                guard let run = try outboxRun(id), run.state.isDelivered else { continue }
                try endOffers(with: id...id, of: run.peer, forGood: true)
            }
        }
    }

    /// - Returns: the ids of the rows that were not queued and now are.
    func retry(_ ids: [Int64], lifetime: Int64) throws -> [Int64] {
        try change {
            try cutRuns(ids) { $0 == .failed || $0 == .rejected }.flatMap { run in
                try requeue(run, lifetime: lifetime)
                return run.ids
            }
        }
    }

    // MARK: - Inside `change`

    /// The runs of these rows in some states, cut so that they have no other rows.
    private func cutRuns(_ ids: [Int64], where isWanted: (OutboxState) -> Bool) throws -> [OutboxRowRange] {
        try ConsecutiveRuns(ids).flatMap { range in
            let ids = range.lowerBound...(range.upperBound &- 1)
            return try outboxRuns(ids).filter { isWanted($0.state) }.map { try cut($0, to: ids) }
        }
    }

    /// Queues the row of an earlier send with the same key and content again, unless it waits or was delivered.
    private func requeue(_ earlier: OutboxRow, _ hexes: PreparedHexes, _ index: Int, lifetime: Int64) throws -> Enqueued {
        guard earlier.state != .queued, !earlier.state.isDelivered, let found = try outboxRun(earlier.id) else { return .existing(earlier) }
        var row = try cut(found, to: earlier.id...earlier.id)
        if !row.state.keepsBody {
            let pack = try insertPack(
                hexes.packed, index..<(index + 1), bodies: hexes.bodies, first: earlier.id, isKeyed: hexes.hasKey(index))
            try put(row, into: pack)
            row.pack = pack
        }
        try requeue(row, lifetime: lifetime)
        return .requeued(earlier.id, from: row.state)
    }

    private func requeue(_ run: OutboxRowRange, lifetime: Int64) throws {
        try self.run(
            """
            UPDATE outbox SET state = 'queued', dueAt = ?, settledAt = NULL, failures = 0, nextAttemptAt = NULL,
                waitingFor = NULL, lastError = NULL, code = NULL, message = NULL WHERE id = ?
            """, lived &+ lifetime, run.ids.lowerBound)
        try renewOffers(of: run.ids.lowerBound, to: run.peer)
        tally.outbox[run.state] &-= run.count
        tally.outbox.queued &+= run.count
        count(peer: run.peer) { $0.queued &+= run.count }
    }
}

/// Rows that failed lately, by which a send of the same hex is recognised.
private struct FailedHexes {
    /// By the length of their bodies, so that few are compared.
    private var rows: [Int: [(row: OutboxRow, body: ArraySlice<UInt8>)]]

    init(_ rows: [(row: OutboxRow, body: ArraySlice<UInt8>)]) { self.rows = Dictionary(grouping: rows, by: \.body.count) }

    /// The last row of a hex with this body.
    func row(of body: ArraySlice<UInt8>) -> OutboxRow? {
        rows.isEmpty ? nil : rows[body.count]?.last { $0.body.elementsEqual(body) }?.row
    }
}
