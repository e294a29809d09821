import HexlistDelivery
import HexlistDiscovery
import HexlistEventLoop
import HexlistModel
import HexlistSession
import HexlistStore
import HexlistTransport
import HexlistWire
import Logging
import NIOCore

extension Node {
    func accepted(_ connection: PeerConnection) {
        guard !isStopping else { return connection.abort() }
        begin(connection, nil)
    }

    @discardableResult
    func begin(_ connection: PeerConnection, _ dialled: SessionDial?) -> PeerSession {
        let isTrusted = registry.trust(of: connection.peerFingerprint) == .trusted
        let session = PeerSession(
            connection, hello: hello(trusted: isTrusted), expected: dialled?.expected, isTrusted: isTrusted, in: sessions,
            delegate: NodeSession(self, dialled))
        if dialled == nil, isUninvited(session) {
            session.refuse(.idle, text: Node.hidingText)
        } else {
            session.start()
        }
        return session
    }

    func hello(trusted: Bool) -> Hello {
        Hello(
            uuid: id, name: PeerName.cut(configuration.name, bytes: ProtocolLimits.nameBytes), boot: boot,
            features: [DialBack.feature, ProtocolLimits.treeFeature, ProtocolLimits.filesFeature, ProtocolLimits.listsFeature],
            maxFrameBytes: trusted
                ? max(configuration.limits.frameBytes, ProtocolLimits.trustedFrameBytes) : configuration.limits.strangerFrameBytes,
            window: ProtocolLimits.windowFrames, card: trusted ? envelopes.cardText : nil)
    }

    // MARK: Hiding

    /// Whether this machine hides and its user did not request this session: the peer is neither trusted nor invited to pair, and was not
    /// dialled for the user (`doctor`, `pair`, a queued hex).
    private func isUninvited(_ session: PeerSession) -> Bool {
        guard !configuration.announce else { return false }
        let key = session.connection.peerFingerprint
        if let key, registry.trust(of: key) == .trusted || pairingDriver.coordinator.invites(key.peerID, now: clocks.now) { return false }
        return session.dialled.map { $0.probe != nil } ?? true
    }

    /// Ends uninvited sessions if this machine hides (`announce: false`). Called after changes of trust, pairings and the configuration.
    func endUninvited() {
        guard !configuration.announce else { return }
        // The peer of a dialled session is known after its Hello.
        for session in sessions.values where session.dialled == nil || session.machine.isOpen {
            guard !session.machine.isClosed, isUninvited(session) else { continue }
            session.act { $0.end(.idle, text: Node.hidingText, &$1) }
        }
    }

    /// The text of the Bye that ends uninvited sessions.
    static let hidingText = "This machine only connects to trusted peers."

    // MARK: Opened

    func sessionOpened(_ session: PeerSession, hello: Hello, version: String) {
        guard let fingerprint = session.connection.peerFingerprint, let peer = session.peer, let peerBoot = hello.boot else {
            return  // plain TCP: the UUID is not proven
        }
        guard registry.trust(of: fingerprint) != .blocked else { return endBlocked(session) }
        registry.proved(peer, fingerprint, listed: Set(finder.directory.listing().compactMap(\.peer)))
        let older = links[peer]?.sessions ?? []
        links[peer, default: PeerSessions()].sessions.append(session)
        logger.log(
            level: logLevel(of: fingerprint), "session open",
            metadata: [
                "peer.id": "\(peer)", "peer.boot": "\(peerBoot)", "role": "\(session.connection.role)",
                "address": "\(session.connection.remoteAddress)",
            ])
        registry.remember(peer, fingerprint: fingerprint, hello: hello, version: version, session: session, self)
        registry.rememberCard(hello.card, of: fingerprint, self)
        // The endpoint of an inbound session is its source address, which is shown to users and never dialled.
        let info = SessionInfo(
            peer: peer, boot: peerBoot, name: hello.name, version: version, endpoint: session.dialled?.endpoint ?? session.source,
            address: session.addressBehindName)
        session.info = info
        finder.apply(.sessionUp(info), self)
        if let dialled = session.dialled { finder.proved(peer, peerBoot, by: dialled, self) }

        session.checks.opened.take()?(true)
        guard !isUninvited(session) else { return session.act { $0.end(.idle, text: Node.hidingText, &$1) } }
        guard !finder.directory.isInConflict(peer) else {
            session.act { $0.end(.conflict, &$1) }
            return
        }
        conflicts.sessionOpened(session, with: peer, self)
        // The newest session is used at once. Older ones are challenged to prove that they are alive.
        deliver { deliveries, _ in deliveries.connected(session, to: peer, start: peerBoot) }
        duplicates.endSurplus(of: fingerprint, newest: session, self)
        for other in older where !other.machine.isClosed { duplicates.challenge(other, against: session) }
        guard !session.machine.isClosed else { return }
        deliver { $0.pump(session, to: peer, $1) }
        if hello.servesFiles { transfers.peerCame(peer) }
        lists.opened(peer, self)
        pairingDriver.sessionsChanged(of: peer, self)
        if refusedPeersNotifier.take(peer) { sendHello(session, always: true) }
    }

    /// The log level for sessions of a key: `debug` for strangers, which could fill the log.
    private func logLevel(of key: Fingerprint?) -> Logger.Level { registry.trust(of: key) == .trusted ? .info : .debug }

    func sessionUpdated(_ session: PeerSession, hello: Hello) {
        guard let peer = session.peer, links[peer] != nil else { return }
        deliver { $0.mayAcceptMore(session, to: peer, $1) }
        registry.rememberCard(hello.card, of: session.connection.peerFingerprint, self)
        let before = finder.directory.provenName(of: peer)
        finder.apply(.renamed(peer, name: hello.name), self)
        guard finder.directory.provenName(of: peer).map({ !$0.utf8.elementsEqual((before ?? "").utf8) }) ?? false else { return }
        registry.rememberName(session, self)
        notifyWatchers()
    }

    /// Handles a session of a legacy sender, a program that sends hexes without a Hello.
    func legacySender(_ session: PeerSession) {
        guard let fingerprint = session.connection.peerFingerprint else { return }
        guard registry.trust(of: fingerprint) != .blocked else { return endBlocked(session) }
        duplicates.endSurplus(of: fingerprint, newest: session, self)
    }

    func endBlocked(_ session: PeerSession) {
        session.act { [name = configuration.name] machine, actions in machine.endBlocked(ownName: name, now: clocks.now, &actions) }
    }

    func alertReceived(_ message: String, _ session: PeerSession) {
        guard let (peer, greetedAt) = session.greeting, let link = links[peer] else { return }
        let isTrusted = registry.trust(of: session.connection.peerFingerprint) == .trusted
        let text = PeerName.cut(message, bytes: isTrusted ? Node.alertBytes : Node.strangerAlertBytes)
        guard isTrusted || !link.hasRecordedAlert,
            alerts.isNews(text, from: peer, on: session.connection.id, greetedAt: greetedAt, now: clocks.now)
        else { return }
        links[peer]?.hasRecordedAlert = true
        events.record(
            .alertReceived, peer: peer, data: ["message": text, "trusted": isTrusted ? "true" : "false"],
            from: isTrusted ? .alerts(of: peer) : .strangers, self)
    }

    /// Maximum recorded bytes of an alert of a trusted peer.
    static let alertBytes = ProtocolLimits.messageBytes
    static let strangerAlertBytes = 160

    /// Sends a Hello with the current name, the peer's frame limit and, to a trusted peer, this machine's card, if one of them changed.
    /// - Parameter always: whether to send it even if none of them changed.
    func sendHello(_ session: PeerSession, always: Bool = false) {
        guard session.peer != nil, session.connection.isTLS else { return }
        let isTrusted = registry.trust(of: session.connection.peerFingerprint) == .trusted
        session.sendHello(hello(trusted: isTrusted), isTrusted: isTrusted, always: always)
    }

    /// Answers a dial-back request: dials the source address of the session if the peer is trusted. Requests that come too soon are not
    /// answered, so that a peer that does not read cannot make buffers grow.
    func answerDialBack(_ request: DialBack, _ session: PeerSession) {
        guard let peer = session.peer, let link = links[peer], !isStopping else { return }
        let now = clocks.now
        if let last = link.lastDialBack, now - last < dialBacks.pause { return }
        links[peer]?.lastDialBack = now
        guard registry.trust(of: session.connection.peerFingerprint) == .trusted else {
            return session.act { $0.answerDialBack(DialBack.Response(token: request.token, result: .notTrusted), &$1) }
        }
        guard dialBacks.begin() else { return }
        let target = DialTarget(host: session.connection.remoteAddress, port: request.port)
        transport.dial([target], expecting: peer).report.whenSuccess { [weak self] report in
            report.connection?.abort()
            self?.assumeIsolated { node in
                node.dialBacks.ended()
                let answer = DialBack.Response(token: request.token, result: DialBack.Result(report))
                session.act { $0.answerDialBack(answer, &$1) }
            }
        }
    }

    // MARK: Ended

    func sessionEnded(_ session: PeerSession, end: Session.EndReason, closedByPeer: Bool) {
        duplicates.sessionEnded(session, end)
        finder.sessionEnded(session, end, self)
        if session.peer == nil, let wanted = session.machine.configuration.expected {
            deliver { $0.notReached(wanted, CourierEnd(end, closedByPeer: false), $1) }
        }
        guard let peer = session.peer, let link = links[peer], let index = link.sessions.firstIndex(where: { $0 === session }) else {
            return
        }
        logger.log(
            level: logLevel(of: session.connection.peerFingerprint), "session ended",
            metadata: ["peer.id": "\(peer)", "reason": "\(end.text)"])
        conflicts.sessionEnded(with: peer, end, self)
        if let greetedAt = session.greeting?.at { alerts.sessionEnded(of: peer, greetedAt: greetedAt, now: clocks.now) }
        if let info = session.info { finder.apply(.sessionDown(info, SessionEnd(end)), self) }
        if !finder.directory.contains(peer) {
            registry.forgetKey(of: peer)
            alerts.forget(peer)
            refusedPeersNotifier.peerLeft(peer, self)
        }
        links[peer]?.sessions.remove(at: index)
        let others = links[peer]?.sessions ?? []
        if others.isEmpty {
            links[peer]?.hasRecordedAlert = false
            transfers.peerWent(peer)
            lists.ended(peer, self)
            routes.sender.peerWent(peer, self)
            registry.rememberSeen(peer, self)
        }
        duplicates.challengeAgain(others.filter { !$0.machine.isClosed })
        pairingDriver.sessionEnded(session, peer, self)
        deliver { $0.ended(session, to: peer, CourierEnd(end, closedByPeer: closedByPeer), $1) }
    }

    // MARK: Deliveries

    /// Calls the delivery scheduler, which belongs to the outbox on the same event loop.
    func deliver<Value: Sendable>(_ body: @Sendable (DeliveryScheduler, isolated Outbox) -> Value) -> Value {
        outbox.assumeIsolated { body($0.deliveries, $0) }
    }

    /// Wakes the callers that wait for outbox rows, so that they check again whether to continue waiting.
    func wakeWaiters() { deliver { $0.wakeWaiters($1) } }

    func deliveryEnded(with peer: PeerID) { if links[peer]?.sessions.isEmpty ?? false { links[peer] = nil } }

    /// Continues sending on a session whose connection is writable again.
    func writabilityChanged(on session: PeerSession) {
        guard let peer = session.peer else { return }
        deliver { $0.pump(session, to: peer, $1) }
    }

    func settled(_ rows: [RowResult], on session: PeerSession) {
        guard let peer = session.peer else { return }
        deliver { $0.settled(rows, by: session, to: peer, $1) }
    }
}
