public import HexlistAPI
import HexlistEventLoop
import HexlistModel
import HexlistStore
import HexlistDelivery
import HexlistWire
import NIOCore

extension Outbox {
    /// Sends one hex to one or more peers, with a durable row for each, in the order of `request.peers`.
    /// - Parameter deadline: the end of the wait for results. The wait ends earlier once each row is complete or cannot be completed for
    ///   now (its peer is away, or does not trust this machine). `nil` for no wait.
    /// - Throws: `HexlistError`: `notFound` for an unknown hex or peer, `keyConflict`, `outboxFull`, `badRequest`.
    public func send(_ request: SendRequest, until deadline: ContinuousClock.Instant? = nil) async throws -> [SendOutcome] {
        let now = clocks.milliseconds
        try checkTakesRows()
        let hex = try await prepare(request, at: now)
        let bytes = hex.bodies.count
        let recipients = try recipients(request.peers)
        let wakeup = Wakeup()
        let tracked = TrackedSend(to: request.peers, .single(bytes: bytes), clocks) { wakeup.wake() }
        let send = OutgoingSend(tracked: tracked, recipients: recipients, warns: !request.force)
        defer { deliveries.sends.unfollow(tracked) }
        let taken: EnqueuedHexes
        do {
            let ahead = deadline != nil && !hex.hasKey(0) && hex.offers(0).isEmpty
            taken = try await enqueue([hex], terms(for: send, at: now), ahead: ahead) { outbox, taken in
                if deadline != nil { outbox.deliveries.sends.follow(tracked) }  // in the tick of the enqueue, so that no result is missed
                outbox.enqueued(taken, for: send)
            }
            if let error = taken.report.full { throw error }
        } catch var error as HexlistError where tracked.counts.accepted > 0 {
            error.message += " The hex may have arrived anyway."
            throw error
        }
        let rows = try taken.outcomes()
        guard let deadline else { return tagged(try await withFiles(rows, of: hex)) }
        while !isOver(tracked, until: deadline), !Task.isCancelled { await wakeup.sleep(until: deadline, on: eventLoop, clocks) }
        return tagged(try await withFiles(try await outcomes(of: rows, tracked, bytes: bytes), of: hex))
    }

    /// Adds the numbers of offered and fetched files to the outcomes.
    private func withFiles(_ outcomes: [SendOutcome], of hex: PreparedHexes) async throws -> [SendOutcome] {
        guard !hex.offers(0).isEmpty else { return outcomes }
        let files = try await store.read { try $0.outboxFiles(outcomes.map(\.outboxID)) }
        var counted = outcomes
        for index in counted.indices {
            counted[index].files = files[counted[index].outboxID].map {
                OutboxFiles($0, of: counted[index].state, now: store.clock.now)
            }
        }
        return counted
    }

    /// Adds the current names of the peers to the outcomes.
    private func tagged(_ outcomes: [SendOutcome]) -> [SendOutcome] {
        var tagged = outcomes
        let labels = labels(of: outcomes.map(\.peer))
        for index in tagged.indices { tagged[index].tag = labels[tagged[index].peer].map { PeerSummary($0) } }
        return tagged
    }

    /// Checks that the outbox accepts new rows.
    /// - Throws: `daemonUnreachable` while the node stops, or drains before a change of its identity. The node that replaces it would not
    ///   be notified of new rows.
    func checkTakesRows() throws(HexlistError) {
        guard !deliveries.isDraining, !isStopping else {
            throw HexlistError(
                .daemonUnreachable, "hexlistd is stopping or changing its identity.", hint: "Send the rest again.")
        }
    }

    /// Enqueues rows and calls `then` on the event loop. Calls are in the order of the rows, because a delivery that is notified of a later
    /// row first would skip the earlier one.
    /// - Parameters:
    ///   - start: the number of hexes to skip.
    ///   - ahead: whether the rows may be sent before their commit is durable (decision 27); only for a single hex. If the commit then
    ///     fails, the peer may have a hex of which this machine has no record. The hex must therefore have no idempotency key and offer no
    ///     file.
    ///   - then: called twice for rows that are sent before their commit, the second time once they are durable
    ///     (`EnqueuedHexes.isDurable`).
    func enqueue(
        _ hexes: [PreparedHexes], from start: Int = 0, _ terms: EnqueueOptions, ahead: Bool = false,
        then: @escaping @Sendable (isolated Outbox, EnqueuedHexes) -> Void
    ) async throws -> EnqueuedHexes {
        let peers = terms.recipients.map(\.peer)
        return try await withCheckedThrowingContinuation { continuation in
            @Sendable func taken(_ report: EnqueueReport, isDurable: Bool) -> EnqueuedHexes {
                EnqueuedHexes(report: report, hexes: hexes, start: start, recipients: terms.recipients, isDurable: isDurable)
            }
            @Sendable func written(_ result: Result<EnqueueReport, any Error>, aheadTo last: Int64? = nil) {
                let result = result.map { taken($0, isDurable: true) }
                onLoop { outbox in
                    switch result {
                    case .success(let taken): then(outbox, taken)
                    case .failure: if let last { outbox.deliveries.uncommittedLost(upTo: last, to: peers, outbox) }
                    }
                    if last == nil { outbox.deliveries.enqueueEnded(for: peers, outbox) }
                    continuation.resume(with: result)
                }
            }
            if ahead, let hex = hexes.first {
                let isAhead = store.enqueueEarly(hex, terms) {
                    then(self, taken($0, isDurable: false))
                } completion: {
                    written($0, aheadTo: $1)
                }
                if isAhead { return }
            }
            deliveries.enqueueBegan(for: peers)
            store.enqueue(hexes, from: start, terms) { written($0) }
        }
    }

    /// Returns the contact information of the recipients.
    /// - Throws: `badRequest` or `notFound` if hexes cannot be sent to one of the peers.
    func recipients(_ peers: [PeerID]) throws -> [PeerContact] { try withNode { try $0.peerList.recipients(peers) } }

    /// Creates a `HexPreparer` with the current name of this machine.
    public func preparer() throws -> HexPreparer { try withNode { HexPreparer(own: $0.id, name: $0.configuration.name) } }

    /// Encodes the hex of a request, which is new or stored.
    private func prepare(_ request: SendRequest, at now: Int64) async throws -> PreparedHexes {
        var prepared = PreparedHexes()
        var preparer = try preparer()
        switch request.content {
        case .forward(let hexID):
            guard let hex = try await store.read({ try $0.hex(hexID) }) else {
                throw HexlistError(.notFound, "There is no hex \(hexID).", hint: "`hexlist inbox` lists your hexes.")
            }
            // A hex of My Hexlist has no sender until it is sent.
            if hex.summary.location == .mine, hex.content.senderUUID.isEmpty, hex.content.senderName.isEmpty {
                try preparer.prepare(hex.content, key: request.key, at: now, into: &prepared)
            } else {
                preparer.forward(hex.content, key: request.key, at: now, into: &prepared)
            }
        case .hex(let hex):
            try preparer.prepare(hex, key: request.key, at: now, into: &prepared)
        }
        return prepared
    }

    private func isDevice(_ peer: PeerID) -> Bool { node?.assumeIsolated { $0.registry.devices[peer] != nil } ?? false }

    // MARK: Waiting

    /// Returns the outcomes of the rows of a single hex.
    private func outcomes(of rows: [SendOutcome], _ send: TrackedSend, bytes: Int) async throws -> [SendOutcome] {
        // Rows that were not delivered, and rows of devices, are read from the store, which has their reasons and codes.
        let isDelivered = !rows.contains { isDevice($0.peer) } && rows.allSatisfy { (send.delivered[$0.outboxID] ?? $0.state).isDelivered }
        let ids = rows.map(\.outboxID)
        var latest = isDelivered ? rows : try await store.read { try $0.outboxRows(ids) }.map { SendOutcome($0) }
        let earlier = Set(rows.filter(\.earlier).map(\.outboxID))
        for index in latest.indices {
            let id = latest[index].outboxID
            if let end = send.delivered[id] { latest[index].state = end }
            latest[index].earlier = earlier.contains(id)
        }
        addWaits(to: &latest, bytes: bytes)
        return latest
    }

    /// Whether the wait for results is over: every row is complete or cannot be completed for now, the deadline has passed, or the node
    /// stops.
    func isOver(_ send: TrackedSend, until deadline: ContinuousClock.Instant) -> Bool {
        guard !isStopping, clocks.now < deadline else { return true }
        return !send.pending.contains { peer, rows in
            rows > 0
                && (deliveries.isWorthWaiting(for: peer, bytes: send.bytes, until: deadline, self)
                    || send.bytes != nil && isPosting(for: peer))
        }
    }

    /// Whether rows to a peer that is away are being posted on a route. The sender of a single hex waits for this, in order to report it.
    private func isPosting(for peer: PeerID) -> Bool { node?.assumeIsolated { $0.routes.sender.isPosting(for: peer, $0) } ?? false }
}
