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
        try checkTakesRows()
        let hex = try await prepare(request, at: now)
        let recipients = try recipients(request.peers)
        let terms = terms(for: recipients, warns: !request.force, at: now)

        // Waits from the moment it is queued, so that no end is missed.
        let waiter = deadline.map { _ in OutcomeWaiter() }
        defer { waiter.map(endWaiting) }
        let taken = try await enqueue([hex], terms) { node, taken in
            if let waiter, case .success(let rows)? = taken.results.first { node.wait(for: rows, waiter) }
            node.enqueued([hex], taken) { _, _ in }
        }
        if let error = taken.full { throw error }
        guard let rows = try taken.results.first?.get() else { throw HexlistError(.internal, "The outbox lost a row.") }
        guard let deadline, let waiter else { return rows }
        return try await outcomes(of: rows, bytes: hex.body.count, waiter, until: deadline)
    }

    /// - Throws: `daemonUnreachable` while another node takes this one's place: it would not hear of rows this one queues.
    func checkTakesRows() throws(HexlistError) {
        guard draining == nil, !isStopping else {
            throw HexlistError(
                .daemonUnreachable, "hexlistd is stopping, or is taking another identity.", hint: "Send again what was not accepted.")
        }
    }

    /// Queues rows, and does what follows from it on the loop in the order in which the rows were queued: a delivery that heard of a later
    /// row first would take the earlier one for read.
    func enqueue(
        _ hexes: ArraySlice<PreparedHex>, _ terms: OutboxTerms, then: @escaping @Sendable (isolated Node, Taken) -> Void
    ) async throws -> Taken {
        try await withCheckedThrowingContinuation { continuation in
            store.enqueue(hexes, terms) { [self] result in
                let result = result.map { Taken($0, of: hexes, for: terms.recipients) }
                onLoop { node in
                    if case .success(let taken) = result { then(node, taken) }
                    continuation.resume(with: result)
                }
            }
        }
    }

    func recipients(_ peers: [PeerID]) throws -> [PeerSighting] {
        guard !peers.isEmpty else { throw HexlistError(.badRequest, "No peer to send to.", hint: "Name one with --to.") }
        guard !peers.contains(id) else { throw HexlistError(.badRequest, "That is this machine itself.") }
        return try peers.map(recipient)
    }

    private func recipient(_ peer: PeerID) throws -> PeerSighting {
        guard let view = view(of: peer, comparing: false) else { throw Node.unknown(peer) }
        guard view.trust != .blocked else {
            throw HexlistError(
                .badRequest, "\(view.label.text(.named)) is blocked here.", hint: "`hexlist peer unblock \(peer)` first.")
        }
        return sighting(peer, view)
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

    private func wait(for rows: [SendOutcome], _ waiter: OutcomeWaiter) {
        waiter.rows = Set(rows.map(\.outboxID))
        outcomeWaiters[ObjectIdentifier(waiter)] = waiter
    }

    private func endWaiting(_ waiter: OutcomeWaiter) { outcomeWaiters[ObjectIdentifier(waiter)] = nil }

    /// - Parameter bytes: of the one hex all rows are of.
    private func outcomes(
        of rows: [SendOutcome], bytes: Int, _ waiter: OutcomeWaiter, until deadline: ContinuousClock.Instant
    ) async throws -> [SendOutcome] {
        while rows.contains(where: { waiter.ended[$0.outboxID] == nil && isWorthWaiting(for: $0, bytes: bytes, until: deadline) }),
            ContinuousClock.Instant.now < deadline, !isStopping, !Task.isCancelled
        {
            await wait(waiter, until: deadline)
        }
        // Whoever was not delivered has a reason, which the store knows.
        let isDelivered = rows.allSatisfy { (waiter.ended[$0.outboxID] ?? $0.state).isDelivered }
        let ids = rows.map(\.outboxID)
        var latest = isDelivered ? rows : try await store.read { try $0.outboxRows(ids) }.map { SendOutcome($0) }
        let earlier = Set(rows.filter(\.isEarlier).map(\.outboxID))
        for index in latest.indices {
            let id = latest[index].outboxID
            if let end = waiter.ended[id], end.isDelivered { latest[index].state = end }
            latest[index].isEarlier = earlier.contains(id)
        }
        addWaits(to: &latest, bytes: bytes)
        return latest
    }

    func wait(_ waiter: OutcomeWaiter, until deadline: ContinuousClock.Instant) async {
        let timer = eventLoop.scheduleTask(in: TimeAmount(max(.zero, deadline - .now))) { [weak self] in
            self?.assumeIsolated { _ in waiter.wake() }
        }
        await withTaskCancellationHandler {
            await sleep(waiter)
        } onCancel: {
            onLoop { _ in waiter.wake() }
        }
        timer.cancel()
    }

    private func sleep(_ waiter: OutcomeWaiter) async {
        await withCheckedContinuation { waiter.sleep($0) }
    }

    /// A row whose peer is not there, takes nothing as long as it does not trust this one, or refused until after the
    /// deadline, is nothing to wait for.
    private func isWorthWaiting(for row: SendOutcome, bytes: Int, until deadline: ContinuousClock.Instant) -> Bool {
        guard row.state == .queued, isWorthWaiting(for: row.peer, until: deadline) else { return false }
        return !(links[row.peer]?.delivery.waitsForTrust(bytes: bytes) ?? false)
    }

    func isWorthWaiting(for peer: PeerID, until deadline: ContinuousClock.Instant) -> Bool {
        guard !isQuarantined(peer) else { return false }
        guard let link = links[peer] else { return directory.isVerified(peer) }
        // A refusal is told with its reason, which the store has in a moment.
        if link.delivery.isWriting { return true }
        if let until = link.delivery.pausedUntil, until > deadline { return false }
        // A session that is just ending may have another one behind it.
        guard let session = link.sending, !session.machine.isClosed else { return directory.isVerified(peer) }
        return true
    }

    /// Rows that were answered, cancelled, given up, or queued again.
    func rowsMoved(_ moves: [RowMove]) {
        guard !moves.isEmpty else { return }
        for bulk in bulks.values { bulk.moved(moves) }
        let ends = moves.filter { $0.to != .queued }
        guard !ends.isEmpty else { return }
        endedRows &+= UInt64(ends.count)
        for waiter in outcomeWaiters.values { waiter.ended(ends) }
    }

    /// Receipts that are not written down yet. Who waits for one hex is told at once: the peer has it, and says so again
    /// should this node forget.
    func receiptsCame(_ ends: [RowMove]) {
        for waiter in outcomeWaiters.values where waiter.rows != nil { waiter.ended(ends) }
    }

    /// Rows expired: there is room in the outbox.
    func outboxDrained() {
        endedRows &+= 1
        for waiter in outcomeWaiters.values where waiter.rows == nil { waiter.wake() }
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
    private var continuation: CheckedContinuation<Void, Never>?
    /// Woken while it was not asleep: between the look at what it waits for and its sleep the loop may do other things.
    private var isDue = false

    init(rows: Set<Int64>? = nil) { self.rows = rows }

    func ended(_ ends: [RowMove]) {
        guard let rows else { return wake() }
        let own = ends.filter { rows.contains($0.id) }
        guard !own.isEmpty else { return }
        for end in own { ended[end.id] = end.to }
        wake()
    }

    /// Something is to be looked at again.
    func wake() {
        guard let continuation else {
            isDue = true
            return
        }
        self.continuation = nil
        continuation.resume()
    }

    func sleep(_ continuation: CheckedContinuation<Void, Never>) {
        if isDue {
            isDue = false
            continuation.resume()
        } else {
            self.continuation = continuation
        }
    }
}
