public import HexlistAPI
import HexlistEventLoop
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
        TrackedSend(to: try recipients(peers), warns: !force, .stream(tellsAll: tellsAll), clocks, onChange: onChange)
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
        _ hexes: [PreparedHexes], for bulk: TrackedSend, timeout: Double
    ) async -> (refused: [RefusedHex], failure: HexlistError?) {
        let count = hexes.reduce(0) { $0 + $1.count }
        var next = 0
        var refused: [RefusedHex] = []
        while next < count {
            let madeRoom = sends.madeRoom
            let taken: Taken
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

    /// Hexes on their way into the outbox, with the outcome of those that it had room for.
    struct Taken: Sendable {
        let report: EnqueueReport
        let hexes: [PreparedHexes]
        /// The number of hexes before the first one that the report tells of.
        let start: Int
        let recipients: [PeerSighting]
        /// Whether the rows are committed. Until then they cannot be read, and may come to nothing.
        let isDurable: Bool

        /// Calls `body` with each part of the report, and the hexes it begins with: the index of the first, in those it is one of.
        func forEachPart(_ body: (EnqueueReport.Part, PreparedHexes, Int) -> Void) {
            var parts = report.parts[...]
            var index = start
            for hexes in hexes {
                while index < hexes.count, let part = parts.popFirst() {
                    body(part, hexes, index)
                    index += part.hexes
                }
                index -= hexes.count
            }
        }

        /// The rows that were there before, by their hex's key, and are queued anew.
        var requeued: [RowMove] {
            var moves: [RowMove] = []
            for part in report.parts {
                guard case .again(let rows) = part else { continue }
                for (recipient, row) in zip(recipients, rows) {
                    guard case .requeued(let id, let state) = row else { continue }
                    moves.append(RowMove(id: id, peer: recipient.peer, from: state, to: .queued))
                }
            }
            return moves
        }

        /// The outcomes of one hex, one a recipient.
        func outcomes() throws -> [SendOutcome] {
            let rows: [Enqueued]
            switch report.parts.first {
            case .new(_, let first): rows = first.map { .new($0) }
            case .again(let again): rows = again
            case .refused(let error): throw error
            case nil: throw HexlistError(.internal, "The outbox lost a row.")
            }
            guard let messageID = hexes.first?.messageID(0) else { return [] }
            return zip(recipients, rows).map { recipient, row in
                switch row {
                case .new(let id), .requeued(let id, _):
                    return SendOutcome(outboxID: id, messageID: messageID, peer: recipient.peer, state: .queued)
                case .existing(let earlier):
                    var outcome = SendOutcome(earlier)
                    outcome.earlier = true
                    return outcome
                }
            }
        }
    }

    private func submit(_ hexes: [PreparedHexes], from start: Int, for bulk: TrackedSend) async throws -> Taken {
        try checkTakesRows()
        return try await enqueue(hexes, from: start, terms(for: bulk, at: clocks.milliseconds)) { node, taken in
            node.enqueued(taken, for: bulk)
            bulk.progressed()
        }
    }

    func terms(for send: TrackedSend, at now: Int64) -> OutboxTerms {
        OutboxTerms(
            recipients: send.recipients, warns: send.warns, now: now, lifetime: outboxLifetime,
            bounds: OutboxBounds(rows: configuration.outbox.rows, bytes: configuration.outbox.bytes))
    }

    /// The milliseconds, by the store's `LivedClock`, after which a queued row is given up.
    var outboxLifetime: Int64 { Int64(configuration.outbox.expireDays) * 86_400_000 }

    /// Rows were queued, in this order: their deliveries take them up.
    func enqueued(_ taken: Taken, for send: TrackedSend) {
        let requeued = taken.requeued
        sends.moved(requeued)
        let peers = taken.recipients.map(\.peer)
        var queued = [[OutgoingHex]](repeating: [], count: peers.count)
        taken.forEachPart { part, hexes, index in
            let isMost = hexes.isMost(index..<index + part.hexes)
            func accept(_ index: Int, _ position: Int, _ row: Enqueued) {
                send.accepted(row.id, for: peers[position], row.state, isEarlier: row.isEarlier, line: hexes.line(index))
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
        deliveries.queued(rows, again: Set(requeued.map(\.peer)), isDurable: taken.isDurable, self)
        notifyWatchers()
    }

    /// The longest wait for deliveries after a batch. A peer that is much slower than the stream is waited for a few times only: then more
    /// is queued than `PeerDelivery` keeps in memory, and it is behind no more but reads from the store.
    private static let pace = Duration.milliseconds(50)

    /// Waits a moment for peers that take rows about as fast as they come. So these stay in memory until they are sent, and the store uses
    /// their pages again, instead of moving them into its file and reading them back: a seventh of the sender's processor time.
    private func keepPace(with bulk: TrackedSend) async {
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
        if sends.madeRoom == madeRoom, !isStopping, !Task.isCancelled { await sleepForRoom(until: clocks.now + .seconds(seconds)) }
        return sends.madeRoom != madeRoom && !isStopping && !Task.isCancelled
    }

    /// Sleeps until something of the outbox came to an end, the node stops, or the deadline.
    private func sleepForRoom(until deadline: ContinuousClock.Instant) async {
        let wakeup = Wakeup()
        sends.waitForRoom(wakeup)
        defer { sends.stopWaiting(wakeup) }
        await wakeup.sleep(until: deadline, on: eventLoop, clocks)
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
