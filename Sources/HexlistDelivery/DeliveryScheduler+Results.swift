public import HexlistModel
import Logging

// The results of rows into the store, and the pauses after failures.
extension DeliveryScheduler {
    /// Takes the results a courier brought.
    public func settled(_ rows: [RowResult], by courier: any Courier, to peer: PeerID, _ host: isolated some DeliveryHost) {
        // Two starts of the peer may be alive: its receipts are ignored and the rows sent again, which a machine that has them answers
        // with `duplicate`.
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

    /// - Parameter counted: whether the delivery waits for this to be written before it rewinds.
    func write(_ results: [RowResult], for link: DeliveryLink, counted: Bool, _ host: isolated some DeliveryHost) {
        let peer = link.peer
        let now = clocks.milliseconds
        let next = link.delivery.pausedUntil.map { now + ($0 - clocks.now).milliseconds }
        let isRefusedForNow = results.contains(where: \.result.isTemporary)
        // The caller of a stream, and that of a hex that did not arrive, are given what is in the store; the row of a refusal is shown with
        // its reason.
        var isAwaited = sends.followsStore || isRefusedForNow
        if sends.followsReceipts {
            sends.received(OutboxMove.of(results.filter(\.result.isDelivered), peer: peer))
            if results.contains(where: { $0.result.state.map { !$0.isDelivered } ?? false }) { isAwaited = true }
        }
        host.outbox.settle(results, of: peer, next: next, at: now, isAwaited: isAwaited) { [host] result in
            host.onLoop { host in
                let link = host.deliveries.links[peer]
                if counted { link?.delivery.written() }
                switch result {
                case .success(let moves):
                    host.deliveries.sends.moved(moves)
                    if isRefusedForNow { host.deliveries.wakeWaiters(host) }
                case .failure(let error):
                    // The rows stay queued; they are sent again and the peer recognises them.
                    host.logger.error("receipts could not be recorded", metadata: ["peer.id": "\(peer)", "error": "\(error)"])
                    guard let link else { return }
                    link.delivery.rowsChanged()
                    host.deliveries.transferFailed(link, end: nil, host)
                }
                host.outboxChanged()
                guard let link else { return }
                host.deliveries.pump(link, host)
                if link.couriers.isEmpty, link.endedWithRows { return host.deliveries.lookForRows(link, host) }
                host.deliveries.forgetIfQuiet(link, host)
            }
        }
    }

    /// Reads whether rows wait for a peer that left before its results were written: it may have answered all of them.
    private func lookForRows(_ link: DeliveryLink, _ host: isolated some DeliveryHost) {
        let peer = link.peer
        let noted = link.delivery.rowsNoted
        host.outbox.nextBatch(for: peer, after: 0, limit: 1, maxBytes: 1, longest: .max) { [host] result in
            host.onLoop { host in
                guard case .success(let batch) = result, batch.items.isEmpty, let link = host.deliveries.links[peer],
                    link.couriers.isEmpty, link.delivery.foundNone(since: noted)
                else { return }
                link.endedWithRows = false
                host.deliveries.forgetIfQuiet(link, host)
            }
        }
    }

    /// Rejects the rows that wait for a peer that blocked this machine, so many at a time.
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

    /// Takes a new courier, which is used from now on. `pump` begins to send.
    /// - Parameter start: the number of the peer's start: a peer that restarted may take what it refused.
    public func connected(_ courier: any Courier, to peer: PeerID, start: BootNonce) {
        let link = link(to: peer)
        link.couriers.append(courier)
        link.delivery.greeted(boot: start, frameLimit: courier.frameLimit, now: clocks.now)
        link.delivery.connected(frameLimit: courier.frameLimit)
    }

    /// Takes the peer's word, on one of its couriers, that it may take more now, or longer hexes.
    public func mayTakeMore(_ courier: any Courier, to peer: PeerID, _ host: isolated some DeliveryHost) {
        guard let link = links[peer] else { return }
        let now = clocks.now
        // If both sides dialled at the same moment, it is said on one of two sessions.
        link.delivery.greetedAgain(frameLimit: link.courier === courier ? courier.frameLimit : nil, now: now)
        resumeAfterPause(link, now: now, host)
        pump(link, host)
    }

    /// Takes the end of a dial for the peer that never became a courier.
    public func notReached(_ peer: PeerID, _ end: CourierEnd, _ host: isolated some DeliveryHost) {
        guard let link = links[peer], link.courier == nil, mayHaveRows(link, host) else { return }
        transferFailed(link, end: end, host)
    }

    /// Takes the end of a courier, also of one that ended before `connected`. Its rows without a result are sent again.
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
        giveSlotBack(link, host)
        if hadWork || end.cause == .conflict && hasRows {
            transferFailed(link, end: end, blamed: courier.inFlight.min(), host)
        } else if hasRows, !link.delivery.isPaused(now: clocks.now) {
            resume(link, at: clocks.now + .seconds(1), host)
        }
        wakeWaiters(host)
        link.endedWithRows = hasRows
        forgetIfQuiet(link, host)
    }

    // MARK: Pauses

    /// Pauses after a transfer that failed although the peer is there, longer each time, whatever discovery brings meanwhile.
    /// - Parameters:
    ///   - end: `nil` if the outbox could not be read or written.
    ///   - blamed: the first row that was sent and has no result; `nil` if there is none.
    func transferFailed(_ link: DeliveryLink, end: CourierEnd?, blamed: Int64? = nil, _ host: isolated some DeliveryHost) {
        var random = SystemRandomNumberGenerator()
        let isConflict = end?.cause == .conflict
        // The length of a conflict does not depend on failures.
        if !isConflict { link.transferFailures += 1 }
        let pause =
            isConflict
            ? DeliveryLink.conflictPause
            : DeliveryLink.backoff.jitteredPause(after: link.transferFailures, shortest: DeliveryLink.shortestPause, using: &random)
        let until = clocks.now + pause
        link.delivery.pause(until: until)
        resume(link, at: link.delivery.pausedUntil ?? until, host)
        let at = clocks.milliseconds
        // A row that the peer refused for now was answered; the end of the courier does not count against it.
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

    private func resumeAfterPause(_ link: DeliveryLink, now: ContinuousClock.Instant, _ host: isolated some DeliveryHost) {
        if let until = link.delivery.pausedUntil, until > now { resume(link, at: until, host) }
    }

    /// Gives the slot back, and goes on at an instant.
    private func resume(_ link: DeliveryLink, at instant: ContinuousClock.Instant, _ host: isolated some DeliveryHost) {
        giveSlotBack(link, host)
        goOn(link, at: instant, host)
    }

    /// Goes on at an instant, or at the end of the pause if that became later meanwhile.
    private func goOn(_ link: DeliveryLink, at instant: ContinuousClock.Instant, _ host: isolated some DeliveryHost) {
        link.resumption.set(instant, host) { [peer = link.peer] host in
            guard let link = host.deliveries.links[peer] else { return }
            if let until = link.delivery.pausedUntil, until > host.deliveries.clocks.now {
                host.deliveries.goOn(link, at: until, host)
            } else {
                host.deliveries.kick(link, host)
            }
        }
    }
}
