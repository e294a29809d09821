import Crypto
import HexlistModel
import HexlistStore
import HexlistWire
import NIOCore

/// A send is a row of the outbox first, and a promise only then.
extension Node {
    /// One hex to one or more peers: a durable row for each, in the order of `request.peers`.
    /// - Parameter deadline: waits until each row has an end, cannot have one for now (its peer is away, or it waits for
    ///   trust), or this time; `nil` waits for none of it.
    /// - Throws: `HexlistError`: `notFound` for a hex or peer that is not there, `keyConflict`, `outboxFull`, `badRequest`.
    public func send(_ request: SendRequest, until deadline: ContinuousClock.Instant? = nil) async throws -> [SendOutcome] {
        let now = Node.wallClock()
        let hex = try await prepare(request, at: now)
        let expiresAt = now + Int64(configuration.outbox.expireDays) * 86_400_000
        let recipients = try recipients(request.peers, at: now)
        let bounds = OutboxBounds(rows: configuration.outbox.rows, bytes: configuration.outbox.bytes)
        let warns = !hex.hasKey && !request.force

        // Waits from the moment it is queued, so that no end is missed.
        let waiter = deadline.map { _ in OutcomeWaiter() }
        defer { waiter.map(endWaiting) }
        let work: @Sendable (StoreWriter) throws -> (rows: [OutboxRow], requeued: Set<Int64>) = { writer in
            var requeued: Set<Int64> = []
            let rows = try recipients.map { recipient in
                try writer.upsertPeer(recipient, creating: true)
                if warns, let failed = try writer.recentlyFailed(recipient.peer, digest: hex.digest, since: now - 180_000) {
                    throw Node.failedLately(failed)
                }
                let insert = OutboxInsert(
                    peer: recipient.peer, messageID: hex.messageID, body: hex.body, digest: hex.digest, isFresh: !hex.hasKey,
                    createdAt: now, expiresAt: expiresAt)
                let row: Int64
                switch try writer.enqueue(insert, bounds: bounds) {
                case .new(let id): row = id
                case .existing(let earlier):
                    // The same key again: what failed, expired or was taken back is given another chance.
                    if try writer.requeue(earlier.id, insert, at: now) { requeued.insert(earlier.id) }
                    row = earlier.id
                case .refused(let error): throw error
                }
                guard let stored = try writer.outboxRow(row) else { throw HexlistError(.internal, "The outbox lost a row.") }
                return stored
            }
            return (rows, requeued)
        }
        let rows = try await inOrder(work) { node, queued in
            if let waiter { node.wait(for: queued.rows, waiter) }
            for row in queued.rows where row.state == .queued {
                let link = node.link(to: row.peer)
                // A row queued anew stands before those that were loaded already.
                if queued.requeued.contains(row.id) { link.delivery.rowsChanged() }
                link.delivery.appended([OutgoingHex(id: row.id, messageID: row.messageID, body: hex.body)])
                node.kick(link)
            }
        }.rows
        if rows.contains(where: { known[$0.peer] == nil }) { reloadKnownSoon() }
        notifyWatchers()
        guard let deadline, let waiter else { return rows.map { SendOutcome($0) } }
        return try await outcomes(of: rows, waiter, until: deadline)
    }

    /// Work that queues rows, and what follows from it on the loop, in the order in which the rows were queued: a delivery
    /// that heard of a later row first would take the earlier one for read.
    func inOrder<Value: Sendable>(
        _ work: @escaping @Sendable (StoreWriter) throws -> Value, _ then: @escaping @Sendable (isolated Node, Value) -> Void
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            store.submit(work) { [self] result in
                onLoop { node in
                    if case .success(let value) = result { then(node, value) }
                    continuation.resume(with: result)
                }
            }
        }
    }

    static func failedLately(_ row: OutboxRow) -> HexlistError {
        HexlistError(
            .recentlyFailed,
            "The same hex to the same peer failed less than 3 minutes ago: \(row.message ?? row.lastError ?? "no reason given")",
            hint: "`hexlist outbox retry \(row.id)` tries that one again; --force sends another.")
    }

    func recipients(_ peers: [PeerID], at now: Int64) throws -> [PeerSighting] {
        guard !peers.isEmpty else { throw HexlistError(.badRequest, "No peer to send to.", hint: "Name one with --to.") }
        guard !peers.contains(id) else { throw HexlistError(.badRequest, "That is this machine itself.") }
        return try peers.map { try recipient($0, at: now) }
    }

    private func recipient(_ peer: PeerID, at now: Int64) throws -> PeerSighting {
        guard let view = view(of: peer) else { throw Node.unknown(peer) }
        guard view.trust != .blocked else {
            throw HexlistError(
                .badRequest, "\(TerminalText.clean(view.name, columns: 40)) is blocked here.", hint: "`hexlist peer unblock \(peer)` first."
            )
        }
        return PeerSighting(
            peer: peer, fingerprint: view.fingerprint, name: view.name, version: view.version, boot: view.boot,
            seenAt: view.lastSeen ?? now, endpoint: nil)
    }

    /// Makes hexes of this node's ready to travel; it has the name as it is now.
    public func preparer() -> HexPreparer { HexPreparer(own: id, name: configuration.name) }

    private func prepare(_ request: SendRequest, at now: Int64) async throws -> PreparedHex {
        switch request.content {
        case .forward(let hexID):
            guard let hex = try await store.read({ try $0.hex(hexID) }) else {
                throw HexlistError(.notFound, "There is no hex \(hexID).", hint: "`hexlist inbox` lists those there are.")
            }
            var preparer = preparer()
            return preparer.forward(hex.content, key: request.key, at: now)
        case .hex(let hex):
            var preparer = preparer()
            return try preparer.prepare(hex, key: request.key, at: now)
        }
    }

    // MARK: Waiting

    /// Waits as `send` does, for rows that were queued before.
    public func outcomes(of ids: [Int64], until deadline: ContinuousClock.Instant) async throws -> [SendOutcome] {
        // Registered before the rows are read, so that nothing that ends in between is missed.
        let waiter = OutcomeWaiter(rows: Set(ids))
        outcomeWaiters[ObjectIdentifier(waiter)] = waiter
        defer { endWaiting(waiter) }
        return try await outcomes(of: try await store.read { try $0.outboxRows(ids) }, waiter, until: deadline)
    }

    private func wait(for rows: [OutboxRow], _ waiter: OutcomeWaiter) {
        waiter.rows = Set(rows.map(\.id))
        outcomeWaiters[ObjectIdentifier(waiter)] = waiter
    }

    private func endWaiting(_ waiter: OutcomeWaiter) { outcomeWaiters[ObjectIdentifier(waiter)] = nil }

    private func outcomes(of rows: [OutboxRow], _ waiter: OutcomeWaiter, until deadline: ContinuousClock.Instant) async throws
        -> [SendOutcome]
    {
        while rows.contains(where: { waiter.ended[$0.id] == nil && isWorthWaiting(for: $0, until: deadline) }),
            ContinuousClock.Instant.now < deadline, !isStopping
        {
            await wait(waiter, until: deadline)
        }
        // Whoever was not delivered has a reason, which the store knows.
        let isDelivered = rows.allSatisfy { (waiter.ended[$0.id] ?? $0.state).isDelivered }
        let latest = isDelivered ? rows : try await store.read { try $0.outboxRows(rows.map(\.id)) }
        return latest.map { row in
            var outcome = SendOutcome(row)
            if let end = waiter.ended[row.id], end.isDelivered { outcome.state = end }
            return outcome
        }
    }

    func wait(_ waiter: OutcomeWaiter, until deadline: ContinuousClock.Instant) async {
        let timer = eventLoop.scheduleTask(in: TimeAmount(max(.zero, deadline - .now))) { [weak self] in
            self?.assumeIsolated { _ in waiter.wake() }
        }
        await withCheckedContinuation { waiter.continuation = $0 }
        timer.cancel()
    }

    /// A row whose peer is not there, takes nothing as long as it does not trust this one, or refused until after the
    /// deadline, is nothing to wait for.
    private func isWorthWaiting(for row: OutboxRow, until deadline: ContinuousClock.Instant) -> Bool {
        guard row.state == .queued, isWorthWaiting(for: row.peer, until: deadline) else { return false }
        return !(links[row.peer]?.delivery.waitsForTrust(bytes: row.bytes) ?? false)
    }

    func isWorthWaiting(for peer: PeerID, until deadline: ContinuousClock.Instant) -> Bool {
        guard let link = links[peer] else { return directory.isVerified(peer) }
        if let until = link.delivery.pausedUntil, until > deadline { return false }
        // A session that is just ending may have another one behind it.
        guard let session = link.sending, !session.machine.isClosed else { return directory.isVerified(peer) }
        return true
    }

    /// Rows that were answered, cancelled, or given up.
    func rowsEnded(_ ends: [RowEnd]) {
        guard !ends.isEmpty else { return }
        rowEnds &+= 1
        for bulk in bulks.values { bulk.ended(ends) }
        for waiter in outcomeWaiters.values { waiter.ended(ends) }
    }

    /// Receipts that are not written down yet. Who waits for one hex is told at once: the peer has it, and says so again
    /// should this node forget.
    func receiptsCame(_ ends: [RowEnd]) {
        for waiter in outcomeWaiters.values where waiter.rows != nil { waiter.ended(ends) }
    }

    /// Something changed about what rows wait for: everyone looks again.
    func wakeWaiters() {
        for waiter in outcomeWaiters.values where waiter.rows != nil || isStopping { waiter.wake() }
        for bulk in bulks.values { bulk.changed() }
    }
}

/// One caller that waits for rows; lives on the node's loop.
final class OutcomeWaiter: @unchecked Sendable {
    /// `nil`: for whichever row ends next.
    var rows: Set<Int64>?
    private(set) var ended: [Int64: OutboxState] = [:]
    /// A row it waits for ended.
    private(set) var hasEnded = false
    var continuation: CheckedContinuation<Void, Never>?

    init(rows: Set<Int64>? = nil) { self.rows = rows }

    func ended(_ ends: [RowEnd]) {
        var isOwn = rows == nil
        if let rows {
            for end in ends where rows.contains(end.id) {
                ended[end.id] = end.state
                isOwn = true
            }
        }
        guard isOwn else { return }
        hasEnded = true
        wake()
    }

    /// Something is to be looked at again.
    func wake() {
        continuation?.resume()
        continuation = nil
    }
}
