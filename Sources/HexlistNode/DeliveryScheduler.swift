import HexlistAPI
import HexlistEventLoop
import HexlistModel
import HexlistStore
import HexlistWire
import NIOCore

/// Sends the rows of the outbox on the sessions: to at most four peers at a time, to each when it is its turn, to none before its pause is
/// over. What goes to one peer, and in which order, `PeerDelivery` decides.
final class DeliveryScheduler {
    /// A link for each peer with a session, or with rows to send.
    private(set) var links: [PeerID: PeerLink] = [:]
    var turns: TransferTurns
    /// `nil` unless another node is taking this one's place.
    private var draining: Draining?
    private let turnTimer: DeadlineTimer
    private let limits: NodeConfiguration.Send
    private let eventLoop: any EventLoop
    private let clocks: Clocks

    init(_ limits: NodeConfiguration.Send, on eventLoop: any EventLoop, _ clocks: Clocks) {
        self.limits = limits
        self.eventLoop = eventLoop
        self.clocks = clocks
        turns = TransferTurns(limit: limits.concurrentTransfers)
        turnTimer = DeadlineTimer(on: eventLoop, clocks)
    }

    func link(to peer: PeerID) -> PeerLink {
        if let link = links[peer] { return link }
        let link = PeerLink(peer: peer, on: eventLoop, clocks)
        links[peer] = link
        return link
    }

    func hasWork(for peer: PeerID) -> Bool { links[peer]?.delivery.hasWork ?? false }

    /// Forgets a link with no session, nothing to send and nothing under way.
    private func forgetIfQuiet(_ link: PeerLink) {
        guard link.sessions.isEmpty, !link.endedWithRows, !link.delivery.knowsOfRows, link.delivery.isQuiet, !link.isDialling,
            !link.delivery.isPaused(now: clocks.now)
        else { return }
        link.resumption.cancel()
        links[link.peer] = nil
    }

    /// Whether rows wait for the peer, as far as is known.
    private func mayHaveRows(_ link: PeerLink, _ host: isolated some DeliveryHost) -> Bool {
        link.delivery.hasWork && (link.delivery.knowsOfRows || host.hadRows(for: link.peer))
    }

    // MARK: Rows

    /// Takes up rows that were queued, in this order.
    /// - Parameters:
    ///   - again: peers of rows that were queued anew, which stand before those that were loaded already.
    ///   - isDurable: `false` for rows that go ahead (`PeerDelivery.appended`).
    func queued(_ rows: [PeerID: [OutgoingHex]], again: Set<PeerID>, isDurable: Bool, _ host: isolated some DeliveryHost) {
        for peer in again { link(to: peer).delivery.rowsChanged() }
        for (peer, rows) in rows { link(to: peer).delivery.appended(rows, isDurable: isDurable) }
        for peer in again.union(rows.keys) { kick(link(to: peer), host) }
        // The frame first: the caller wakes the writer next, which takes as long, and may take the core from the peer's thread.
        if !isDurable { for peer in rows.keys { links[peer]?.sending?.connection.flush() } }
    }

    /// Rows for these peers are on their way into the store; `rowsCame` once they are there, or will not be.
    func rowsComing(for peers: [PeerID]) {
        for peer in peers { link(to: peer).delivery.rowsComing() }
    }

    func rowsCame(for peers: [PeerID], _ host: isolated some DeliveryHost) {
        for peer in peers {
            guard let link = links[peer] else { continue }
            link.delivery.rowsCame()
            forgetIfQuiet(link)
        }
    }

    /// Forgets rows that went ahead to these peers, up to the last one, as they were not written.
    func lostAhead(_ last: Int64, to peers: [PeerID], _ host: isolated some DeliveryHost) {
        for peer in peers {
            guard let link = links[peer], link.delivery.lostAhead(last) else { continue }
            kick(link, host)
        }
    }

    /// Forgets what was loaded for these peers: some of it was cancelled.
    func rowsChanged(for peers: Set<PeerID>) {
        for peer in peers { links[peer]?.delivery.rowsChanged() }
    }

    /// Whether rows wait in memory for one of these peers, as many as are kept there for a session.
    func isBehind(_ peers: [PeerID]) -> Bool { peers.contains { links[$0]?.delivery.isBehind ?? false } }

    /// Ends the pauses of these peers, as a person asked for.
    func retryNow(_ peers: Set<PeerID>, _ host: isolated some DeliveryHost) {
        for peer in peers {
            let link = link(to: peer)
            link.delivery.retryNow()
            kick(link, host)
        }
    }

    /// Tries what the peer refused for now: its person is likely to have trusted this node, as the own person trusted the peer.
    func trustBegan(_ peer: PeerID, _ host: isolated some DeliveryHost) {
        guard let link = links[peer] else { return }
        link.delivery.trustBegan()
        kick(link, host)
    }

    /// Sends what waits for the peer where there is a session, and dials where the peer is here.
    func kick(_ link: PeerLink, _ host: isolated some DeliveryHost) {
        guard !host.isStopping else { return }
        if link.sending != nil { return pump(link, host) }
        let peer = link.peer
        guard !link.isDialling, link.delivery.hasWork, !link.delivery.isPaused(now: host.clocks.now), host.isVerified(peer),
            !isHeld(peer, host)
        else { return }
        let endpoints = host.endpoints(of: peer)
        guard !endpoints.isEmpty else { return }
        link.isDialling = true
        host.dial(peer, endpoints) { host, connected in
            guard let link = host.deliveries.links[peer] else { return }
            link.isDialling = false
            if !connected, link.sending == nil { host.deliveries.transferFailed(link, end: .lost, closedByPeer: false, host) }
        }
    }

    // MARK: What rows wait for

    /// Whether nothing may be sent to the peer: while this node drains, and while there is a conflict of identities.
    func isHeld(_ peer: PeerID, _ host: isolated some DeliveryHost) -> Bool { draining != nil || host.isInConflict(with: peer) }

    /// The rows on their way: a window of each peer at most.
    var liveRows: Set<Int64> {
        links.values.reduce(into: []) { $0.formUnion($1.sending?.machine.unacknowledgedTags ?? []) }
    }

    /// - Returns: what a queued row that is not on its way waits for, and when it is tried again where that is known.
    func wait(
        of peer: PeerID, bytes: Int, _ host: isolated some DeliveryHost
    ) -> (reason: OutboxWait, until: ContinuousClock.Instant?) {
        guard !isHeld(peer, host) else { return (.conflict, nil) }
        let link = links[peer]
        // Whatever pause there is ends when it is back.
        guard link?.sending != nil || host.isVerified(peer) else { return (.peer, nil) }
        if let link, let until = link.delivery.pausedUntil, link.delivery.isPaused(now: host.clocks.now) { return (.retry, until) }
        guard let link, link.sending != nil, !host.isUndecided(peer) else { return (.session, nil) }
        guard !link.delivery.waitsForTrust(bytes: bytes) else { return (.trust, nil) }
        return (turns.isWaiting(peer) ? .turn : .window, nil)
    }

    /// Whether a row may come to its end before the deadline: its peer is there, trusts this node where it has to, and did not ask for a
    /// longer wait.
    /// - Parameter bytes: of the row; `nil` for rows of any length.
    func isWorthWaiting(
        for peer: PeerID, bytes: Int?, until deadline: ContinuousClock.Instant, _ host: isolated some DeliveryHost
    ) -> Bool {
        guard !isHeld(peer, host) else { return false }
        guard let link = links[peer] else { return host.isVerified(peer) }
        if let bytes, link.delivery.waitsForTrust(bytes: bytes) { return false }
        // A refusal is told with its reason, which the store has in a moment.
        if link.delivery.isWriting { return true }
        if let until = link.delivery.pausedUntil, until > deadline { return false }
        // A session that is just ending may have another one behind it.
        guard let session = link.sending, !session.machine.isClosed else { return host.isVerified(peer) }
        return true
    }

    // MARK: Sending

    func pump(_ session: PeerSession, _ host: isolated some DeliveryHost) {
        guard let peer = session.peer, let link = links[peer], link.sending === session else { return }
        pump(link, host)
    }

    /// Carries out steps of the delivery until there is none.
    func pump(_ link: PeerLink, _ host: isolated some DeliveryHost) {
        guard !host.isStopping, let session = link.sending, session.connection.isOpen else { return }
        let now = host.clocks.now
        guard link.delivery.hasWork, !link.delivery.isPaused(now: now), !isHeld(link.peer, host), !host.isUndecided(link.peer) else {
            return giveTurnBack(link, host)
        }
        let hadTurn = turns.hasTurn(link.peer)
        guard turns.request(link.peer, now: now) else { return watchTurns(host) }
        if !hadTurn { link.delivery.turnBegan() }

        var wrote = false
        steps: while true {
            if turns.othersWait, link.delivery.bytesThisTurn >= ProtocolLimits.windowBytes { break }
            let step = link.delivery.next(now: now) {
                session.canSend(bytes: $0, windowFrames: limits.windowFrames, windowBytes: limits.windowBytes)
            }
            switch step {
            case .send(let row):
                session.send(row)
                if link.measured == nil { link.measured = (row.id, now) }
                wrote = true
            case .load(let after, let epoch): load(link, after: after, epoch: epoch, host)
            case .reject(let row):
                let limit = link.delivery.frameLimit
                write(
                    [.init(id: row, state: .rejected(.tooLarge, "It is longer than the \(limit) bytes this peer takes."))], for: link,
                    counted: false, host)
            case .endSession:
                session.act { $0.end(.idle, &$1) }
                break steps
            case .wait: break steps
            }
        }
        if wrote { session.settle() }
        if !link.delivery.hasWork {
            giveTurnBack(link, host)
        } else if turns.othersWait, link.delivery.bytesThisTurn >= ProtocolLimits.windowBytes {
            giveTurnBack(link, host)
            _ = turns.request(link.peer, now: now)  // to the end of the queue
        }
    }

    private func load(_ link: PeerLink, after: Int64, epoch: Int, _ host: isolated some DeliveryHost) {
        let peer = link.peer
        let longest = max(0, link.delivery.frameLimit < ProtocolLimits.trustedFrameBytes ? link.delivery.longestBody : .max)
        host.store.submitRead({
            try $0.outboxBatch(peer, after: after, limit: PeerDelivery.loadRows, maxBytes: PeerDelivery.loadBytes, longest: longest)
        }) { [host] result in
            host.onLoop { host in
                guard let link = host.deliveries.links[peer] else { return }
                switch result {
                case .success(let batch):
                    let rows = batch.items.map { OutgoingHex(id: $0.id, messageID: $0.messageID, body: $0.body) }
                    link.delivery.loaded(rows, hasMore: batch.hasMore, epoch: epoch)
                    host.deliveries.pump(link, host)
                case .failure(let error):
                    host.logger.error("outbox could not be read", metadata: ["peer.id": "\(peer)", "error": "\(error)"])
                    link.delivery.loadFailed(epoch: epoch)
                    host.deliveries.transferFailed(link, end: nil, closedByPeer: false, host)
                }
            }
        }
    }

    // MARK: Turns

    private func giveTurnBack(_ link: PeerLink, _ host: isolated some DeliveryHost) {
        guard turns.hasTurn(link.peer) || turns.isWaiting(link.peer) else { return }
        if turns.release(link.peer) != nil { wakeNext(host) }
    }

    /// Lets the peer that is first in line request the free turn, and then the next one.
    private func wakeNext(_ host: isolated some DeliveryHost) {
        // Not from inside the other one's steps.
        host.onLoop { host in
            let deliveries = host.deliveries
            guard let next = deliveries.turns.next else { return }
            if let waiting = deliveries.links[next] {
                deliveries.pump(waiting, host)
            } else {
                _ = deliveries.turns.release(next)
            }
            if let following = deliveries.turns.next, following != next { deliveries.wakeNext(host) }
        }
    }

    /// Takes a turn back after 30 s without a receipt, while others wait, whatever the session makes of that time: a stranger
    /// that says more than is read of it is given longer there.
    private func watchTurns(_ host: isolated some DeliveryHost) {
        turnTimer.set(turns.deadline, host) { host in
            let deliveries = host.deliveries
            for peer in deliveries.turns.overdue(now: host.clocks.now) {
                if deliveries.turns.release(peer) != nil { deliveries.wakeNext(host) }
                if deliveries.links[peer] != nil { _ = deliveries.turns.request(peer, now: host.clocks.now) }
            }
            deliveries.watchTurns(host)
        }
    }

    // MARK: Answers

    /// Takes the answers a peer gave for rows.
    func settled(_ rows: [Session.Settled], on session: PeerSession, _ host: isolated some DeliveryHost) {
        // Two starts of the peer may live: its receipts are ignored and the rows sent again, which a machine that has them answers
        // `duplicate`.
        guard let peer = session.peer, !host.isUndecided(peer) else { return }
        let link = link(to: peer)
        let now = host.clocks.now
        let verdicts = link.delivery.settled(rows, isCurrent: link.sending === session, now: now)
        if verdicts.contains(where: { $0.state.isDelivered }) { link.transferFailures = 0 }
        lookWhetherDrained()
        if let measured = link.measured, rows.contains(where: { $0.tag == measured.row }) {
            host.metrics.send.recordNanoseconds((now - measured.at).nanoseconds)
            link.measured = nil
        }
        guard !verdicts.isEmpty else { return }
        host.metrics.sent(verdicts)
        turns.progressed(peer, now: now)
        write(verdicts, for: link, counted: true, host)
        resumeAfterPause(link, now: now, host)
        pump(link, host)
    }

    /// - Parameter counted: whether the delivery waits for this to be written before it rewinds.
    private func write(_ verdicts: [PeerDelivery.Verdict], for link: PeerLink, counted: Bool, _ host: isolated some DeliveryHost) {
        let peer = link.peer
        let now = host.clocks.milliseconds
        let next = link.delivery.pausedUntil.map { now + ($0 - host.clocks.now).milliseconds }
        let settlements = Settlement.all(in: verdicts)
        let notes = AttemptNote.refusals(in: verdicts, nextAttemptAt: next)
        // A stream's caller, and that of a hex which did not arrive, are told what is in the store; the row of a refusal is shown with its reason.
        var isAwaited = host.sends.followsStore || !notes.isEmpty
        if host.sends.followsReceipts {
            let receipts = settlements.compactMap { RowMove(delivered: $0, peer: peer) }
            host.sends.received(receipts)
            if receipts.count < settlements.count { isAwaited = true }
        }
        host.store.settle(settlements, noting: notes, of: peer, at: now, isAwaited: isAwaited) { [host] result in
            host.onLoop { host in
                let link = host.deliveries.links[peer]
                if counted { link?.delivery.written() }
                switch result {
                case .success(let moves):
                    host.sends.moved(moves.map { RowMove($0, peer: peer) })
                    if !notes.isEmpty { host.wakeWaiters() }
                case .failure(let error):
                    // The rows stay queued; they are sent again and the peer recognises them.
                    host.logger.error("receipts could not be recorded", metadata: ["peer.id": "\(peer)", "error": "\(error)"])
                    guard let link else { return }
                    link.delivery.rowsChanged()
                    host.deliveries.transferFailed(link, end: nil, closedByPeer: false, host)
                }
                host.watchers.notify()
                guard let link else { return }
                host.deliveries.pump(link, host)
                if link.sessions.isEmpty, link.endedWithRows { return host.deliveries.lookForRows(link, host) }
                host.deliveries.forgetIfQuiet(link)
            }
        }
    }

    /// Looks whether rows wait for a peer that left before its answers were written: it may have answered all there were.
    private func lookForRows(_ link: PeerLink, _ host: isolated some DeliveryHost) {
        let peer = link.peer
        let noted = link.delivery.rowsNoted
        host.store.submitRead({ try $0.outboxBatch(peer, after: 0, limit: 1, maxBytes: 1).items.isEmpty }) { [host] result in
            host.onLoop { host in
                guard case .success(true) = result, let link = host.deliveries.links[peer], link.sessions.isEmpty,
                    link.delivery.foundNone(since: noted)
                else { return }
                link.endedWithRows = false
                host.deliveries.forgetIfQuiet(link)
            }
        }
    }

    /// Rejects what waits for a peer that blocked this node, so many rows at a time.
    private func rejectAll(for peer: PeerID, _ host: isolated some DeliveryHost) {
        host.store.rejectQueued(
            of: peer, code: RefusalCode.blocked.rawValue, message: "This peer blocked you.", at: host.clocks.milliseconds
        ) {
            [host] result in
            host.onLoop { host in
                switch result {
                case .success(let rows):
                    host.sends.moved(rows.map { RowMove(id: $0, peer: peer, from: .queued, to: .rejected) })
                    if rows.count == HexStore.outboxRejectLimit { host.deliveries.rejectAll(for: peer, host) }
                case .failure(let error): host.logger.error("outbox could not be written", metadata: ["error": "\(error)"])
                }
                host.wakeWaiters()
                host.watchers.notify()
            }
        }
    }

    // MARK: Sessions

    /// Takes a later Hello of the peer, on one of its sessions.
    func greetedAgain(_ link: PeerLink, on session: PeerSession, frameLimit: Int, _ host: isolated some DeliveryHost) {
        let now = host.clocks.now
        // Where both sides dialled at the same moment, it is said on one of two sessions.
        link.delivery.greetedAgain(frameLimit: link.sending === session ? frameLimit : nil, now: now)
        resumeAfterPause(link, now: now, host)
        pump(link, host)
    }

    /// Takes the end of a connection that was dialled for the peer and never became a session with it.
    func notReached(_ peer: PeerID, _ end: Session.End, _ host: isolated some DeliveryHost) {
        guard let link = links[peer], link.sending == nil, mayHaveRows(link, host) else { return }
        transferFailed(link, end: end, closedByPeer: false, host)
    }

    /// Takes the end of the session that was sent on, which the link no longer has.
    func ended(_ session: PeerSession, of link: PeerLink, _ end: Session.End, closedByPeer: Bool, _ host: isolated some DeliveryHost) {
        link.measured = nil
        let hadWork = link.delivery.inFlight > 0
        if case .peer(.blocked, _) = end { rejectAll(for: link.peer, host) }
        if let next = link.sending, let hello = next.machine.peerHello {
            link.delivery.connected(frameLimit: hello.maxFrameBytes, inFlight: next.machine.unacknowledgedTags.count)
            return pump(link, host)
        }
        let hasRows = mayHaveRows(link, host)
        link.delivery.disconnected()
        giveTurnBack(link, host)
        if hadWork || end.isConflictThere && hasRows {
            transferFailed(link, end: end, closedByPeer: closedByPeer, blamed: session.machine.unacknowledgedTags.min(), host)
        } else if hasRows, !link.delivery.isPaused(now: host.clocks.now) {
            resume(link, at: host.clocks.now + .seconds(1), host)
        }
        host.wakeWaiters()
        link.endedWithRows = hasRows
        forgetIfQuiet(link)
    }

    // MARK: Pauses

    /// Pauses after a transfer that failed though the peer is there, longer each time, whatever discovery brings meanwhile.
    /// - Parameter blamed: the first row that was sent and not answered; `nil` where none was.
    private func transferFailed(
        _ link: PeerLink, end: Session.End?, closedByPeer: Bool, blamed: Int64? = nil, _ host: isolated some DeliveryHost
    ) {
        var random = SystemRandomNumberGenerator()
        let isConflict = end?.isConflictThere ?? false
        // How long a conflict lasts is no failure's doing.
        if !isConflict { link.transferFailures += 1 }
        let pause =
            isConflict
            ? PeerLink.conflictPause
            : PeerLink.backoff.jitteredPause(after: link.transferFailures, shortest: PeerLink.shortestPause, using: &random)
        let until = host.clocks.now + pause
        link.delivery.pause(until: until)
        resume(link, at: link.delivery.pausedUntil ?? until, host)
        let error = end?.text ?? "The outbox could not be read."
        let at = host.clocks.milliseconds
        let counts = end?.countsAgainstHex(closedByPeer: closedByPeer) ?? false
        let peer = link.peer
        // A row that the peer refused for now was answered; the session's end is not its doing.
        host.store.transferFailed(to: peer, blaming: blamed, counts: counts, next: at + pause.milliseconds, error: error, at: at) {
            [host] result in
            host.onLoop { host in
                switch result {
                case .success(let moves): host.sends.moved(moves.map { RowMove($0, peer: peer) })
                case .failure(let error): host.logger.error("outbox could not be written", metadata: ["error": "\(error)"])
                }
                host.wakeWaiters()
            }
        }
    }

    private func resumeAfterPause(_ link: PeerLink, now: ContinuousClock.Instant, _ host: isolated some DeliveryHost) {
        if let until = link.delivery.pausedUntil, until > now { resume(link, at: until, host) }
    }

    /// Gives the turn back, and goes on at an instant.
    private func resume(_ link: PeerLink, at instant: ContinuousClock.Instant, _ host: isolated some DeliveryHost) {
        giveTurnBack(link, host)
        goOn(link, at: instant, host)
    }

    /// Goes on at an instant, or when the pause is over where it was made longer meanwhile.
    private func goOn(_ link: PeerLink, at instant: ContinuousClock.Instant, _ host: isolated some DeliveryHost) {
        link.resumption.set(instant, host) { [peer = link.peer] host in
            guard let link = host.deliveries.links[peer] else { return }
            if let until = link.delivery.pausedUntil, until > host.clocks.now {
                host.deliveries.goOn(link, at: until, host)
            } else {
                host.deliveries.kick(link, host)
            }
        }
    }

    // MARK: Draining

    var isDraining: Bool { draining != nil }

    var isWaitingToDrain: Bool { if case .waiting? = draining { true } else { false } }

    /// Sends nothing new from now on.
    /// - Parameter done: is called once nothing that was sent is unanswered.
    func drain(_ done: @escaping () -> Void) {
        draining = .waiting(done)
        lookWhetherDrained()
    }

    /// Ends the wait for answers; still nothing is sent.
    func stopWaitingToDrain() { if draining != nil { draining = .silent } }

    /// Ends the wait for answers where all are there. Called after receipts, and after the end of a session.
    func lookWhetherDrained() {
        guard case .waiting(let done)? = draining, links.values.allSatisfy(\.isAnswered) else { return }
        draining = .silent
        done()
    }

    /// Ends `drain`: rows are sent again.
    func resume(_ host: isolated some DeliveryHost) {
        if case .waiting(let done)? = draining { done() }
        draining = nil
        for link in links.values { kick(link, host) }
    }
}

/// The state of a node whose place another one takes, with another identity: nothing new is sent.
private enum Draining {
    /// Something sent is unanswered; the closure is called once nothing is.
    case waiting(() -> Void)
    case silent
}

extension Session.End {
    /// Whether the peer says that another machine has this one's identity.
    fileprivate var isConflictThere: Bool { if case .peer(.conflict, _) = self { true } else { false } }

    /// Whether it counts against a hex: the peer itself closed the session while it was the first unacknowledged one.
    func countsAgainstHex(closedByPeer: Bool) -> Bool {
        switch self {
        case .lost: closedByPeer
        case .own: false
        case .peer(let code, _):
            switch code {
            case .shutdown, .idle, .duplicateSession, .limit, .blocked, .conflict: false
            default: true
            }
        }
    }
}
