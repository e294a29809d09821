import HexlistDiscovery
import HexlistModel
import HexlistStore
import HexlistTransport
import HexlistWire
import NIOCore

/// From the outbox onto the sessions, at most four peers at a time.
extension Node {
    func hasWork(for peer: PeerID?) -> Bool {
        guard let peer else { return false }
        return links[peer]?.delivery.hasWork ?? false || pairing.concerns(peer)
    }

    func pump(_ session: PeerSession) {
        guard let peer = session.peer, let link = links[peer], link.sending === session else { return }
        pump(link)
    }

    /// Carries out steps of the delivery until there is none.
    func pump(_ link: PeerLink) {
        guard !isStopping, let session = link.sending, session.connection.isOpen else { return }
        let now = ContinuousClock.Instant.now
        guard link.delivery.hasWork, !link.delivery.isPaused(now: now), !isQuarantined(link.peer) else { return giveTurnBack(link) }
        let hadTurn = turns.hasTurn(link.peer)
        guard turns.request(link.peer, now: now) else { return watchTurns() }
        if !hadTurn { link.delivery.turnBegan() }

        let limits = configuration.send
        var wrote = false
        steps: while true {
            if turns.othersWait, link.delivery.bytesThisTurn >= ProtocolLimits.windowBytes { break }
            let step = link.delivery.next(now: now) {
                session.canSend(bytes: $0, windowFrames: limits.windowFrames, windowBytes: limits.windowBytes)
            }
            switch step {
            case .send(let row):
                session.send(row)
                wrote = true
            case .load(let after, let epoch): load(link, after: after, epoch: epoch)
            case .reject(let row):
                let limit = link.delivery.frameLimit
                write(
                    [.init(id: row, state: .rejected(.tooLarge, "It is longer than the \(limit) bytes this peer takes."))], for: link,
                    counted: false)
            case .endSession:
                session.act { $0.end(.idle, &$1) }
                break steps
            case .wait: break steps
            }
        }
        if wrote { session.settle() }
        if !link.delivery.hasWork {
            giveTurnBack(link)
        } else if turns.othersWait, link.delivery.bytesThisTurn >= ProtocolLimits.windowBytes {
            giveTurnBack(link)
            _ = turns.request(link.peer, now: now)  // to the end of the queue
        }
    }

    func giveTurnBack(_ link: PeerLink) {
        guard turns.hasTurn(link.peer) || turns.isWaiting(link.peer) else { return }
        if turns.release(link.peer) != nil { wakeNext() }
    }

    /// Whoever is first in line asks for the turn that is free, and after it the next one for another.
    private func wakeNext() {
        // Not from inside the other one's steps.
        eventLoop.execute { [weak self] in
            self?.assumeIsolated { node in
                guard let next = node.turns.next else { return }
                if let waiting = node.links[next] {
                    node.pump(waiting)
                } else {
                    _ = node.turns.release(next)
                }
                if let following = node.turns.next, following != next { node.wakeNext() }
            }
        }
    }

    /// While others wait, a turn goes back after 30 s without a receipt, whatever the session makes of that time: a stranger
    /// that says more than is read of it is given longer there.
    private func watchTurns() {
        guard turnTimer == nil, !isStopping, let deadline = turns.deadline else { return }
        turnTimer = eventLoop.scheduleTask(in: TimeAmount(max(.zero, deadline - .now))) { [weak self] in
            self?.assumeIsolated { node in
                node.turnTimer = nil
                for peer in node.turns.overdue(now: .now) {
                    if node.turns.release(peer) != nil { node.wakeNext() }
                    if node.links[peer] != nil { _ = node.turns.request(peer, now: .now) }
                }
                node.watchTurns()
            }
        }
    }

    private func load(_ link: PeerLink, after: Int64, epoch: Int) {
        let peer = link.peer
        let longest = max(0, link.delivery.frameLimit < ProtocolLimits.trustedFrameBytes ? link.delivery.longestBody : .max)
        store.submitRead({
            try $0.outboxBatch(peer, after: after, limit: PeerDelivery.loadRows, maxBytes: PeerDelivery.loadBytes, longest: longest)
        }) { [self] result in
            onLoop { node in
                guard let link = node.links[peer] else { return }
                switch result {
                case .success(let batch):
                    let rows = batch.items.map { OutgoingHex(id: $0.id, messageID: $0.messageID, body: $0.body) }
                    link.delivery.loaded(rows, hasMore: batch.hasMore, epoch: epoch)
                    node.pump(link)
                case .failure(let error):
                    node.logger.error("outbox could not be read", metadata: ["peer.id": "\(peer)", "error": "\(error)"])
                    link.delivery.loadFailed(epoch: epoch)
                    node.transferFailed(link, end: nil, closedByPeer: false)
                }
            }
        }
    }

    // MARK: Answers

    func settled(_ rows: [Session.Settled], on session: PeerSession) {
        guard let peer = session.peer else { return }
        let link = link(to: peer)
        let now = ContinuousClock.Instant.now
        let verdicts = link.delivery.settled(rows, isCurrent: link.sending === session, now: now)
        if verdicts.contains(where: { $0.state == .stored || $0.state == .held }) { link.transferFailures = 0 }
        lookWhetherDrained()
        guard !verdicts.isEmpty else { return }
        turns.progressed(peer, now: now)
        if !outcomeWaiters.isEmpty { receiptsCame(verdicts.compactMap { RowMove(delivered: $0, peer: peer) }) }
        write(verdicts, for: link, counted: true)
        if let until = link.delivery.pausedUntil, until > now { resume(link, at: until) }
        pump(link)
    }

    /// - Parameter counted: whether the delivery waits for this to be written before it rewinds.
    private func write(_ verdicts: [PeerDelivery.Verdict], for link: PeerLink, counted: Bool) {
        let peer = link.peer
        let now = Node.wallClock()
        let next = link.delivery.pausedUntil.map { now + ($0 - .now).milliseconds }
        let settlements = verdicts.compactMap(Settlement.init)
        let notes = AttemptNote.refusals(in: verdicts, nextAttemptAt: next)
        store.settle(settlements, noting: notes, of: peer, at: now) { [self] result in
            onLoop { node in
                let link = node.links[peer]
                if counted { link?.delivery.written() }
                switch result {
                case .success(let moves):
                    node.rowsMoved(moves.map { RowMove($0, peer: peer) })
                    if !notes.isEmpty { node.wakeWaiters() }
                case .failure(let error):
                    // The rows stay queued; they are sent again and the peer recognises them.
                    node.logger.error("receipts could not be recorded", metadata: ["peer.id": "\(peer)", "error": "\(error)"])
                    guard let link else { return }
                    link.delivery.rowsChanged()
                    node.transferFailed(link, end: nil, closedByPeer: false)
                }
                node.notifyWatchers()
                guard let link else { return }
                node.pump(link)
                node.forgetIfQuiet(link)
            }
        }
    }

    /// The peer blocked this one: what waits for it is rejected, so many rows at a time.
    func rejectAll(for peer: PeerID) {
        store.rejectQueued(of: peer, code: RefusalCode.blocked.rawValue, message: "This peer blocked you.", at: Node.wallClock()) {
            [self] result in
            onLoop { node in
                switch result {
                case .success(let rows):
                    node.rowsMoved(rows.map { RowMove(id: $0, peer: peer, from: .queued, to: .rejected) })
                    if rows.count == HexStore.outboxRejectLimit { node.rejectAll(for: peer) }
                case .failure(let error): node.logger.error("outbox could not be written", metadata: ["error": "\(error)"])
                }
                node.wakeWaiters()
                node.notifyWatchers()
            }
        }
    }

    // MARK: Pauses

    /// The peer is there and the transfer failed: it waits, longer each time, whatever discovery brings meanwhile.
    /// - Parameter blamed: the first row that was sent and not answered; `nil` where none was.
    func transferFailed(_ link: PeerLink, end: Session.End?, closedByPeer: Bool, blamed: Int64? = nil) {
        var random = SystemRandomNumberGenerator()
        link.transferFailures += 1
        let pause = PeerLink.backoff.jitteredPause(
            after: link.transferFailures, shortest: PeerLink.shortestPause, using: &random)
        let until = ContinuousClock.Instant.now + pause
        link.delivery.pause(until: until)
        resume(link, at: link.delivery.pausedUntil ?? until)
        let error = end.map(Node.describe) ?? "The outbox could not be read."
        let at = Node.wallClock()
        let counts = end.map { Node.counts($0, closedByPeer: closedByPeer) } ?? false
        let peer = link.peer
        // A row the peer has refused for now was answered; the session's end is not its doing.
        store.transferFailed(to: peer, blaming: blamed, counts: counts, next: at + pause.milliseconds, error: error, at: at) {
            [self] result in
            onLoop { node in
                switch result {
                case .success(let moves): node.rowsMoved(moves.map { RowMove($0, peer: peer) })
                case .failure(let error): node.logger.error("outbox could not be written", metadata: ["error": "\(error)"])
                }
                node.wakeWaiters()
            }
        }
    }

    /// What counts against a hex: the peer itself closing the session while it was the first unacknowledged one.
    private static func counts(_ end: Session.End, closedByPeer: Bool) -> Bool {
        switch end {
        case .lost: closedByPeer
        case .own: false
        case .peer(let code, _):
            switch code {
            case .shutdown, .idle, .duplicateSession, .limit, .blocked: false
            default: true
            }
        }
    }

    static func describe(_ end: Session.End) -> String {
        switch end {
        case .lost: "The connection was lost."
        case .own(.receiptTimeout): "The peer took hexes and did not answer for 30 s."
        case .own(.silent): "The peer fell silent."
        case .own(.conflict): "Two machines use this peer's identity."
        case .peer(.conflict, _): "The peer says that another machine uses this machine's identity too."
        case .own(let code): "The session was ended (\(code.rawValue))."
        case .peer(let code, let text): "The peer ended the session (\(code?.rawValue ?? "unknown")\(text.isEmpty ? "" : ": \(text)"))."
        }
    }

    func resume(_ link: PeerLink, at instant: ContinuousClock.Instant) {
        let peer = link.peer
        giveTurnBack(link)
        link.resumption?.cancel()
        link.resumption = eventLoop.scheduleTask(in: TimeAmount(max(.zero, instant - .now))) { [weak self] in
            self?.assumeIsolated { node in
                guard let link = node.links[peer], !link.delivery.isPaused(now: .now) else { return }
                node.kick(link)
            }
        }
    }

    /// Rows wait for this peer: send them where there is a session, dial where there is a peer, wait where there is none.
    func kick(_ link: PeerLink) {
        guard !isStopping else { return }
        if link.sending != nil { return pump(link) }
        let peer = link.peer
        guard !link.isDialling, link.delivery.hasWork, !link.delivery.isPaused(now: .now), directory.isVerified(peer),
            !isQuarantined(peer)
        else { return }
        let endpoints = directory.endpoints(of: peer)
        guard !endpoints.isEmpty else { return }
        link.isDialling = true
        dial(peer, endpoints) { node, connected in
            let link = node.links[peer]
            link?.isDialling = false
            if !connected, let link, link.sending == nil { node.transferFailed(link, end: .lost, closedByPeer: false) }
        }
    }

    /// Dials a peer for work of this node's own, and begins the session where it answers.
    func dial(_ peer: PeerID, _ endpoints: [Endpoint], then completion: @escaping @Sendable (isolated Node, _ connected: Bool) -> Void) {
        let dial = transport.dial(endpoints.map { DialTarget($0) }, expecting: peer)
        dial.report.whenSuccess { [weak self] report in
            self?.assumeIsolated { node in
                guard !node.isStopping else {
                    report.connection?.abort()
                    return
                }
                if let connection = report.connection {
                    let reached = endpoints.first { DialTarget($0) == connection.target }
                    node.begin(connection, reached.map { Dialled(endpoint: $0, probe: nil, expected: peer) })
                }
                completion(node, report.connection != nil)
            }
        }
    }
}

extension Duration {
    /// Whole milliseconds, rounded down.
    var milliseconds: Int64 { components.seconds * 1_000 + components.attoseconds / 1_000_000_000_000_000 }
}
