internal import GRDB
public import HexlistModel

extension HexStore {
    /// Enqueues hexes in order, in one transaction. Each hex gets one outbox row for each recipient.
    ///
    /// A hex gets rows for all recipients or for none. If a hex is refused, the others are still enqueued. If the outbox is full, no
    /// further hexes are enqueued, so that the order is kept.
    ///
    /// - Parameters:
    ///   - start: the number of hexes to skip at the beginning of the batch.
    ///   - completion: called on the writer's thread, in the order of the calls. A failure applies to the whole batch: `.storageFull`,
    ///     `.internal`.
    public func enqueue(
        _ hexes: [PreparedHexes], from start: Int = 0, _ options: EnqueueOptions,
        completion: @escaping @Sendable (Result<EnqueueReport, any Error>) -> Void
    ) {
        let demand = OutboxDemand(hexes, from: start, options)
        let first = writes.outbox.withLock { $0.begin(demand) }
        submit({ try $0.enqueue(hexes, from: start, options, ids: first) }) { [writes] result in
            let new = (try? result.get())?.newRows(for: options.recipients.count) ?? 0
            writes.outbox.withLock { $0.ended(demand, first: first, used: new, isWritten: new > 0) }
            completion(result)
        }
    }

    /// Enqueues one hex and lets the caller send it before its row is committed (Docs/Decisions/0027-optimisations-pay-rent.md).
    ///
    /// - Parameters:
    ///   - hex: a single hex, without a key and without offers of files.
    ///   - leave: called immediately, before the commit, with the expected report. The caller may send the hex from then on. If the commit
    ///     fails, the ids in the report are not used again.
    ///   - completion: called as for `enqueue`; `last` is the last id in the report.
    /// - Returns: `false`, without any effect, if it cannot be predicted whether the transaction will accept the hex. Then use `enqueue`.
    public func enqueueEarly(
        _ hex: PreparedHexes, _ options: EnqueueOptions, leave: (EnqueueReport) -> Void,
        completion: @escaping @Sendable (Result<EnqueueReport, any Error>, _ last: Int64) -> Void
    ) -> Bool {
        let demand = OutboxDemand([hex], from: 0, options)
        let first: Int64? = writes.outbox.withLock { $0.willFit(demand, options) ? $0.begin(demand) : nil }
        guard let first else { return false }
        // `leave` is called before `submit`, because waking the writer's thread may take the processor core from the thread to which
        // `leave` passes the hex.
        leave(EnqueueReport(parts: [.new(hexes: 1, first: options.recipients.indices.map { first &+ Int64($0) })]))
        var options = options
        options.warns = false  // `willFit` found no recent failure; a hex that may be sent already must not be refused
        submit({ [options] in try $0.enqueue([hex], options, ids: first) }) { [writes] result in
            let isWritten = (try? result.get()).map { $0.full == nil } ?? false
            writes.outbox.withLock { $0.ended(demand, first: first, used: demand.rows, isWritten: isWritten) }
            completion(result, first &+ demand.rows &- 1)
        }
        return true
    }

    /// Maximum number of a peer's rows that one transaction changes.
    public static let outboxChangeLimit = 2_000

    /// Queues `failed` and `rejected` rows again, in one transaction. They keep their position in the order of delivery, and their failures
    /// are reset.
    ///
    /// - Returns: the rows that were queued again, and the rows of the selection that were queued already. Delivered, cancelled and expired
    ///   rows are skipped.
    /// - Throws: `.notFound` if a row selected by its id is missing; then nothing is changed.
    public func retry(_ selection: OutboxSelection, lifetime: Int64) async throws -> ChangedRows {
        try await write { writer in
            let changed = try writer.outboxRows(selection, in: OutboxFilter.undelivered)
            _ = try writer.retry(changed.rows.map(\.id), lifetime: lifetime)
            return changed
        }
    }

    /// Cancels rows in one transaction: undelivered rows by id, or the queued rows of a peer. A row in flight may still be delivered; its
    /// state then becomes `stored` or `held`. If a row selected by id is delivered already, only its file offers end.
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
    /// Enqueues hexes, as `HexStore.enqueue` describes.
    /// - Parameter first: the first of the ids reserved for the new rows. `OutboxDemand.rows` ids are reserved.
    func enqueue(_ batch: [PreparedHexes], from start: Int = 0, _ options: EnqueueOptions, ids first: Int64) throws -> EnqueueReport {
        let failed = try FailedHexes(recentFailures(options))
        return try change {
            let next = counters.nextOutbox
            counters.nextOutbox = first
            defer { counters.nextOutbox = max(next, counters.nextOutbox) }  // a later request may have written rows with higher ids already
            var report = EnqueueReport()
            var passedOver = 0
            for hexes in batch {
                let position = Swift.min(start - passedOver, hexes.count)
                passedOver += position
                try enqueue(hexes, from: position, failed, options, &report)
                if report.full != nil { break }
            }
            return report
        }
    }

    /// Enqueues hexes from index `start` on until the outbox is full, and appends the results to `report`.
    private func enqueue(
        _ hexes: PreparedHexes, from start: Int, _ failed: FailedHexes, _ options: EnqueueOptions,
        _ report: inout EnqueueReport
    ) throws {
        let recipients = Set(options.recipients.map(\.peer))
        var builder = OutboxPackBuilder(hexes, from: start, options)
        for index in start..<hexes.count {
            let hasKey = hexes.hasKey(index)
            if !hasKey, let row = failed.row(of: hexes.body(index)) {
                try flush(&builder, &report)
                report.parts.append(.refused(Self.recentFailure(row)))
                continue
            }
            if !builder.fits(index) { try flush(&builder, &report) }
            var earlier: [PeerID: OutboxRow] = [:]
            if hasKey {
                switch try self.earlier(hexes, index, recipients) {
                case .success(let rows): earlier = rows
                case .failure(let conflict):
                    try flush(&builder, &report)
                    report.parts.append(.refused(conflict))
                    continue
                }
            }
            let new = earlier.isEmpty ? options.recipients : options.recipients.filter { earlier[$0.peer] == nil }
            let again = earlier.values.count { !$0.state.keepsBody && !$0.state.isDelivered }
            report.full = full(
                for: hexes.body(index).count * (again + (new.isEmpty ? 0 : 1)), rows: again + new.count, builder, options.bounds)
            guard report.full == nil else { break }
            if earlier.isEmpty {
                builder.add(index)
            } else {
                try flush(&builder, &report)
                report.parts.append(.again(try enqueueAgain(hexes, index, earlier, new, options)))
            }
        }
        try flush(&builder, &report)
    }

    /// Returns the rows of earlier sends with the same key to these recipients; a failure if an earlier hex with the key had other content.
    private func earlier(
        _ hexes: PreparedHexes, _ index: Int, _ recipients: Set<PeerID>
    ) throws -> Result<[PeerID: OutboxRow], HexlistError> {
        let digest = hexes.packed.digest(at: index)
        let found = try outboxRows(keyed: hexes.messageID(index).uuid)
        if let other = found.first(where: { !$0.digest.elementsEqual(digest) })?.ids.first { return .failure(Self.keyConflict(other)) }
        let rows = try found.isEmpty ? [] : outboxRows(found.flatMap(\.ids)).filter { recipients.contains($0.peer) }
        return .success(Dictionary(rows.map { ($0.peer, $0) }) { _, last in last })
    }

    /// Inserts the collected hexes as one pack with a row range for each recipient, and empties the builder.
    private func flush(_ builder: inout OutboxPackBuilder, _ report: inout EnqueueReport) throws {
        guard !builder.gathered.isEmpty else { return }
        let first = try insertRowRanges(builder.hexes, builder.gathered, builder.options.recipients, builder.options)
        report.parts.append(.new(hexes: builder.gathered.count, first: first))
        builder.removeAll()
    }

    /// Enqueues a hex for which some recipients have rows from earlier sends with the same key.
    private func enqueueAgain(
        _ hexes: PreparedHexes, _ index: Int, _ earlier: [PeerID: OutboxRow], _ new: [PeerContact], _ options: EnqueueOptions
    ) throws -> [EnqueuedRow] {
        let made = new.isEmpty ? [] : try insertRowRanges(hexes, index..<(index + 1), new, options)
        let ids = Dictionary(zip(new.map(\.peer), made)) { first, _ in first }
        let offers = hexes.offers(index)
        return try options.recipients.map { recipient in
            if let id = ids[recipient.peer] { return .new(id) }
            guard let row = earlier[recipient.peer] else { throw StoreFault.lost }
            if !offers.isEmpty { try note(offers: offers, of: row.id, to: recipient.peer) }
            return try requeue(row, hexes, index, lifetime: options.lifetime)
        }
    }

    /// Inserts a new pack and a row range for each recipient.
    /// - Parameter range: indices of the hexes. Either all have a key or none has. A hex that offers files must be the only one.
    /// - Returns: the first row id of each recipient.
    private func insertRowRanges(
        _ hexes: PreparedHexes, _ range: Range<Int>, _ recipients: [PeerContact], _ options: EnqueueOptions
    ) throws -> [Int64] {
        let first = counters.nextOutbox
        // Throws, because readers would skip rows with invalid ids.
        guard OutboxPack.ids.contains(first) else { throw StoreFault.lost }
        let count = Int64(range.count)
        let offers = hexes.offers(range.lowerBound)
        let pack = try insertPack(
            hexes.packed, range, bodies: hexes.bodies, first: first, copies: Int64(recipients.count),
            isKeyed: hexes.hasKey(range.lowerBound))
        for recipient in recipients {
            let peer = try peerRow(of: recipient)
            let id = counters.nextOutbox
            try run(
                "INSERT INTO outbox (id, last, peer, pack, state, createdAt, dueAt) VALUES (?, ?, ?, ?, 'queued', ?, ?)",
                id, id &+ count &- 1, peer, pack, options.now, lived &+ options.lifetime)
            if !offers.isEmpty { try note(offers: offers, of: id, to: recipient.peer) }
            counters.nextOutbox &+= count
            counters.outbox.queued &+= count
            self.count(peer: peer) { $0.queued &+= count }
        }
        return recipients.indices.map { first &+ Int64($0) &* count }
    }

    /// Returns the recipients' rows that failed within the last `warningTime`, with their bodies; none if `warns` is `false`.
    private func recentFailures(_ options: EnqueueOptions) throws -> [(row: OutboxRow, body: ArraySlice<UInt8>)] {
        guard options.warns, counters.outbox.failed > 0 else { return [] }
        return try options.recipients.flatMap { try failed(of: $0.peer, in: (options.now - EnqueueOptions.warningTime)...options.now) }
    }

    private static func keyConflict(_ row: Int64) -> HexlistError {
        HexlistError(
            .keyConflict, "This key was already used for another hex (outbox \(row)).",
            hint: "Use another key, or send the same content.")
    }

    private static func recentFailure(_ row: OutboxRow) -> HexlistError {
        HexlistError(
            .recentlyFailed,
            "The same hex to the same peer failed less than 3 minutes ago: \(row.message ?? row.lastError ?? "no reason given")",
            hint: "To retry it: `hexlist outbox retry \(row.id)`. To send it anew: --force.")
    }

    /// Returns the error if the outbox has no capacity for these rows and bytes of bodies; `nil` if it has.
    private func full(for bytes: Int, rows: Int, _ builder: OutboxPackBuilder, _ bounds: OutboxBounds) -> HexlistError? {
        guard rows > 0 else { return nil }
        let undelivered = counters.outbox.undelivered &+ Int64(builder.rows)
        let bodies = counters.outboxBytes &+ Int64(builder.bytes)
        guard !bounds.take(rows: undelivered &+ Int64(rows), bytes: bodies &+ Int64(bytes)) else { return nil }
        let waiting = bodies &+ undelivered &* OutboxBounds.rowBytes
        return HexlistError(
            .outboxFull, "The outbox is full: \(undelivered) hexes, \(waiting) bytes wait.",
            hint: "Wait until some are delivered, cancel some (hexlist outbox cancel), or raise outbox.rows and outbox.bytes.")
    }

    /// Records failed delivery attempts of queued rows. Rows in other states are skipped.
    func note(_ notes: [FailedAttempt]) throws {
        try change {
            for note in notes {
                guard let found = try outboxRowRange(note.id), found.state == .queued else { continue }
                let row = try isolate(note.id...note.id, of: found)
                try run(
                    """
                    UPDATE outbox SET attempts = attempts + ?, failures = failures + ?, nextAttemptAt = ?, waitingFor = ?,
                        lastError = coalesce(?, lastError) WHERE id = ?
                    """, note.attempts, note.failures, note.nextAttemptAt, note.waitingFor, note.lastError, row.ids.lowerBound)
            }
        }
    }

    /// Returns the rows of a selection that are in one of these states.
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

    /// Cancels undelivered rows. Rows in other states are skipped.
    /// - Returns: the ids of the cancelled rows.
    func cancel(_ ids: [Int64], at now: Int64) throws -> [Int64] {
        try change {
            try isolatedRowRanges(ids, where: \.keepsBody).flatMap { rowRange in
                try move(rowRange, to: .cancelled, at: now)
                try endOffers(with: rowRange.ids, of: rowRange.peer, forGood: true)
                return rowRange.ids
            }
        }
    }

    /// Ends the file offers of delivered rows. Rows in other states are skipped.
    func endOffersOfDelivered(_ ids: [Int64]) throws {
        try change {
            for id in ids {
                guard let rowRange = try outboxRowRange(id), rowRange.state.isDelivered else { continue }
                try endOffers(with: id...id, of: rowRange.peer, forGood: true)
                try run("UPDATE outboxFiles SET isWithdrawn = 1 WHERE outbox = ?", id)
            }
        }
    }

    /// Queues failed and rejected rows again. Rows in other states are skipped.
    /// - Returns: the ids of the rows that were queued again.
    func retry(_ ids: [Int64], lifetime: Int64) throws -> [Int64] {
        try change {
            try isolatedRowRanges(ids) { $0 == .failed || $0 == .rejected }.flatMap { rowRange in
                try requeue(rowRange, lifetime: lifetime)
                return rowRange.ids
            }
        }
    }

    // MARK: - Inside `change`

    /// Returns row ranges that contain exactly the rows with these ids whose state satisfies `isWanted`. Splits existing ranges if
    /// necessary.
    private func isolatedRowRanges(_ ids: [Int64], where isWanted: (OutboxState) -> Bool) throws -> [OutboxRowRange] {
        try ConsecutiveRuns(ids).flatMap { range in
            let ids = range.lowerBound...(range.upperBound &- 1)
            return try outboxRowRanges(ids).filter { isWanted($0.state) }.map { try isolate(ids, of: $0) }
        }
    }

    /// Queues the row of an earlier send with the same key and content again. Has no effect if the row is queued or delivered.
    private func requeue(_ earlier: OutboxRow, _ hexes: PreparedHexes, _ index: Int, lifetime: Int64) throws -> EnqueuedRow {
        guard earlier.state != .queued, !earlier.state.isDelivered, let found = try outboxRowRange(earlier.id) else {
            return .existing(earlier)
        }
        var row = try isolate(earlier.id...earlier.id, of: found)
        if !row.state.keepsBody {
            let pack = try insertPack(
                hexes.packed, index..<(index + 1), bodies: hexes.bodies, first: earlier.id, isKeyed: hexes.hasKey(index))
            try move(row, toPack: pack)
            row.pack = pack
        }
        try requeue(row, lifetime: lifetime)
        return .requeued(earlier.id, from: row.state)
    }

    private func requeue(_ rowRange: OutboxRowRange, lifetime: Int64) throws {
        try self.run(
            """
            UPDATE outbox SET state = 'queued', dueAt = ?, settledAt = NULL, failures = 0, nextAttemptAt = NULL,
                waitingFor = NULL, lastError = NULL, code = NULL, message = NULL WHERE id = ?
            """, lived &+ lifetime, rowRange.ids.lowerBound)
        try renewOffers(of: rowRange.ids.lowerBound, to: rowRange.peer)
        counters.outbox[rowRange.state] &-= rowRange.count
        counters.outbox.queued &+= rowRange.count
        count(peer: rowRange.peer) { $0.queued &+= rowRange.count }
    }
}

/// The recently failed rows of the recipients, to detect that the user sends the same hex again.
private struct FailedHexes {
    /// The rows, grouped by the length of their bodies, so that few bodies have to be compared.
    private var rows: [Int: [(row: OutboxRow, body: ArraySlice<UInt8>)]]

    init(_ rows: [(row: OutboxRow, body: ArraySlice<UInt8>)]) { self.rows = Dictionary(grouping: rows, by: \.body.count) }

    /// Returns the last of the rows with this body; `nil` if there is none.
    func row(of body: ArraySlice<UInt8>) -> OutboxRow? {
        rows.isEmpty ? nil : rows[body.count]?.last { $0.body.elementsEqual(body) }?.row
    }
}
