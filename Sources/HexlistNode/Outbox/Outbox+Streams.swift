public import HexlistAPI
import HexlistEventLoop
public import HexlistModel
public import HexlistStore
public import HexlistDelivery
import NIOCore

// Many hexes of one stream: batch by batch into the outbox, and from there as any other.
extension Outbox {
    /// - Parameters:
    ///   - force: takes what failed within the last 3 minutes too.
    ///   - tellsAll: each row is told, not only those that come to a bad end.
    ///   - onChange: something is to be told of it. On the node's loop.
    /// - Throws: `HexlistError` as `send`.
    public func beginBulk(
        to peers: [PeerID], force: Bool, tellsAll: Bool = false, onChange: @escaping @Sendable () -> Void
    ) throws -> OutgoingSend {
        let tracked = TrackedSend(to: peers, .stream(tellsAll: tellsAll), clocks, onChange: onChange)
        return OutgoingSend(tracked: tracked, recipients: try recipients(peers), warns: !force)
    }

    /// Runs `body` while what becomes of the rows is followed; later they go their way all the same.
    public nonisolated func following(_ bulk: OutgoingSend, _ body: () async throws -> Void) async throws {
        await follow(bulk)
        do {
            try await body()
        } catch {
            await unfollow(bulk)
            throw error
        }
        await unfollow(bulk)
    }

    func follow(_ bulk: OutgoingSend) { deliveries.sends.follow(bulk.tracked) }

    func unfollow(_ bulk: OutgoingSend) { deliveries.sends.unfollow(bulk.tracked) }

    /// Takes hexes into the outbox, in their order, durably once it returns. At the outbox's bound it waits until rows are
    /// delivered.
    /// - Parameter timeout: seconds without anything delivered at the bound, after which it is given up.
    /// - Returns: those that were refused, and why what is behind them was not taken: `outboxFull`, `storageFull`, `internal`.
    public func enqueue(
        _ hexes: [PreparedHexes], for bulk: OutgoingSend, timeout: Double
    ) async -> (refused: [RefusedHex], failure: HexlistError?) {
        let count = hexes.reduce(0) { $0 + $1.count }
        var next = 0
        var refused: [RefusedHex] = []
        while next < count {
            let madeRoom = deliveries.sends.madeRoom
            let taken: EnqueuedHexes
            do {
                taken = try await submit(hexes, from: next, for: bulk)
            } catch {
                logger.error("outbox could not be written", metadata: ["error": "\(error)"])
                return (refused, error as? HexlistError ?? HexlistError(.internal, "The outbox could not be written."))
            }
            taken.forEachPart { part, hexes, index in
                if case .refused(let error) = part { refused.append(RefusedHex(line: hexes.line(index), error: error)) }
            }
            next += taken.report.hexes
            guard let full = taken.report.full else {
                await keepPace(with: bulk)
                continue
            }
            guard await hasDrained(since: madeRoom, within: timeout) else { return (refused, full) }
        }
        return (refused, nil)
    }

    private func submit(_ hexes: [PreparedHexes], from start: Int, for bulk: OutgoingSend) async throws -> EnqueuedHexes {
        try checkTakesRows()
        return try await enqueue(hexes, from: start, terms(for: bulk, at: clocks.milliseconds)) { outbox, taken in
            outbox.enqueued(taken, for: bulk)
            bulk.tracked.progressed()
        }
    }

    func terms(for send: OutgoingSend, at now: Int64) -> EnqueueOptions {
        EnqueueOptions(
            recipients: send.recipients, warns: send.warns, now: now, lifetime: outboxLifetime,
            bounds: OutboxBounds(rows: limits.rows, bytes: limits.bytes))
    }

    /// The milliseconds, by the store's `LivedClock`, after which a queued row is given up.
    var outboxLifetime: Int64 { Int64(limits.expireDays) * 86_400_000 }

    /// Rows were queued, in this order: their deliveries take them up.
    func enqueued(_ taken: EnqueuedHexes, for send: OutgoingSend) {
        let requeued = taken.requeued
        let peers = taken.recipients.map(\.peer)
        var queued = [[OutgoingHex]](repeating: [], count: peers.count)
        taken.forEachPart { part, hexes, index in
            let isMost = hexes.isMost(index..<index + part.hexes)
            func accept(_ index: Int, _ position: Int, _ row: Enqueued) {
                send.tracked.accepted(row.id, for: peers[position], row.state, isEarlier: row.isEarlier, line: hexes.line(index))
                guard row.state == .queued else { return }
                let body = isMost ? hexes.body(index) : ArraySlice(Array(hexes.body(index)))
                queued[position].append(OutgoingHex(id: row.id, messageID: hexes.messageID(index), body: body))
            }
            switch part {
            case .new(let count, let first):
                for hex in 0..<count {
                    for position in peers.indices { accept(index + hex, position, .new(first[position] + Int64(hex))) }
                }
            case .again(let rows): for (position, row) in rows.enumerated() { accept(index, position, row) }
            case .refused: break
            }
        }
        var rows: [PeerID: [OutgoingHex]] = [:]
        for (peer, queued) in zip(peers, queued) where !queued.isEmpty { rows[peer] = queued }
        deliveries.sends.moved(requeued)
        deliveries.queued(rows, again: Set(requeued.map(\.peer)), isDurable: taken.isDurable, self)
        outboxChanged()
    }

    /// The longest wait for deliveries after a batch. A peer that is much slower than the stream is waited for a few times only: then more
    /// is queued than `PeerDelivery` keeps in memory, and it is behind no more but reads from the store.
    private static let pace = Duration.milliseconds(50)

    /// Waits a moment for peers that take rows about as fast as they come. So these stay in memory until they are sent, and the store uses
    /// their pages again, instead of moving them into its file and reading them back: a seventh of the sender's processor time.
    private func keepPace(with bulk: OutgoingSend) async {
        let deadline = clocks.now + Self.pace
        let peers = bulk.recipients.map(\.peer)
        while deliveries.isBehind(peers), clocks.now < deadline, !isStopping, !Task.isCancelled {
            await sleepForRoom(until: deadline)
        }
    }

    /// Waits until something of the outbox came to an end.
    /// - Parameter madeRoom: that of the tracker before the outbox was found full.
    /// - Returns: `false` after so many seconds without, or when nobody wants it any more.
    private func hasDrained(since madeRoom: UInt64, within seconds: Double) async -> Bool {
        if deliveries.sends.madeRoom == madeRoom, !isStopping, !Task.isCancelled {
            await sleepForRoom(until: clocks.now + .seconds(seconds))
        }
        return deliveries.sends.madeRoom != madeRoom && !isStopping && !Task.isCancelled
    }

    /// Sleeps until something of the outbox came to an end, the node stops, or the deadline.
    private func sleepForRoom(until deadline: ContinuousClock.Instant) async {
        let wakeup = Wakeup()
        deliveries.sends.waitForRoom(wakeup)
        defer { deliveries.sends.stopWaiting(wakeup) }
        await wakeup.sleep(until: deadline, on: eventLoop, clocks)
    }

    // MARK: What became of it

    /// Whether there is nothing to wait for any more: every row has an end, or cannot have one for now, or nothing
    /// happened for so long.
    /// - Parameter timeout: seconds.
    public func isOver(_ bulk: OutgoingSend, timeout: Double) -> Bool {
        isOver(bulk.tracked, until: bulk.tracked.lastProgress + .seconds(timeout))
    }

    /// The counts as they were last heard of; `outboxCounts` of the store has the last word.
    public func progress(of bulk: OutgoingSend) -> BulkCounts { bulk.tracked.counts }

    /// Returns the counts of the rows of `bulk` as the store has them.
    public func summary(of bulk: OutgoingSend) async throws -> BulkCounts {
        let ranges = bulk.tracked.rows.ranges
        let stored = try await store.read { try $0.outboxCounts(of: ranges) }
        var counts = BulkCounts()
        for state in OutboxState.allCases { counts.add(Int(clamping: stored[state]), in: state) }
        counts.earlier = bulk.tracked.counts.earlier
        return counts
    }

    /// Ends other than `stored` and `held` that were not told yet, with their lines.
    public func takeEnds(of bulk: OutgoingSend) async throws -> [(line: Int?, outcome: SendOutcome)] {
        let ids = bulk.tracked.takeUnread()
        guard !ids.isEmpty else { return [] }
        return try await store.read { try $0.outboxRows(ids) }.map { (bulk.tracked.line(of: $0.id), SendOutcome($0)) }
    }

    /// The next rows nobody was told of, in the order they were taken in, as far as they have an end.
    /// - Parameters:
    ///   - all: those without an end too.
    ///   - limit: at most.
    public func takeRows(of bulk: OutgoingSend, all: Bool, limit: Int) async throws -> [(line: Int?, outcome: SendOutcome)] {
        let ids = bulk.tracked.nextUntold(limit)
        guard !ids.isEmpty else { return [] }
        let rows = try await store.read { try $0.outboxRows(ids) }.prefix { all || $0.state != .queued }
        return zip(bulk.tracked.told(rows.count), rows).map { (line: $0, outcome: SendOutcome($1)) }
    }
}
