public import HexlistAPI
public import HexlistModel
public import HexlistStore
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
    ) throws -> TrackedSend {
        TrackedSend(to: try recipients(peers), warns: !force, .stream(tellsAll: tellsAll), onChange: onChange)
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
            for (hex, result) in zip(rest, taken.report.results) {
                if case .failure(let error) = result { refused.append(RefusedHex(line: hex.line, error: error)) }
            }
            rest = rest.dropFirst(taken.report.results.count)
            guard let full = taken.report.full else {
                await keepPace(with: bulk)
                continue
            }
            guard await hasDrained(since: madeRoom, within: timeout) else { return (refused, full) }
        }
        return (refused, nil)
    }

    /// What became of hexes on their way into the outbox.
    struct Taken: Sendable {
        /// The result of each hex, as far as the outbox had room: its rows, one a recipient, or the reason why it was refused.
        let report: EnqueueReport
        let hexes: ArraySlice<PreparedHex>
        let recipients: [PeerSighting]
        /// Whether the rows are committed. Until then they cannot be read, and may come to nothing.
        let isDurable: Bool

        /// The rows that were there before, by their hex's key, and are queued anew.
        var requeued: [RowMove] {
            var moves: [RowMove] = []
            for (hex, result) in zip(hexes, report.results) where hex.hasKey {
                guard case .success(let rows) = result else { continue }
                for (recipient, row) in zip(recipients, rows) {
                    guard case .requeued(let id, let state) = row else { continue }
                    moves.append(RowMove(id: id, peer: recipient.peer, from: state, to: .queued))
                }
            }
            return moves
        }

        /// The outcomes of the first hex, one a recipient.
        func outcomes() throws -> [SendOutcome] {
            guard let hex = hexes.first, let rows = try report.results.first?.get() else {
                throw HexlistError(.internal, "The outbox lost a row.")
            }
            return zip(recipients, rows).map { recipient, row in
                switch row {
                case .new(let id), .requeued(let id, _):
                    return SendOutcome(outboxID: id, messageID: hex.messageID, peer: recipient.peer, state: .queued)
                case .existing(let earlier):
                    var outcome = SendOutcome(earlier)
                    outcome.earlier = true
                    return outcome
                }
            }
        }
    }

    private func submit(_ hexes: ArraySlice<PreparedHex>, for bulk: TrackedSend) async throws -> Taken {
        try checkTakesRows()
        return try await enqueue(hexes, terms(for: bulk, at: Timestamp.now.milliseconds)) { node, taken in
            node.enqueued(taken, for: bulk)
            bulk.progressed()
        }
    }

    func terms(for send: TrackedSend, at now: Int64) -> OutboxTerms {
        OutboxTerms(
            recipients: send.recipients, warns: send.warns, now: now, expiresAt: outboxExpiry(from: now),
            bounds: OutboxBounds(rows: configuration.outbox.rows, bytes: configuration.outbox.bytes))
    }

    /// When a row that is queued at `time` is given up, in milliseconds since 1970.
    func outboxExpiry(from time: Int64) -> Int64 { time + Int64(configuration.outbox.expireDays) * 86_400_000 }

    /// Rows were queued, in this order: their deliveries take them up.
    func enqueued(_ taken: Taken, for send: TrackedSend) {
        let requeued = taken.requeued
        sends.moved(requeued)
        var queued = [[OutgoingHex]](repeating: [], count: taken.recipients.count)
        for (hex, result) in zip(taken.hexes, taken.report.results) {
            guard case .success(let rows) = result else { continue }
            for (index, row) in rows.enumerated() {
                let peer = taken.recipients[index].peer
                send.accepted(row.id, for: peer, row.state, isEarlier: row.isEarlier, line: hex.line)
                guard row.state == .queued else { continue }
                queued[index].append(OutgoingHex(id: row.id, messageID: hex.messageID, body: hex.body))
            }
        }
        var rows: [PeerID: [OutgoingHex]] = [:]
        for (recipient, queued) in zip(taken.recipients, queued) where !queued.isEmpty { rows[recipient.peer] = queued }
        deliveries.queued(rows, again: Set(requeued.map(\.peer)), isDurable: taken.isDurable, self)
        notifyWatchers()
    }

    /// The longest wait for deliveries after a batch. A peer that is much slower than the stream is waited for a few times only: then more
    /// is queued than `PeerDelivery` keeps in memory, and it is behind no more but reads from the store.
    private static let pace = Duration.milliseconds(50)

    /// Waits a moment for peers that take rows about as fast as they come. So these stay in memory until they are sent, and the store uses
    /// their pages again, instead of moving them into its file and reading them back: a seventh of the sender's processor time.
    private func keepPace(with bulk: TrackedSend) async {
        let deadline = ContinuousClock.now + Self.pace
        let peers = bulk.recipients.map(\.peer)
        while deliveries.isBehind(peers), ContinuousClock.now < deadline, !isStopping, !Task.isCancelled {
            await sleepForRoom(until: deadline)
        }
    }

    /// Waits until something of the outbox came to an end.
    /// - Parameter madeRoom: that of the tracker before the outbox was found full.
    /// - Returns: `false` after so many seconds without, or when nobody wants it any more.
    private func hasDrained(since madeRoom: UInt64, within seconds: Double) async -> Bool {
        if sends.madeRoom == madeRoom, !isStopping, !Task.isCancelled { await sleepForRoom(until: .now + .seconds(seconds)) }
        return sends.madeRoom != madeRoom && !isStopping && !Task.isCancelled
    }

    /// Sleeps until something of the outbox came to an end, the node stops, or the deadline.
    private func sleepForRoom(until deadline: ContinuousClock.Instant) async {
        let wakeup = Wakeup()
        sends.waitForRoom(wakeup)
        defer { sends.stopWaiting(wakeup) }
        await wakeup.sleep(until: deadline, on: eventLoop)
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
