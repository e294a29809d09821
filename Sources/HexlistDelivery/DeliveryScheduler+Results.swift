public import HexlistModel
import Logging

/// Handles the results of rows, the connection and end of couriers, and the pauses after failures.
extension DeliveryScheduler {
    /// Handles the results of rows that a courier reports.
    public func settled(_ rows: [RowResult], by courier: any Courier, to peer: PeerID, _ host: isolated some DeliveryHost) {
        // While two machines may have the peer's identity, receipts are ignored, and the rows are sent again later. The peer then answers
        // `duplicate` for hexes that it has stored.
        guard !host.isUndecided(peer) else { return }
        let link = link(to: peer)
        let now = clocks.now
        let results = link.delivery.settled(rows, isCurrent: link.courier === courier, now: now)
        if results.contains(where: \.result.isDelivered) { link.transferFailures = 0 }
        checkDrained()
        if let measured = link.measured, rows.contains(where: { $0.id == measured.row }) {
            host.measured(now - measured.at)
            link.measured = nil
        }
        guard !results.isEmpty else { return }
        host.answered(results)
        slots.progressed(peer, now: now)
        write(results, for: link, counted: true, host)
        resumeAfterPause(link, now: now, host)
        pump(link, host)
    }

    /// Writes results to the store.
    /// - Parameter counted: whether the results come from `PeerDelivery.settled`. `PeerDelivery.written` is then called after the write,
    ///   because the outbox must not be read again from the start before it.
    func write(_ results: [RowResult], for link: PeerDeliveryContext, counted: Bool, _ host: isolated some DeliveryHost) {
        let peer = link.peer
        let now = clocks.milliseconds
        let next = link.delivery.pausedUntil.map { now + ($0 - clocks.now).milliseconds }
        let isTemporaryRefusal = results.contains(where: \.result.isTemporary)
        // The write must not be deferred if a caller waits to read these results from the store. That applies to all results of streams, to
        // failures, and to the reasons of refusals.
        var isAwaited = sends.followsStore || isTemporaryRefusal
        if sends.followsReceipts {
            let receipts = results.filter(\.result.isReceipt)
            sends.received(OutboxStateChange.of(receipts, peer: peer))
            if results.contains(where: { !$0.result.isReceipt && $0.result.state != nil }) { isAwaited = true }
        }
        host.outbox.settle(results, of: peer, next: next, at: now, isAwaited: isAwaited) { [host] result in
            host.onLoop { host in
                let link = host.deliveries.links[peer]
                if counted { link?.delivery.written() }
                switch result {
                case .success(let moves):
                    host.deliveries.sends.moved(moves)
                    if isTemporaryRefusal { host.deliveries.wakeWaiters(host) }
                case .failure(let error):
                    // The rows stay queued, and are sent again. The peer recognises the duplicates.
                    host.logger.error("receipts could not be recorded", metadata: ["peer.id": "\(peer)", "error": "\(error)"])
                    guard let link else { return }
                    link.delivery.rowsChanged()
                    host.deliveries.transferFailed(link, end: nil, host)
                }
                host.outboxChanged()
                guard let link else { return }
                host.deliveries.pump(link, host)
                if link.couriers.isEmpty, link.endedWithRows { return host.deliveries.checkForRows(link, host) }
                host.deliveries.removeIfIdle(link, host)
            }
        }
    }

    /// Removes the state of a peer without a courier if the store has no queued rows for it. Called if there may have been rows when the
    /// last courier ended.
    private func checkForRows(_ link: PeerDeliveryContext, _ host: isolated some DeliveryHost) {
        let peer = link.peer
        let revision = link.delivery.queueRevision
        host.outbox.nextBatch(for: peer, after: 0, limit: 1, maxBytes: 1, longest: .max) { [host] result in
            host.onLoop { host in
                guard case .success(let batch) = result, batch.items.isEmpty, let link = host.deliveries.links[peer],
                    link.couriers.isEmpty, link.delivery.foundNone(at: revision)
                else { return }
                link.endedWithRows = false
                host.deliveries.removeIfIdle(link, host)
            }
        }
    }

    /// Rejects all queued rows of a peer that blocked this machine, `rejectLimit` at a time.
    private func rejectAll(for peer: PeerID, _ host: isolated some DeliveryHost) {
        host.outbox.rejectQueued(
            of: peer, code: RefusalCode.blocked.rawValue, message: "This peer blocked you.", at: clocks.milliseconds
        ) { [host] result in
            host.onLoop { host in
                switch result {
                case .success(let moves):
                    host.deliveries.sends.moved(moves)
                    if moves.reduce(0, { $0 + $1.ids.count }) == host.outbox.rejectLimit { host.deliveries.rejectAll(for: peer, host) }
                case .failure(let error): host.logger.error("outbox could not be written", metadata: ["error": "\(error)"])
                }
                host.deliveries.wakeWaiters(host)
                host.outboxChanged()
            }
        }
    }

    // MARK: Couriers

    /// Adds a courier, which is used from now on. The caller begins sending with `pump`.
    /// - Parameter start: the peer's boot nonce. If it has changed, the peer restarted and may accept the hexes that it refused before.
    public func connected(_ courier: any Courier, to peer: PeerID, start: BootNonce) {
        let link = link(to: peer)
        link.couriers.append(courier)
        link.delivery.greeted(boot: start, frameLimit: courier.frameLimit, now: clocks.now)
        link.delivery.connected(frameLimit: courier.frameLimit)
    }

    /// Handles a later Hello of the peer, which means that it may accept more or longer hexes.
    public func mayAcceptMore(_ courier: any Courier, to peer: PeerID, _ host: isolated some DeliveryHost) {
        guard let link = links[peer] else { return }
        let now = clocks.now
        // If both machines dialled at the same time, there are two sessions. The Hello may arrive on the session that is not used for
        // sending.
        link.delivery.greetedAgain(frameLimit: link.courier === courier ? courier.frameLimit : nil, now: now)
        resumeAfterPause(link, now: now, host)
        pump(link, host)
    }

    /// Handles the end of a session that never became a courier.
    public func notReached(_ peer: PeerID, _ end: CourierEnd, _ host: isolated some DeliveryHost) {
        guard let link = links[peer], link.courier == nil, mayHaveRows(link, host) else { return }
        transferFailed(link, end: end, host)
    }

    /// Handles the end of a courier, even one that was never passed to `connected`. Its rows without a result are sent again.
    public func ended(_ courier: any Courier, to peer: PeerID, _ end: CourierEnd, _ host: isolated some DeliveryHost) {
        let link = link(to: peer)
        let wasUsed = link.courier.map { $0 === courier } ?? true
        link.couriers.removeAll { $0 === courier }
        checkDrained()
        guard wasUsed else { return pump(link, host) }
        link.measured = nil
        let hadWork = link.delivery.inFlight > 0
        if end.cause == .blocked { rejectAll(for: peer, host) }
        if let next = link.courier {
            link.delivery.connected(frameLimit: next.frameLimit, inFlight: next.inFlight.count)
            return pump(link, host)
        }
        let hasRows = mayHaveRows(link, host)
        link.delivery.disconnected()
        releaseSlot(link, host)
        if hadWork || end.cause == .conflict && hasRows {
            transferFailed(link, end: end, blamed: courier.inFlight.min(), host)
        } else if hasRows, !link.delivery.isPaused(now: clocks.now) {
            resume(link, at: clocks.now + .seconds(1), host)
        }
        wakeWaiters(host)
        link.endedWithRows = hasRows
        removeIfIdle(link, host)
    }

    // MARK: Pauses

    /// Begins a pause after a failed transfer, with exponential back-off.
    /// - Parameters:
    ///   - end: the reason of the failure; `nil` if the outbox could not be read or written.
    ///   - blamed: the first row in flight, to which the failure is attributed; `nil` if there is none.
    func transferFailed(_ link: PeerDeliveryContext, end: CourierEnd?, blamed: Int64? = nil, _ host: isolated some DeliveryHost) {
        var random = SystemRandomNumberGenerator()
        let isConflict = end?.cause == .conflict
        // The pause after an identity conflict is fixed. Its length does not depend on the number of failures.
        if !isConflict { link.transferFailures += 1 }
        let pause =
            isConflict
            ? PeerDeliveryContext.conflictPause
            : PeerDeliveryContext.backoff.jitteredPause(
                after: link.transferFailures, shortest: PeerDeliveryContext.shortestPause, using: &random)
        let until = clocks.now + pause
        link.delivery.pause(until: until)
        resume(link, at: link.delivery.pausedUntil ?? until, host)
        let at = clocks.milliseconds
        host.outbox.transferFailed(
            to: link.peer, blaming: blamed, counts: end?.cause == .failedOnHex, next: at + pause.milliseconds,
            error: end?.text ?? "The outbox could not be read.", at: at
        ) { [host] result in
            host.onLoop { host in
                switch result {
                case .success(let moves): host.deliveries.sends.moved(moves)
                case .failure(let error): host.logger.error("outbox could not be written", metadata: ["error": "\(error)"])
                }
                host.deliveries.wakeWaiters(host)
            }
        }
    }

    private func resumeAfterPause(_ link: PeerDeliveryContext, now: ContinuousClock.Instant, _ host: isolated some DeliveryHost) {
        if let until = link.delivery.pausedUntil, until > now { resume(link, at: until, host) }
    }

    /// Releases the peer's slot, and resumes sending to the peer at `instant`.
    private func resume(_ link: PeerDeliveryContext, at instant: ContinuousClock.Instant, _ host: isolated some DeliveryHost) {
        releaseSlot(link, host)
        scheduleKick(link, at: instant, host)
    }

    /// Calls `kick` at an instant. If the pause was extended meanwhile, at the end of the pause.
    private func scheduleKick(_ link: PeerDeliveryContext, at instant: ContinuousClock.Instant, _ host: isolated some DeliveryHost) {
        link.resumption.set(instant, host) { [peer = link.peer] host in
            guard let link = host.deliveries.links[peer] else { return }
            if let until = link.delivery.pausedUntil, until > host.deliveries.clocks.now {
                host.deliveries.scheduleKick(link, at: until, host)
            } else {
                host.deliveries.kick(link, host)
            }
        }
    }
}
