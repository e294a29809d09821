public import HexlistEventLoop
public import HexlistModel
import Logging
public import NIOCore

/// Sends outbox rows to peers. At most `SendSlots.limit` peers are sent to at the same time, and none during a pause. `PeerDelivery`
/// selects the rows of a peer.
///
/// Every member is used on the event loop of the host only.
public final class DeliveryScheduler {
    /// The state of each peer that has a courier or may have rows to send.
    var links: [PeerID: PeerDeliveryContext] = [:]
    /// The callers that wait for results of rows.
    public var sends = SendTracker()
    var slots: SendSlots
    /// The state of draining; `nil` except while the node changes its identity.
    private var draining: Draining?
    let slotTimer: DeadlineTimer
    let window: CourierWindow
    private let eventLoop: any EventLoop
    let clocks: Clocks

    /// - Parameters:
    ///   - peers: maximum number of peers to which hexes are sent at the same time: the number of slots.
    ///   - window: the limit on hexes in flight to each peer.
    public init(concurrentPeers peers: Int, _ window: CourierWindow, on eventLoop: any EventLoop, _ clocks: Clocks) {
        self.window = window
        self.eventLoop = eventLoop
        self.clocks = clocks
        slots = SendSlots(limit: peers)
        slotTimer = DeadlineTimer(on: eventLoop, clocks)
    }

    func link(to peer: PeerID) -> PeerDeliveryContext {
        if let link = links[peer] { return link }
        let link = PeerDeliveryContext(peer: peer, on: eventLoop, clocks)
        links[peer] = link
        return link
    }

    /// Removes the state of a peer that has no courier, no queued rows and no rows in flight.
    func removeIfIdle(_ link: PeerDeliveryContext, _ host: isolated some DeliveryHost) {
        guard link.couriers.isEmpty, !link.endedWithRows, !link.delivery.hasKnownRows, link.delivery.isIdle, !link.isReaching,
            !link.delivery.isPaused(now: clocks.now)
        else { return }
        link.resumption.cancel()
        links[link.peer] = nil
        host.deliveryEnded(with: link.peer)
    }

    /// Whether there may be queued rows for the peer.
    func mayHaveRows(_ link: PeerDeliveryContext, _ host: isolated some DeliveryHost) -> Bool {
        link.delivery.hasWork && (link.delivery.hasKnownRows || host.hadRows(for: link.peer))
    }

    // MARK: Peers

    /// Whether there may be rows to send to the peer, in memory or in the store.
    public func hasWork(for peer: PeerID) -> Bool { links[peer]?.delivery.hasWork ?? false }

    /// Whether the scheduler has state of the peer, because of a courier, queued rows, or a pause.
    public func knows(_ peer: PeerID) -> Bool { links[peer] != nil }

    /// Whether the peer is being dialled because of queued rows.
    public func isReaching(_ peer: PeerID) -> Bool { links[peer]?.isReaching ?? false }

    /// Maximum bytes of a frame on the peer's newest courier; 0 if it has no courier.
    public func frameLimit(of peer: PeerID) -> Int { links[peer]?.delivery.frameLimit ?? 0 }

    /// Ends the pause after failed transfers, because the peer is online again.
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

    /// Ends the pause that the peer requested. Called when this machine's user has trusted the peer, because the peer's user has probably
    /// trusted this machine too.
    public func trustBegan(_ peer: PeerID, _ host: isolated some DeliveryHost) {
        guard let link = links[peer] else { return }
        link.delivery.trustBegan()
        kick(link, host)
    }

    /// Resumes sending to peers for which `isHeld` may have become `false`.
    /// - Parameter peer: the peer concerned; `nil` for all peers.
    public func holdsChanged(of peer: PeerID?, _ host: isolated some DeliveryHost) {
        for link in links.values where peer == nil || link.peer == peer { kick(link, host) }
    }

    /// Continues sending: sends the peer's queued rows over its courier, or dials the peer if it is online.
    func kick(_ link: PeerDeliveryContext, _ host: isolated some DeliveryHost) {
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

    /// Sends rows that were queued.
    /// - Parameters:
    ///   - rows: the rows of each peer, in ascending order of their ids.
    ///   - again: peers with older rows that were queued again. These rows may have lower ids than those in memory, so the outbox is read
    ///     again from the start.
    ///   - isDurable: `false` for rows that are sent before their commit (`PeerDelivery.appended`).
    public func queued(_ rows: [PeerID: [OutgoingHex]], again: Set<PeerID>, isDurable: Bool, _ host: isolated some DeliveryHost) {
        for peer in again { link(to: peer).delivery.rowsChanged() }
        for (peer, rows) in rows { link(to: peer).delivery.appended(rows, isDurable: isDurable) }
        for peer in again.union(rows.keys) { kick(link(to: peer), host) }
        // The flush comes before the caller wakes the store's writer thread. Otherwise both would compete for a core at the same time.
        if !isDurable { for peer in rows.keys { links[peer]?.courier?.flush() } }
    }

    /// Records that rows for these peers are being written to the store, until `enqueueEnded`.
    public func enqueueBegan(for peers: [PeerID]) {
        for peer in peers { link(to: peer).delivery.enqueueBegan() }
    }

    /// Records that the write reported by `enqueueBegan` has ended.
    public func enqueueEnded(for peers: [PeerID], _ host: isolated some DeliveryHost) {
        for peer in peers {
            guard let link = links[peer] else { continue }
            link.delivery.enqueueEnded()
            removeIfIdle(link, host)
        }
    }

    /// Drops rows that were sent before their commit, because their transaction failed.
    /// - Parameter last: the greatest id of these rows.
    public func uncommittedLost(upTo last: Int64, to peers: [PeerID], _ host: isolated some DeliveryHost) {
        for peer in peers {
            guard let link = links[peer], link.delivery.uncommittedLost(upTo: last) else { continue }
            kick(link, host)
        }
    }

    /// Handles rows that the user cancelled. Rows in flight are withdrawn from their courier, if possible.
    public func cancelled(_ moves: [OutboxStateChange]) {
        for peer in Set(moves.map(\.peer)) { links[peer]?.delivery.rowsChanged() }
        for move in moves {
            for courier in links[move.peer]?.couriers ?? [] {
                let rows = courier.inFlight.filter(move.ids.contains)
                if !rows.isEmpty { courier.withdraw(rows) }
            }
        }
        sends.moved(moves)
    }

    /// Handles rows that the user queued again. Ends the pauses of their peers.
    /// - Parameter peers: the peers of these rows, and of other queued rows that the user wants to be sent now.
    public func retried(_ moves: [OutboxStateChange], of peers: Set<PeerID>, _ host: isolated some DeliveryHost) {
        sends.moved(moves)
        retryNow(peers, host)
    }

    /// Whether the rows in memory for one of these peers take more than half of the permitted memory (`PeerDelivery.isBufferFilling`).
    public func isBufferFilling(for peers: [PeerID]) -> Bool { peers.contains { links[$0]?.delivery.isBufferFilling ?? false } }

    // MARK: Queued rows

    /// Whether sending to the peer is suspended, because this node is draining or there is an identity conflict.
    public func isHeld(_ peer: PeerID, _ host: isolated some DeliveryHost) -> Bool { draining != nil || host.isInConflict(with: peer) }

    /// The rows that are being sent, at most `window` for each peer. Rows of a courier that waits do not count.
    public var rowsInFlight: Set<Int64> {
        links.values.reduce(into: []) { if let courier = $1.courier, courier.wait == nil { $0.formUnion(courier.inFlight) } }
    }

    /// Returns the reason why a queued row that is not in flight is not being sent, and the instant of the next attempt if it is known.
    /// - Parameter bytes: the size of the row's body.
    public func wait(
        of peer: PeerID, bytes: Int, _ host: isolated some DeliveryHost
    ) -> (reason: OutboxWaitReason, until: ContinuousClock.Instant?) {
        guard !isHeld(peer, host) else { return (.conflict, nil) }
        let link = links[peer]
        // A peer that is away is reported as away, even during a pause: the pause ends when the peer is back.
        guard link?.courier != nil || host.isVerified(peer) else { return (.peer, nil) }
        if let link, let until = link.delivery.pausedUntil, link.delivery.isPaused(now: clocks.now) { return (.retry, until) }
        guard let link, link.courier != nil, !host.isUndecided(peer) else { return (.session, nil) }
        if let wait = link.courier?.wait { return (wait.reason, wait.until) }
        guard !link.delivery.waitsForTrust(bytes: bytes) else { return (.trust, nil) }
        return (slots.isWaiting(peer) ? .slot : .window, nil)
    }

    /// Whether a caller should wait for the result of a row, because it may arrive before the deadline. The peer has to be online, without
    /// a pause beyond the deadline, and has to trust this machine if the row is too long for strangers.
    /// - Parameter bytes: the size of the row's body; `nil` if it is not known.
    public func isWorthWaiting(
        for peer: PeerID, bytes: Int?, until deadline: ContinuousClock.Instant, _ host: isolated some DeliveryHost
    ) -> Bool {
        guard !isHeld(peer, host) else { return false }
        guard let link = links[peer] else { return host.isVerified(peer) }
        if let bytes, link.delivery.waitsForTrust(bytes: bytes) { return false }
        // Results of the peer are being written. If one is a refusal, the caller reads its reason from the store.
        if link.delivery.isWriting { return true }
        if let wait = link.courier?.wait, wait.reason == .pin || wait.until.map({ $0 > deadline }) ?? false { return false }
        if let until = link.delivery.pausedUntil, until > deadline { return false }
        // After a courier that is closing, another one may follow.
        return link.courier?.isOpen == true || host.isVerified(peer)
    }

    // MARK: Callers

    /// Wakes the callers that wait for space in the outbox. Called after rows were completed or deleted.
    public func capacityFreed() { sends.capacityFreed() }

    /// Wakes the callers that wait for rows, so that they check `isWorthWaiting` again.
    public func wakeWaiters(_ host: isolated some DeliveryHost) { sends.wakeAll(isStopping: host.isStopping) }

    // MARK: Draining

    /// Whether the node drains, and rows are still in flight.
    var isWaitingToDrain: Bool { if case .waiting? = draining { true } else { false } }

    /// Whether the node drains, with or without rows in flight.
    public var isDraining: Bool { draining != nil }

    /// Stops sending further rows.
    /// - Parameter done: called once all rows in flight have results, or at `resume`.
    public func drain(_ done: @escaping () -> Void) {
        draining = .waiting(done)
        checkDrained()
    }

    /// Gives up waiting for the results of rows in flight. No rows are sent until `resume`.
    public func stopWaitingToDrain() { if draining != nil { draining = .drained } }

    /// Calls the closure that was passed to `drain` if no rows are in flight.
    func checkDrained() {
        guard case .waiting(let done)? = draining, links.values.allSatisfy(\.isAnswered) else { return }
        draining = .drained
        done()
    }

    /// Sends rows again after `drain`.
    public func resume(_ host: isolated some DeliveryHost) {
        if case .waiting(let done)? = draining { done() }
        draining = nil
        for link in links.values { kick(link, host) }
    }
}

/// The state of draining. No rows are sent meanwhile.
private enum Draining {
    /// Rows are in flight. The closure is called once all of them have results.
    case waiting(() -> Void)
    case drained
}
