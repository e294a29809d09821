public import HexlistEventLoop
public import HexlistModel
import Logging
public import NIOCore

/// Schedules the delivery of outbox rows to peers: hexes are sent to a peer while it has a slot (`SendSlots`) and no pause. `PeerDelivery`
/// selects its rows.
///
/// Confined to the event loop of its host.
public final class DeliveryScheduler {
    /// The state of each peer that has a courier or may have rows to send.
    var links: [PeerID: DeliveryLink] = [:]
    /// The callers that wait for rows.
    public var sends = SendTracker()
    var slots: SendSlots
    /// The state of draining; `nil` unless the node is changing its identity.
    private var draining: Draining?
    let slotTimer: DeadlineTimer
    let window: CourierWindow
    private let eventLoop: any EventLoop
    let clocks: Clocks

    /// - Parameters:
    ///   - peers: maximum number of peers to which hexes are sent at the same time.
    ///   - window: the limit on hexes in flight to each peer.
    public init(concurrentPeers peers: Int, _ window: CourierWindow, on eventLoop: any EventLoop, _ clocks: Clocks) {
        self.window = window
        self.eventLoop = eventLoop
        self.clocks = clocks
        slots = SendSlots(limit: peers)
        slotTimer = DeadlineTimer(on: eventLoop, clocks)
    }

    func link(to peer: PeerID) -> DeliveryLink {
        if let link = links[peer] { return link }
        let link = DeliveryLink(peer: peer, on: eventLoop, clocks)
        links[peer] = link
        return link
    }

    /// Removes the state of a peer that has no courier, no queued rows and no rows in flight.
    func removeIfIdle(_ link: DeliveryLink, _ host: isolated some DeliveryHost) {
        guard link.couriers.isEmpty, !link.endedWithRows, !link.delivery.hasKnownRows, link.delivery.isIdle, !link.isReaching,
            !link.delivery.isPaused(now: clocks.now)
        else { return }
        link.resumption.cancel()
        links[link.peer] = nil
        host.deliveryEnded(with: link.peer)
    }

    /// Whether there may be queued rows for the peer.
    func mayHaveRows(_ link: DeliveryLink, _ host: isolated some DeliveryHost) -> Bool {
        link.delivery.hasWork && (link.delivery.hasKnownRows || host.hadRows(for: link.peer))
    }

    // MARK: Peers

    public func hasWork(for peer: PeerID) -> Bool { links[peer]?.delivery.hasWork ?? false }

    /// Whether the scheduler has state of the peer: a courier, queued rows, or a wait before the next attempt.
    public func knows(_ peer: PeerID) -> Bool { links[peer] != nil }

    /// Whether the peer is being dialled for queued rows.
    public func isReaching(_ peer: PeerID) -> Bool { links[peer]?.isReaching ?? false }

    /// Maximum bytes of a frame on the newest courier; 0 without one.
    public func frameLimit(of peer: PeerID) -> Int { links[peer]?.delivery.frameLimit ?? 0 }

    /// Ends the pause after failures, because the peer was away and is back.
    public func peerIsBack(_ peer: PeerID) { links[peer]?.delivery.peerIsBack() }

    /// Ends the pauses of these peers at the user's request.
    func retryNow(_ peers: Set<PeerID>, _ host: isolated some DeliveryHost) {
        for peer in peers {
            let link = link(to: peer)
            link.delivery.retryNow()
            link.courier?.retryNow()
            kick(link, host)
        }
    }

    /// Called when this machine's user has trusted the peer. Retries hexes that the peer refused temporarily, because the peer's user
    /// probably trusts this machine now too.
    public func trustBegan(_ peer: PeerID, _ host: isolated some DeliveryHost) {
        guard let link = links[peer] else { return }
        link.delivery.trustBegan()
        kick(link, host)
    }

    /// Sends the queued rows that `isHeld` no longer holds back.
    /// - Parameter peer: the peer whose holds changed; `nil` for all peers.
    public func holdsChanged(of peer: PeerID?, _ host: isolated some DeliveryHost) {
        for link in links.values where peer == nil || link.peer == peer { kick(link, host) }
    }

    /// Sends the queued rows of a peer over its courier, or dials the peer if it is online.
    func kick(_ link: DeliveryLink, _ host: isolated some DeliveryHost) {
        guard !host.isStopping else { return }
        if link.courier != nil { return pump(link, host) }
        let peer = link.peer
        guard !link.isReaching, link.delivery.hasWork, !link.delivery.isPaused(now: clocks.now), host.isVerified(peer), !isHeld(peer, host)
        else { return }
        link.isReaching = host.reach(peer) { host, isReached in
            guard let link = host.deliveries.links[peer] else { return }
            link.isReaching = false
            if !isReached, link.courier == nil {
                host.deliveries.transferFailed(link, end: CourierEnd(.lost, "The connection was lost."), host)
            }
        }
    }

    // MARK: Rows

    /// Sends rows that were queued, in ascending order.
    /// - Parameters:
    ///   - again: peers with existing rows that were queued again. Such rows may have lower ids than those in memory, so the outbox is read
    ///     again from the start.
    ///   - isDurable: `false` for rows that are sent before their commit (`PeerDelivery.appended`).
    public func queued(_ rows: [PeerID: [OutgoingHex]], again: Set<PeerID>, isDurable: Bool, _ host: isolated some DeliveryHost) {
        for peer in again { link(to: peer).delivery.rowsChanged() }
        for (peer, rows) in rows { link(to: peer).delivery.appended(rows, isDurable: isDurable) }
        for peer in again.union(rows.keys) { kick(link(to: peer), host) }
        // Flushes before the caller wakes the store's writer thread, which takes about as long as the flush and competes with it for a
        // core.
        if !isDurable { for peer in rows.keys { links[peer]?.courier?.flush() } }
    }

    /// Notes that rows for these peers are being written to the store, until `enqueueEnded`.
    public func enqueueBegan(for peers: [PeerID]) {
        for peer in peers { link(to: peer).delivery.enqueueBegan() }
    }

    public func enqueueEnded(for peers: [PeerID], _ host: isolated some DeliveryHost) {
        for peer in peers {
            guard let link = links[peer] else { continue }
            link.delivery.enqueueEnded()
            removeIfIdle(link, host)
        }
    }

    /// Drops uncommitted rows to these peers, because their transaction failed.
    /// - Parameter last: the id of the last of these rows.
    public func uncommittedLost(upTo last: Int64, to peers: [PeerID], _ host: isolated some DeliveryHost) {
        for peer in peers {
            guard let link = links[peer], link.delivery.uncommittedLost(upTo: last) else { continue }
            kick(link, host)
        }
    }

    /// Handles rows that the user cancelled.
    public func cancelled(_ moves: [OutboxMove]) {
        for peer in Set(moves.map(\.peer)) { links[peer]?.delivery.rowsChanged() }
        for move in moves {
            for courier in links[move.peer]?.couriers ?? [] {
                let rows = courier.inFlight.filter(move.ids.contains)
                if !rows.isEmpty { courier.withdraw(rows) }
            }
        }
        sends.moved(moves)
    }

    /// Handles rows that the user queued again, and ends pauses.
    /// - Parameter peers: the peers of these rows and of rows that were queued already.
    public func retried(_ moves: [OutboxMove], of peers: Set<PeerID>, _ host: isolated some DeliveryHost) {
        sends.moved(moves)
        retryNow(peers, host)
    }

    /// Whether the rows in memory for one of these peers exceed half of the limit (`PeerDelivery.isBufferFilling`).
    public func isBufferFilling(for peers: [PeerID]) -> Bool { peers.contains { links[$0]?.delivery.isBufferFilling ?? false } }

    // MARK: Queued rows

    /// Whether nothing may be sent to the peer, because this node drains or there is an identity conflict.
    public func isHeld(_ peer: PeerID, _ host: isolated some DeliveryHost) -> Bool { draining != nil || host.isInConflict(with: peer) }

    /// The rows that are being sent, at most `window` for each peer.
    public var rowsInFlight: Set<Int64> {
        links.values.reduce(into: []) { if let courier = $1.courier, courier.wait == nil { $0.formUnion(courier.inFlight) } }
    }

    /// - Returns: the reason why a queued row that is not in flight waits, and the instant of the next attempt if it is known.
    public func wait(
        of peer: PeerID, bytes: Int, _ host: isolated some DeliveryHost
    ) -> (reason: OutboxWait, until: ContinuousClock.Instant?) {
        guard !isHeld(peer, host) else { return (.conflict, nil) }
        let link = links[peer]
        // A peer that is away is reported as such also during a pause, because the pause ends when the peer is back.
        guard link?.courier != nil || host.isVerified(peer) else { return (.peer, nil) }
        if let link, let until = link.delivery.pausedUntil, link.delivery.isPaused(now: clocks.now) { return (.retry, until) }
        guard let link, link.courier != nil, !host.isUndecided(peer) else { return (.session, nil) }
        if let wait = link.courier?.wait { return (wait.reason, wait.until) }
        guard !link.delivery.waitsForTrust(bytes: bytes) else { return (.trust, nil) }
        return (slots.isWaiting(peer) ? .slot : .window, nil)
    }

    /// Whether a row may get its result before the deadline: its peer is online, trusts this machine if the row is long, and did not request
    /// a longer pause.
    /// - Parameter bytes: the bytes of the row; `nil` for any.
    public func isWorthWaiting(
        for peer: PeerID, bytes: Int?, until deadline: ContinuousClock.Instant, _ host: isolated some DeliveryHost
    ) -> Bool {
        guard !isHeld(peer, host) else { return false }
        guard let link = links[peer] else { return host.isVerified(peer) }
        if let bytes, link.delivery.waitsForTrust(bytes: bytes) { return false }
        // A result of the peer is being written. If it is a refusal, the caller reads its reason from the store.
        if link.delivery.isWriting { return true }
        if let wait = link.courier?.wait, wait.reason == .pin || wait.until.map({ $0 > deadline }) ?? false { return false }
        if let until = link.delivery.pausedUntil, until > deadline { return false }
        // A courier that is ending may be replaced by another.
        return link.courier?.isOpen == true || host.isVerified(peer)
    }

    // MARK: Callers

    /// Wakes the callers that wait for capacity of the outbox, because rows were completed or deleted.
    public func capacityFreed() { sends.capacityFreed() }

    /// Wakes the callers that wait for rows, because the conditions for waiting may have changed.
    public func wakeWaiters(_ host: isolated some DeliveryHost) { sends.wakeAll(isStopping: host.isStopping) }

    // MARK: Draining

    var isWaitingToDrain: Bool { if case .waiting? = draining { true } else { false } }

    public var isDraining: Bool { draining != nil }

    /// Stops sending new rows.
    /// - Parameter done: called once all rows in flight have results.
    public func drain(_ done: @escaping () -> Void) {
        draining = .waiting(done)
        checkDrained()
    }

    /// Ends the wait for results. Sending stays stopped.
    public func stopWaitingToDrain() { if draining != nil { draining = .drained } }

    /// Ends the wait for results if there are no rows in flight.
    func checkDrained() {
        guard case .waiting(let done)? = draining, links.values.allSatisfy(\.isAnswered) else { return }
        draining = .drained
        done()
    }

    /// Resumes sending after `drain`.
    public func resume(_ host: isolated some DeliveryHost) {
        if case .waiting(let done)? = draining { done() }
        draining = nil
        for link in links.values { kick(link, host) }
    }
}

/// The state of draining, during which no new rows are sent.
private enum Draining {
    /// Rows are in flight. The closure is called once all of them have results.
    case waiting(() -> Void)
    case drained
}
