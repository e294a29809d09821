public import HexlistModel
import HexlistStore
import NIOCore

/// Many hexes of one stream: batch by batch into the outbox, and from there as any other.
extension Node {
    /// - Parameters:
    ///   - force: takes what failed within the last 3 minutes too.
    ///   - onChange: something is to be told of it. On the node's loop.
    /// - Throws: `HexlistError` as `send`.
    public func beginBulk(to peers: [PeerID], force: Bool, onChange: @escaping @Sendable () -> Void) async throws -> BulkSend {
        let recipients = try recipients(peers, at: Node.wallClock())
        try await store.write { writer in
            for recipient in recipients { try writer.upsertPeer(recipient, creating: true) }
        }
        await reloadKnown()
        let bulk = BulkSend(recipients: recipients, warns: !force, onChange: onChange)
        bulks[ObjectIdentifier(bulk)] = bulk
        return bulk
    }

    /// What `bulk` became of is no longer followed; its rows go their way.
    public func endBulk(_ bulk: BulkSend) { bulks[ObjectIdentifier(bulk)] = nil }

    /// Takes hexes into the outbox, in their order, durably once it returns. At the outbox's bound it waits until rows are
    /// delivered.
    /// - Parameter timeout: seconds without anything delivered at the bound, after which it is given up.
    /// - Returns: those that were refused.
    /// - Throws: `HexlistError` `outboxFull`, `storageFull`, `internal`: the rest of the batch was not taken.
    public func enqueue(_ batch: [PreparedHex], for bulk: BulkSend, timeout: Double) async throws -> [RefusedHex] {
        var rest = batch[...]
        var refusals: [RefusedHex] = []
        var mayExist = false
        while !rest.isEmpty {
            let ends = rowEnds
            let taken = try await submit(rest, for: bulk, mayExist: mayExist)
            rest = rest.dropFirst(taken.results.count)
            for (hex, result) in zip(batch[(rest.startIndex - taken.results.count)...], taken.results) {
                if case .failure(let error) = result { refusals.append(RefusedHex(line: hex.line, error: error)) }
            }
            guard let full = taken.full else { continue }
            mayExist = true  // some of its peers may have the first of the rest
            guard await hasDrained(since: ends, within: timeout) else { throw full }
        }
        return refusals
    }

    private struct Taken: Sendable {
        /// For each hex, as far as the outbox had room: its rows, one a peer, or why it was refused.
        var results: [Result<[SendOutcome], HexlistError>] = []
        /// Whose rows that were there before are queued anew.
        var requeued: Set<PeerID> = []
        var full: HexlistError?
    }

    private func submit(_ hexes: ArraySlice<PreparedHex>, for bulk: BulkSend, mayExist: Bool) async throws -> Taken {
        let now = Node.wallClock()
        let expiresAt = now + Int64(configuration.outbox.expireDays) * 86_400_000
        let bounds = OutboxBounds(rows: configuration.outbox.rows, bytes: configuration.outbox.bytes)
        let peers = bulk.recipients.map(\.peer)
        let warns = bulk.warns
        return try await inOrder({ writer in
            let failedLately = warns ? try Node.failedLately(hexes, peers, writer, since: now - 180_000) : [:]
            let inserts = hexes.lazy.filter { failedLately[$0.line] == nil }.flatMap { hex in
                peers.map { peer in
                    OutboxInsert(
                        peer: peer, messageID: hex.messageID, body: hex.body, digest: hex.digest, isFresh: !hex.hasKey && !mayExist,
                        createdAt: now, expiresAt: expiresAt)
                }
            }
            return try Node.enqueue(hexes, Array(inserts), peers, failedLately, bounds, writer, at: now)
        }) { node, taken in
            node.enqueued(hexes, taken, for: bulk)
        }
    }

    /// Hexes without a key that failed lately, by line.
    private static func failedLately(
        _ hexes: ArraySlice<PreparedHex>, _ peers: [PeerID], _ writer: StoreWriter, since time: Int64
    ) throws -> [Int: HexlistError] {
        guard try writer.counts().outbox.failed > 0 else { return [:] }
        var errors: [Int: HexlistError] = [:]
        for hex in hexes where !hex.hasKey {
            for peer in peers {
                guard let failed = try writer.recentlyFailed(peer, digest: hex.digest, since: time) else { continue }
                errors[hex.line] = failedLately(failed)
            }
        }
        return errors
    }

    private static func enqueue(
        _ hexes: ArraySlice<PreparedHex>, _ inserts: [OutboxInsert], _ peers: [PeerID], _ failedLately: [Int: HexlistError],
        _ bounds: OutboxBounds, _ writer: StoreWriter, at now: Int64
    ) throws -> Taken {
        var taken = Taken()
        taken.results.reserveCapacity(hexes.count)
        var outcomes = zip(inserts, try writer.enqueue(inserts, bounds: bounds)).makeIterator()
        for hex in hexes {
            if let error = failedLately[hex.line] {
                taken.results.append(.failure(error))
                continue
            }
            var rows: [SendOutcome] = []
            var refusal: HexlistError?
            for _ in peers {
                guard let (insert, outcome) = outcomes.next() else { break }
                switch outcome {
                case .new(let id): rows.append(SendOutcome(outboxID: id, messageID: insert.messageID, peer: insert.peer, state: .queued))
                case .refused(let error): refusal = error
                case .existing(let earlier):
                    var row = SendOutcome(earlier)
                    // The same key again: what failed, expired or was taken back is given another chance.
                    if try writer.requeue(earlier.id, insert, at: now) {
                        row = SendOutcome(outboxID: earlier.id, messageID: insert.messageID, peer: insert.peer, state: .queued)
                        taken.requeued.insert(insert.peer)
                    }
                    rows.append(row)
                }
            }
            if let refusal, refusal.code == .outboxFull {
                taken.full = refusal
                return taken
            }
            taken.results.append(refusal.map { .failure($0) } ?? .success(rows))
        }
        return taken
    }

    private func enqueued(_ hexes: ArraySlice<PreparedHex>, _ taken: Taken, for bulk: BulkSend) {
        var queued: [PeerID: [OutgoingHex]] = [:]
        for (hex, result) in zip(hexes, taken.results) {
            guard case .success(let rows) = result else { continue }
            for row in rows {
                bulk.accepted(row, line: hex.line)
                guard row.state == .queued else { continue }
                queued[row.peer, default: []].append(OutgoingHex(id: row.outboxID, messageID: row.messageID, body: hex.body))
            }
        }
        for (peer, rows) in queued {
            let link = link(to: peer)
            // A row queued anew stands before those that were loaded already.
            if taken.requeued.contains(peer) { link.delivery.rowsChanged() }
            link.delivery.appended(rows)
            kick(link)
        }
        bulk.progressed()
        notifyWatchers()
    }

    /// Waits until something of the outbox came to an end.
    /// - Parameter ends: `rowEnds` before the outbox was found full: what ended since then may have been all there was.
    /// - Returns: `false` after so many seconds without.
    private func hasDrained(since ends: UInt64, within seconds: Double) async -> Bool {
        guard !isStopping else { return false }
        guard rowEnds == ends else { return true }
        let waiter = OutcomeWaiter()
        outcomeWaiters[ObjectIdentifier(waiter)] = waiter
        defer { outcomeWaiters[ObjectIdentifier(waiter)] = nil }
        await wait(waiter, until: .now + .seconds(seconds))
        return waiter.hasEnded && !isStopping
    }

    // MARK: What became of it

    /// Whether there is nothing to wait for any more: every row has an end, or cannot have one for now, or nothing
    /// happened for so long.
    /// - Parameter timeout: seconds.
    public func isOver(_ bulk: BulkSend, timeout: Double) -> Bool {
        let deadline = bulk.lastProgress + .seconds(timeout)
        guard !isStopping, ContinuousClock.Instant.now < deadline else { return true }
        return !bulk.pending.contains { $1 > 0 && isWorthWaiting(for: $0, until: deadline) }
    }

    /// The counts as they were last heard of; `outboxCounts` of the store has the last word.
    public func progress(of bulk: BulkSend) -> BulkCounts { bulk.counts }

    /// What the store says became of its rows.
    public func summary(of bulk: BulkSend) async throws -> BulkCounts {
        let ranges = bulk.rows.all
        let stored = try await store.read { try $0.outboxCounts(of: ranges) }
        var counts = BulkCounts()
        for state in OutboxState.allCases { counts.add(Int(clamping: stored[state]), in: state) }
        return counts
    }

    /// Ends other than `stored` and `held` that were not told yet, with their lines.
    public func takeEnds(of bulk: BulkSend) async throws -> [(line: Int?, outcome: SendOutcome)] {
        let ids = bulk.takeUnread()
        guard !ids.isEmpty else { return [] }
        return try await store.read { try $0.outboxRows(ids) }.map { (bulk.line(of: $0.id), SendOutcome($0)) }
    }

    /// The rows after one, in order, as far as they have an end.
    /// - Parameters:
    ///   - all: those without an end too.
    ///   - limit: at most.
    public func outcomes(of bulk: BulkSend, after last: Int64, all: Bool, limit: Int) async throws -> [(line: Int?, outcome: SendOutcome)] {
        var ids: [Int64] = []
        for range in bulk.rows.all where range.upperBound > last {
            ids += (max(range.lowerBound, last + 1)...range.upperBound).prefix(limit - ids.count)
            if ids.count >= limit { break }
        }
        let rows = try await store.read { [ids] in try $0.outboxRows(ids) }
        return rows.prefix { all || $0.state != .queued }.map { (bulk.line(of: $0.id), SendOutcome($0)) }
    }
}
