public import HexlistAPI
import HexlistEventLoop
public import HexlistModel
public import HexlistStore
public import HexlistDelivery
import NIOCore

// Bulk sends: streams of hexes that are enqueued in batches.
extension Outbox {
    /// Begins a bulk send.
    /// - Parameters:
    ///   - force: whether to accept hexes that failed within the last 3 minutes.
    ///   - reportsAll: whether all rows are reported, instead of failures only.
    ///   - onChange: called on the node's event loop after each change.
    /// - Throws: `HexlistError` as `send`.
    public func beginBulk(
        to peers: [PeerID], force: Bool, reportsAll: Bool = false, onChange: @escaping @Sendable () -> Void
    ) throws -> OutgoingSend {
        let tracked = TrackedSend(to: peers, .stream(reportsAll: reportsAll), clocks, onChange: onChange)
        return OutgoingSend(tracked: tracked, recipients: try recipients(peers), warns: !force)
    }

    /// Runs `body` while the results of the bulk send's rows are recorded. Rows are also delivered after `body` has returned.
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

    /// Enqueues hexes in their order. They are durable when the method returns. While the outbox is full, it waits for capacity.
    /// - Parameter timeout: seconds without a completed row after which a full outbox is an error.
    /// - Returns: the refused hexes, and the reason why the hexes after them were not enqueued: `outboxFull`, `storageFull`, `internal`.
    public func enqueue(
        _ hexes: [PreparedHexes], for bulk: OutgoingSend, timeout: Double
    ) async -> (refused: [RefusedHex], failure: HexlistError?) {
        let count = hexes.reduce(0) { $0 + $1.count }
        var next = 0
        var refused: [RefusedHex] = []
        while next < count {
            let capacityEpoch = deliveries.sends.capacityEpoch
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
                await throttle(bulk)
                continue
            }
            guard await hasDrained(since: capacityEpoch, within: timeout) else { return (refused, full) }
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

    /// Milliseconds of the store's `StoreOpenTimeClock` after which a queued row expires.
    var outboxLifetime: Int64 { Int64(limits.expireDays) * 86_400_000 }

    /// Passes enqueued rows to their deliveries, in ascending order.
    func enqueued(_ taken: EnqueuedHexes, for send: OutgoingSend) {
        let requeued = taken.requeued
        let peers = taken.recipients.map(\.peer)
        var queued = [[OutgoingHex]](repeating: [], count: peers.count)
        taken.forEachPart { part, hexes, index in
            let isMost = hexes.isMost(index..<index + part.hexes)
            func accept(_ index: Int, _ position: Int, _ row: EnqueuedRow) {
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
        node?.assumeIsolated { node in
            node.routes.sender.queued(for: Array(rows.keys), again: requeued.map(\.peer), node)
            node.devices.rowsQueued(for: Array(rows.keys), node)
        }
        outboxChanged()
    }

    /// Maximum wait for deliveries after each batch. A peer that is much slower than the stream causes few waits: its rows soon exceed the
    /// memory of `PeerDelivery`, which then reads them from the store.
    private static let longestThrottle = Duration.milliseconds(50)

    /// Waits up to `longestThrottle` for peers that are about as fast as the stream, so that their rows are sent from memory, and the
    /// database pages of completed rows are reused before a checkpoint copies them. This saves a seventh of the sender's processor time.
    private func throttle(_ bulk: OutgoingSend) async {
        let deadline = clocks.now + Self.longestThrottle
        let peers = bulk.recipients.map(\.peer)
        while deliveries.isBufferFilling(for: peers), clocks.now < deadline, !isStopping, !Task.isCancelled {
            await sleepForCapacity(until: deadline)
        }
    }

    /// Waits until rows are completed or deleted.
    /// - Parameter capacityEpoch: the value of `capacityEpoch` in `deliveries.sends` before the outbox was found full.
    /// - Returns: `false` after the timeout, a cancellation or the node's stop.
    private func hasDrained(since capacityEpoch: UInt64, within seconds: Double) async -> Bool {
        if deliveries.sends.capacityEpoch == capacityEpoch, !isStopping, !Task.isCancelled {
            await sleepForCapacity(until: clocks.now + .seconds(seconds))
        }
        return deliveries.sends.capacityEpoch != capacityEpoch && !isStopping && !Task.isCancelled
    }

    /// Sleeps until rows are completed or deleted, the node stops, or the deadline.
    private func sleepForCapacity(until deadline: ContinuousClock.Instant) async {
        let wakeup = Wakeup()
        deliveries.sends.waitForCapacity(wakeup)
        defer { deliveries.sends.stopWaiting(wakeup) }
        await wakeup.sleep(until: deadline, on: eventLoop, clocks)
    }

    // MARK: Results

    /// Whether the wait for results is over: every row is complete or cannot be completed for now, there was no progress for `timeout`
    /// seconds, or the node stops.
    public func isOver(_ bulk: OutgoingSend, timeout: Double) -> Bool {
        isOver(bulk.tracked, until: bulk.tracked.lastProgress + .seconds(timeout))
    }

    /// The counts so far, from memory. `summary` reads them from the store.
    public func progress(of bulk: OutgoingSend) -> SendCounts { bulk.tracked.counts }

    /// Reads the counts of the rows from the store.
    public func summary(of bulk: OutgoingSend) async throws -> SendCounts {
        let ranges = bulk.tracked.rows.ranges
        let stored = try await store.read { try $0.outboxCounts(of: ranges) }
        var counts = SendCounts()
        for state in OutboxState.allCases { counts.add(Int(clamping: stored[state]), in: state) }
        counts.earlier = bulk.tracked.counts.earlier
        return counts
    }

    /// Removes and returns the failed rows that were not reported yet, with their lines.
    public func takeFailures(of bulk: OutgoingSend) async throws -> [(line: Int?, outcome: SendOutcome)] {
        let ids = bulk.tracked.takeFailures()
        guard !ids.isEmpty else { return [] }
        return try await store.read { try $0.outboxRows(ids) }.map { (bulk.tracked.line(of: $0.id), SendOutcome($0)) }
    }

    /// Removes and returns the next rows that were not reported yet, in the order in which they were accepted, up to the first incomplete
    /// one.
    /// - Parameters:
    ///   - all: whether to take incomplete rows too.
    ///   - limit: maximum number of rows.
    public func takeRows(of bulk: OutgoingSend, all: Bool, limit: Int) async throws -> [(line: Int?, outcome: SendOutcome)] {
        let ids = bulk.tracked.nextUnreported(limit)
        guard !ids.isEmpty else { return [] }
        let rows = try await store.read { try $0.outboxRows(ids) }.prefix { all || $0.state != .queued }
        return zip(bulk.tracked.markReported(rows.count), rows).map { (line: $0, outcome: SendOutcome($1)) }
    }
}
