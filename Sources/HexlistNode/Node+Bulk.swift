public import HexlistAPI
public import HexlistModel
import HexlistStore
import NIOCore

/// Many hexes of one stream: batch by batch into the outbox, and from there as any other.
extension Node {
    /// - Parameters:
    ///   - force: takes what failed within the last 3 minutes too.
    ///   - tellsAll: each row is told, not only those that come to a bad end.
    ///   - onChange: something is to be told of it. On the node's loop.
    /// - Throws: `HexlistError` as `send`.
    public func beginBulk(
        to peers: [PeerID], force: Bool, tellsAll: Bool = false, onChange: @escaping @Sendable () -> Void
    ) async throws -> TrackedSend {
        let recipients = try recipients(peers)
        try await store.write { writer in
            for recipient in recipients { try writer.upsertPeer(recipient, creating: true) }
        }
        await known.reload(self)
        return TrackedSend(to: recipients, warns: !force, .stream(tellsAll: tellsAll), onChange: onChange)
    }

    /// Runs `body` while what becomes of the rows is followed; later they go their way all the same.
    public nonisolated func following(_ bulk: TrackedSend, _ body: () async throws -> Void) async throws {
        await follow(bulk)
        do {
            try await body()
        } catch {
            await unfollow(bulk)
            throw error
        }
        await unfollow(bulk)
    }

    func follow(_ bulk: TrackedSend) { sends.follow(bulk) }

    func unfollow(_ bulk: TrackedSend) { sends.unfollow(bulk) }

    /// Takes hexes into the outbox, in their order, durably once it returns. At the outbox's bound it waits until rows are
    /// delivered.
    /// - Parameter timeout: seconds without anything delivered at the bound, after which it is given up.
    /// - Returns: those that were refused, and why what is behind them was not taken: `outboxFull`, `storageFull`, `internal`.
    public func enqueue(
        _ batch: [PreparedHex], for bulk: TrackedSend, timeout: Double
    ) async -> (refused: [RefusedHex], failure: HexlistError?) {
        var rest = batch[...]
        var refused: [RefusedHex] = []
        while !rest.isEmpty {
            let madeRoom = sends.madeRoom
            let taken: Taken
            do {
                taken = try await submit(rest, for: bulk)
            } catch {
                logger.error("outbox could not be written", metadata: ["error": "\(error)"])
                return (refused, error as? HexlistError ?? HexlistError(.internal, "The outbox could not be written."))
            }
            for (hex, result) in zip(rest, taken.results) {
                if case .failure(let error) = result { refused.append(RefusedHex(line: hex.line, error: error)) }
            }
            rest = rest.dropFirst(taken.results.count)
            guard let full = taken.full else { continue }
            guard await hasDrained(since: madeRoom, within: timeout) else { return (refused, full) }
        }
        return (refused, nil)
    }

    /// The results of hexes on their way into the outbox.
    struct Taken: Sendable {
        /// The result of each hex, as far as the outbox had room: its rows, one a peer, or the reason why it was refused.
        var results: [Result<[SendOutcome], HexlistError>] = []
        /// Rows that were there before and are queued anew.
        var requeued: [RowMove] = []
        var full: HexlistError?
    }

    private func submit(_ hexes: ArraySlice<PreparedHex>, for bulk: TrackedSend) async throws -> Taken {
        try checkTakesRows()
        let terms = queueTerms(for: bulk, at: Node.wallClock())
        return try await inOrder({ try Node.enqueue(hexes, terms, $0) }) { node, taken in
            node.enqueued(hexes, taken) { bulk.accepted($1, line: $0) }
            bulk.progressed()
        }
    }

    /// The receivers of queued hexes, and the terms of their rows.
    struct QueueTerms: Sendable {
        var peers: [PeerID]
        /// Refuses what failed within the last 3 minutes.
        var warns: Bool
        var now: Int64
        var expiresAt: Int64
        var bounds: OutboxBounds
    }

    func queueTerms(for send: TrackedSend, at now: Int64) -> QueueTerms {
        QueueTerms(
            peers: send.recipients.map(\.peer), warns: send.warns, now: now, expiresAt: outboxExpiry(from: now),
            bounds: OutboxBounds(rows: configuration.outbox.rows, bytes: configuration.outbox.bytes))
    }

    /// When a row that is queued at `time` is given up, in milliseconds since 1970.
    func outboxExpiry(from time: Int64) -> Int64 { time + Int64(configuration.outbox.expireDays) * 86_400_000 }

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

    /// Queues each hex for each peer; all of the peers, or none where there is no room.
    static func enqueue(_ hexes: ArraySlice<PreparedHex>, _ terms: QueueTerms, _ writer: StoreWriter) throws -> Taken {
        let peers = terms.peers
        let failedLately = terms.warns ? try failedLately(hexes, peers, writer, since: terms.now - 180_000) : [:]
        var inserts: [OutboxInsert] = []
        inserts.reserveCapacity(hexes.count * peers.count)
        for hex in hexes where failedLately[hex.line] == nil {
            for peer in peers {
                inserts.append(
                    OutboxInsert(
                        peer: peer, messageID: hex.messageID, body: hex.body, digest: hex.digest, subject: hex.subject,
                        isFresh: !hex.hasKey, createdAt: terms.now, expiresAt: terms.expiresAt))
            }
        }
        var taken = Taken()
        taken.results.reserveCapacity(hexes.count)
        var outcomes = zip(inserts, try writer.enqueue(inserts, groupsOf: peers.count, bounds: terms.bounds)).makeIterator()
        for hex in hexes {
            if let error = failedLately[hex.line] {
                taken.results.append(.failure(error))
                continue
            }
            var rows: [SendOutcome] = []
            do {
                for _ in peers {
                    guard let (insert, outcome) = outcomes.next() else { break }
                    rows.append(try row(of: outcome, insert, terms, writer, &taken.requeued))
                }
                taken.results.append(.success(rows))
            } catch let error as HexlistError where error.code == .outboxFull {
                taken.full = error
                return taken
            } catch let error as HexlistError where error.code == .keyConflict {
                for _ in rows.count + 1..<peers.count { _ = outcomes.next() }
                taken.results.append(.failure(error))
            }
        }
        return taken
    }

    private static func row(
        of outcome: Enqueued, _ insert: OutboxInsert, _ terms: QueueTerms, _ writer: StoreWriter, _ requeued: inout [RowMove]
    ) throws -> SendOutcome {
        switch outcome {
        case .new(let id): return SendOutcome(outboxID: id, messageID: insert.messageID, peer: insert.peer, state: .queued)
        case .refused(let error): throw error
        case .existing(let earlier):
            // The same key again: what failed, expired or was taken back is given another chance.
            guard try writer.requeue(earlier.id, insert, bounds: terms.bounds, at: terms.now) else {
                var outcome = SendOutcome(earlier)
                outcome.earlier = true
                return outcome
            }
            requeued.append(RowMove(id: earlier.id, peer: insert.peer, from: earlier.state, to: .queued))
            return SendOutcome(outboxID: earlier.id, messageID: insert.messageID, peer: insert.peer, state: .queued)
        }
    }

    /// Rows were queued, in this order: their deliveries take them up.
    func enqueued(_ hexes: ArraySlice<PreparedHex>, _ taken: Taken, _ accepted: (_ line: Int, SendOutcome) -> Void) {
        sends.moved(taken.requeued)
        var queued: [PeerID: [OutgoingHex]] = [:]
        for (hex, result) in zip(hexes, taken.results) {
            guard case .success(let rows) = result else { continue }
            for row in rows {
                accepted(hex.line, row)
                guard row.state == .queued else { continue }
                queued[row.peer, default: []].append(OutgoingHex(id: row.outboxID, messageID: row.messageID, body: hex.body))
            }
        }
        deliveries.queued(queued, again: Set(taken.requeued.map(\.peer)), self)
        notifyWatchers()
    }

    /// Waits until something of the outbox came to an end.
    /// - Parameter madeRoom: that of the tracker before the outbox was found full.
    /// - Returns: `false` after so many seconds without, or when nobody wants it any more.
    private func hasDrained(since madeRoom: UInt64, within seconds: Double) async -> Bool {
        if sends.madeRoom == madeRoom, !isStopping, !Task.isCancelled {
            let wakeup = Wakeup()
            sends.waitForRoom(wakeup)
            defer { sends.stopWaiting(wakeup) }
            await wakeup.sleep(until: .now + .seconds(seconds), on: eventLoop)
        }
        return sends.madeRoom != madeRoom && !isStopping && !Task.isCancelled
    }

    // MARK: What became of it

    /// Whether there is nothing to wait for any more: every row has an end, or cannot have one for now, or nothing
    /// happened for so long.
    /// - Parameter timeout: seconds.
    public func isOver(_ bulk: TrackedSend, timeout: Double) -> Bool { isOver(bulk, until: bulk.lastProgress + .seconds(timeout)) }

    /// The counts as they were last heard of; `outboxCounts` of the store has the last word.
    public func progress(of bulk: TrackedSend) -> BulkCounts { bulk.counts }

    /// Returns the counts of the rows of `bulk` as the store has them.
    public func summary(of bulk: TrackedSend) async throws -> BulkCounts {
        let ranges = bulk.rows.ranges
        let stored = try await store.read { try $0.outboxCounts(of: ranges) }
        var counts = BulkCounts()
        for state in OutboxState.allCases { counts.add(Int(clamping: stored[state]), in: state) }
        counts.earlier = bulk.counts.earlier
        return counts
    }

    /// Ends other than `stored` and `held` that were not told yet, with their lines.
    public func takeEnds(of bulk: TrackedSend) async throws -> [(line: Int?, outcome: SendOutcome)] {
        let ids = bulk.takeUnread()
        guard !ids.isEmpty else { return [] }
        return try await store.read { try $0.outboxRows(ids) }.map { (bulk.line(of: $0.id), SendOutcome($0)) }
    }

    /// The next rows nobody was told of, in the order they were taken in, as far as they have an end.
    /// - Parameters:
    ///   - all: those without an end too.
    ///   - limit: at most.
    public func takeRows(of bulk: TrackedSend, all: Bool, limit: Int) async throws -> [(line: Int?, outcome: SendOutcome)] {
        let ids = bulk.nextUntold(limit)
        guard !ids.isEmpty else { return [] }
        let rows = try await store.read { try $0.outboxRows(ids) }.prefix { all || $0.state != .queued }
        return zip(bulk.told(rows.count), rows).map { (line: $0, outcome: SendOutcome($1)) }
    }
}
