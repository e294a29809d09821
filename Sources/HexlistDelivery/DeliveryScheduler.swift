public import HexlistEventLoop
public import HexlistModel
import Logging
public import NIOCore

/// Hands the rows of the outbox to couriers: to at most four peers at a time, to each while it has a slot, to none before its pause is over.
/// `PeerDelivery` decides which rows go to a peer, and in which order.
///
/// Confined to the event loop of its host.
public final class DeliveryScheduler {
    /// A link for each peer that has a courier, or rows to send.
    var links: [PeerID: DeliveryLink] = [:]
    /// The callers that wait for rows.
    public var sends = SendTracker()
    var slots: SendSlots
    /// `nil` unless another identity is taking this one's place.
    private var draining: Draining?
    let slotTimer: DeadlineTimer
    let window: CourierWindow
    private let eventLoop: any EventLoop
    let clocks: Clocks

    /// - Parameters:
    ///   - peers: the most peers that rows are sent to at a time.
    ///   - window: the bound on hexes in flight to one peer.
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

    /// Forgets a link with no courier, nothing to send and nothing in flight.
    func forgetIfQuiet(_ link: DeliveryLink, _ host: isolated some DeliveryHost) {
        guard link.couriers.isEmpty, !link.endedWithRows, !link.delivery.knowsOfRows, link.delivery.isQuiet, !link.isReaching,
            !link.delivery.isPaused(now: clocks.now)
        else { return }
        link.resumption.cancel()
        links[link.peer] = nil
        host.deliveryEnded(with: link.peer)
    }

    /// Whether rows wait for the peer, as far as is known.
    func mayHaveRows(_ link: DeliveryLink, _ host: isolated some DeliveryHost) -> Bool {
        link.delivery.hasWork && (link.delivery.knowsOfRows || host.hadRows(for: link.peer))
    }

    // MARK: Peers

    public func hasWork(for peer: PeerID) -> Bool { links[peer]?.delivery.hasWork ?? false }

    /// Whether anything is remembered of the peer: a courier, rows, or a pause.
    public func knows(_ peer: PeerID) -> Bool { links[peer] != nil }

    /// Whether a courier for waiting rows is being made.
    public func isReaching(_ peer: PeerID) -> Bool { links[peer]?.isReaching ?? false }

    /// Bytes of the longest frame that the peer takes on its newest courier; 0 without one.
    public func frameLimit(of peer: PeerID) -> Int { links[peer]?.delivery.frameLimit ?? 0 }

    /// Ends the pause after failures of a peer that was away and is there again.
    public func peerIsBack(_ peer: PeerID) { links[peer]?.delivery.peerIsBack() }

    /// Ends the pauses of these peers, as a user asked for.
    func retryNow(_ peers: Set<PeerID>, _ host: isolated some DeliveryHost) {
        for peer in peers {
            let link = link(to: peer)
            link.delivery.retryNow()
            kick(link, host)
        }
    }

    /// Retries hexes that the peer refused for now: this machine's user trusted the peer, so its user may have trusted this machine.
    public func trustBegan(_ peer: PeerID, _ host: isolated some DeliveryHost) {
        guard let link = links[peer] else { return }
        link.delivery.trustBegan()
        kick(link, host)
    }

    /// Sends waiting rows after a change of what `isHeld` says about these peers.
    /// - Parameter peer: `nil` for all peers.
    public func holdsChanged(of peer: PeerID?, _ host: isolated some DeliveryHost) {
        for link in links.values where peer == nil || link.peer == peer { kick(link, host) }
    }

    /// Sends the rows that wait for the peer: over its courier, or over a new one if the peer is there.
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

    /// Takes up rows that were queued, in this order.
    /// - Parameters:
    ///   - again: peers of rows that were queued again, which stand before those that were loaded already.
    ///   - isDurable: `false` for rows that go ahead (`PeerDelivery.appended`).
    public func queued(_ rows: [PeerID: [OutgoingHex]], again: Set<PeerID>, isDurable: Bool, _ host: isolated some DeliveryHost) {
        for peer in again { link(to: peer).delivery.rowsChanged() }
        for (peer, rows) in rows { link(to: peer).delivery.appended(rows, isDurable: isDurable) }
        for peer in again.union(rows.keys) { kick(link(to: peer), host) }
        // The frame first: the caller wakes the writer next, which takes as long, and may take the core from the peer's thread.
        if !isDurable { for peer in rows.keys { links[peer]?.courier?.flush() } }
    }

    /// Rows for these peers are on their way into the store; `rowsCame` once they are there, or will not be.
    public func rowsComing(for peers: [PeerID]) {
        for peer in peers { link(to: peer).delivery.rowsComing() }
    }

    public func rowsCame(for peers: [PeerID], _ host: isolated some DeliveryHost) {
        for peer in peers {
            guard let link = links[peer] else { continue }
            link.delivery.rowsCame()
            forgetIfQuiet(link, host)
        }
    }

    /// Forgets rows that went ahead to these peers, up to the last one, because they were not written.
    public func lostAhead(_ last: Int64, to peers: [PeerID], _ host: isolated some DeliveryHost) {
        for peer in peers {
            guard let link = links[peer], link.delivery.lostAhead(last) else { continue }
            kick(link, host)
        }
    }

    /// Takes rows that a user cancelled.
    public func cancelled(_ moves: [OutboxMove]) {
        for peer in Set(moves.map(\.peer)) { links[peer]?.delivery.rowsChanged() }
        sends.moved(moves)
    }

    /// Takes rows that a user queued again; their pauses end.
    /// - Parameter peers: also of rows that waited already.
    public func retried(_ moves: [OutboxMove], of peers: Set<PeerID>, _ host: isolated some DeliveryHost) {
        sends.moved(moves)
        retryNow(peers, host)
    }

    /// Whether so many rows wait in memory for one of these peers as are kept there for a courier.
    public func isBehind(_ peers: [PeerID]) -> Bool { peers.contains { links[$0]?.delivery.isBehind ?? false } }

    // MARK: Waiting rows

    /// Whether nothing may be sent to the peer: while this machine drains, and while there is a conflict of identities.
    public func isHeld(_ peer: PeerID, _ host: isolated some DeliveryHost) -> Bool { draining != nil || host.isInConflict(with: peer) }

    /// The rows in flight: at most a window of each peer.
    public var liveRows: Set<Int64> { links.values.reduce(into: []) { $0.formUnion($1.courier?.inFlight ?? []) } }

    /// - Returns: the reason why a queued row that is not in flight waits, and the instant of the next attempt if it is known.
    public func wait(
        of peer: PeerID, bytes: Int, _ host: isolated some DeliveryHost
    ) -> (reason: OutboxWait, until: ContinuousClock.Instant?) {
        guard !isHeld(peer, host) else { return (.conflict, nil) }
        let link = links[peer]
        // A pause ends when the peer is back.
        guard link?.courier != nil || host.isVerified(peer) else { return (.peer, nil) }
        if let link, let until = link.delivery.pausedUntil, link.delivery.isPaused(now: clocks.now) { return (.retry, until) }
        guard let link, link.courier != nil, !host.isUndecided(peer) else { return (.session, nil) }
        guard !link.delivery.waitsForTrust(bytes: bytes) else { return (.trust, nil) }
        return (slots.isWaiting(peer) ? .turn : .window, nil)
    }

    /// Whether a row may get its result before the deadline: its peer is there, trusts this machine if it has to, and did not ask for a
    /// longer pause.
    /// - Parameter bytes: of the row; `nil` for rows of any length.
    public func isWorthWaiting(
        for peer: PeerID, bytes: Int?, until deadline: ContinuousClock.Instant, _ host: isolated some DeliveryHost
    ) -> Bool {
        guard !isHeld(peer, host) else { return false }
        guard let link = links[peer] else { return host.isVerified(peer) }
        if let bytes, link.delivery.waitsForTrust(bytes: bytes) { return false }
        // The caller is given the reason of a refusal, which the store has in a moment.
        if link.delivery.isWriting { return true }
        if let until = link.delivery.pausedUntil, until > deadline { return false }
        // A courier that is just ending may be followed by another one.
        return link.courier?.isOpen == true || host.isVerified(peer)
    }

    // MARK: Callers

    /// Wakes the callers that wait for room: rows came to an end, or are gone.
    public func roomMade() { sends.roomMade() }

    /// Makes all callers that wait for rows look again, because what the rows wait for may have changed.
    public func wakeWaiters(_ host: isolated some DeliveryHost) { sends.lookAgain(isStopping: host.isStopping) }

    // MARK: Draining

    var isWaitingToDrain: Bool { if case .waiting? = draining { true } else { false } }

    public var isDraining: Bool { draining != nil }

    /// Sends nothing new from now on.
    /// - Parameter done: called once nothing that was sent is unanswered.
    public func drain(_ done: @escaping () -> Void) {
        draining = .waiting(done)
        checkDrained()
    }

    /// Ends the wait for results; still nothing is sent.
    public func stopWaitingToDrain() { if draining != nil { draining = .silent } }

    /// Ends the wait for results if all are there.
    func checkDrained() {
        guard case .waiting(let done)? = draining, links.values.allSatisfy(\.isAnswered) else { return }
        draining = .silent
        done()
    }

    /// Ends `drain`: rows are sent again.
    public func resume(_ host: isolated some DeliveryHost) {
        if case .waiting(let done)? = draining { done() }
        draining = nil
        for link in links.values { kick(link, host) }
    }
}

/// The state of a machine that takes another identity: nothing new is sent.
private enum Draining {
    /// Something sent has no result yet; the closure is called once everything has.
    case waiting(() -> Void)
    case silent
}
