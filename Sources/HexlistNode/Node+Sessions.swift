import HexlistDiscovery
import HexlistModel
import HexlistStore
import HexlistTransport
import HexlistWire
import Logging
import NIOCore

/// Sessions as they come, are found to be duplicates, and go.
extension Node {
    func accepted(_ connection: PeerConnection) {
        guard !isStopping else { return connection.abort() }
        begin(connection, nil)
    }

    @discardableResult
    func begin(_ connection: PeerConnection, _ dialled: Dialled?) -> PeerSession {
        let peer = connection.peerFingerprint?.peerID
        let isTrusted = peer.map { trust(of: $0, fingerprint: connection.peerFingerprint) == .trusted } ?? false
        let machine = Session(
            Session.Configuration(
                own: id, role: connection.role == .dialer ? .dialer : .acceptor,
                security: connection.peerFingerprint.map { .tls($0) } ?? .plain, expected: dialled?.expected,
                hello: hello(trusted: isTrusted), strangerFrameBytes: configuration.limits.strangerFrameBytes,
                isTrusted: isTrusted, strangerFramesPerSecond: configuration.limits.strangerFramesPerSecond,
                connectedAt: connection.openedAt),
            now: .now)
        let session = PeerSession(connection: connection, machine: machine, dialled: dialled, node: self)
        sessions[ObjectIdentifier(session)] = session
        if dialled == nil, isUninvited(session) {
            session.refuse()
        } else {
            session.start()
        }
        if !isTrusted { admitted(session) }
        return session
    }

    /// Sessions of strangers that came in; also those that have ended and whose connection is still there.
    private var strangers: [PeerSession] { sessions.values.filter { !$0.machine.isTrusted && $0.connection.role == .acceptor } }

    /// One more stranger's session is there; its frames are not delivered before this.
    private func admitted(_ session: PeerSession) {
        let limit = configuration.limits.strangerSessions
        let oldestFirst = strangers.sorted { $0.connection.id < $1.connection.id }
        // Whom a person pairs with gives way to nobody.
        let staying = oldestFirst.filter { !$0.machine.isClosed && !($0.peer.map(pairing.concerns) ?? false) }
        if let surplus = StrangerSessions.surplus(staying.map(\.connection.remoteNetwork), limit: limit) {
            staying[surplus].act { $0.end(.idle, text: "Others need the place.", &$1) }
        }
        // Those that have ended and do not hang up are no more.
        let leaving = oldestFirst.filter(\.machine.isClosed)
        if leaving.count > limit { leaving.first?.connection.abort() }
        shareAmongStrangers()
        session.machine.setStrangerRate(strangerRate, now: .now)
    }

    /// After their number, or what they get together, changed.
    func shareAmongStrangers() {
        let limits = configuration.limits
        let rate = StrangerSessions.rate(
            each: limits.strangerFramesPerSecond, together: limits.allStrangersFramesPerSecond,
            sessions: strangers.count { !$0.machine.isClosed })
        guard rate != strangerRate else { return }
        strangerRate = rate
        for session in sessions.values { session.machine.setStrangerRate(rate, now: .now) }
    }

    func hello(trusted: Bool) -> Hello {
        Hello(
            uuid: id, name: PeerName.cut(configuration.name, bytes: ProtocolLimits.nameBytes), boot: boot, features: [DialBack.feature],
            maxFrameBytes: trusted
                ? max(configuration.limits.frameBytes, ProtocolLimits.trustedFrameBytes) : configuration.limits.strangerFrameBytes,
            window: ProtocolLimits.windowFrames)
    }

    /// Trust binds to the whole fingerprint: a key that only shares the UUID is a stranger.
    func trust(of peer: PeerID, fingerprint: Fingerprint?) -> Trust {
        guard let record = known[peer] else { return .stranger }
        if let kept = record.fingerprint, let fingerprint, kept != fingerprint { return .stranger }
        return record.trust
    }

    func link(to peer: PeerID) -> PeerLink {
        if let link = links[peer] { return link }
        let link = PeerLink(peer: peer)
        links[peer] = link
        return link
    }

    // MARK: Hiding

    /// Whether this machine hides and no person here asked for a session with this peer: neither trusted, nor somebody to pair with.
    /// One that this side dialled for a person (`doctor`, `pair`, a hex that waits) is asked for.
    private func isUninvited(_ session: PeerSession) -> Bool {
        guard !configuration.announce else { return false }
        let key = session.connection.peerFingerprint
        if let key, trust(of: key.peerID, fingerprint: key) == .trusted || pairing.invites(key.peerID, now: .now) { return false }
        return session.dialled.map { $0.probe != nil } ?? true
    }

    /// A stranger's session that nobody asks for ends (`announce: false`): after its Hello, after a pairing, or at once where this machine
    /// begins to hide.
    func endUninvited() {
        guard !configuration.announce else { return }
        // What was dialled shows with its Hello who it is.
        for session in sessions.values where session.dialled == nil || session.machine.isOpen {
            guard !session.machine.isClosed, isUninvited(session) else { continue }
            session.act { $0.end(.idle, text: Node.hidingText, &$1) }
        }
    }

    /// Follows the code of a Bye.
    static let hidingText = "Only peers that are trusted here are talked to."

    // MARK: Opened

    func sessionOpened(_ session: PeerSession, hello: Hello, version: String) {
        guard let fingerprint = session.connection.peerFingerprint, let peer = session.peer, let peerBoot = hello.boot else {
            return  // plain TCP: its UUID is a claim and proves nothing
        }
        guard trust(of: peer, fingerprint: fingerprint) != .blocked else { return endBlocked(session) }
        proved(peer, fingerprint)
        let link = link(to: peer)
        let older = link.sessions
        link.sessions.append(session)
        logger.log(
            level: sessionLogLevel(peer, fingerprint), "session open",
            metadata: [
                "peer.id": "\(peer)", "role": "\(session.connection.role)", "address": "\(session.connection.remoteAddress)",
            ])
        remember(peer, fingerprint: fingerprint, hello: hello, version: version, session: session)
        // Where the peer dialled from says nothing of where it can be dialled; it is shown.
        let info = SessionInfo(
            peer: peer, boot: peerBoot, name: hello.name, version: version, endpoint: session.dialled?.endpoint ?? session.source,
            address: session.addressBehindName)
        session.info = info
        apply(.sessionUp(info))
        if let dialled = session.dialled, let probe = dialled.probe { endProbe(probe, .proved(peer, peerBoot, dialled.endpoint)) }

        session.checks.opened.take()?(true)
        guard !isUninvited(session) else { return session.act { $0.end(.idle, text: Node.hidingText, &$1) } }
        guard !directory.isInConflict(peer) else {
            session.act { $0.end(.conflict, &$1) }
            return
        }
        if conflictWitnesses.contains(peer) { awaitWitness(session, peer) }
        // The newer one is used at once; each older one has to show that it still lives.
        link.delivery.greeted(boot: peerBoot, frameLimit: hello.maxFrameBytes, now: .now)
        link.delivery.connected(frameLimit: hello.maxFrameBytes)
        endSurplus(of: fingerprint, newest: session)
        for other in older where !other.machine.isClosed { challenge(other, against: session) }
        pump(link)
        pairingSessionsChanged(of: peer)
        if takeInvitation(peer) { tellHello(session, always: true) }
    }

    /// Strangers do not fill the log.
    private func sessionLogLevel(_ peer: PeerID, _ fingerprint: Fingerprint?) -> Logger.Level {
        trust(of: peer, fingerprint: fingerprint) == .trusted ? .info : .debug
    }

    private func proved(_ peer: PeerID, _ fingerprint: Fingerprint) {
        if fingerprints.count >= 2 * 8_192 {
            let seen = Set(directory.listing().compactMap(\.peer))
            fingerprints = fingerprints.filter { seen.contains($0.key) }
        }
        fingerprints[peer] = fingerprint
    }

    func sessionUpdated(_ session: PeerSession, hello: Hello) {
        guard let peer = session.peer, let link = links[peer] else { return }
        let now = ContinuousClock.Instant.now
        // Where both sides dialled at the same moment, it is said on one of two sessions.
        link.delivery.greetedAgain(frameLimit: link.sending === session ? hello.maxFrameBytes : nil, now: now)
        if let until = link.delivery.pausedUntil, until > now { resume(link, at: until) }
        pump(link)
        let before = directory.provenName(of: peer)
        apply(.renamed(peer, name: hello.name))
        guard directory.provenName(of: peer).map({ !$0.utf8.elementsEqual((before ?? "").utf8) }) ?? false else { return }
        rememberName(session)
        notifyWatchers()
    }

    /// A sender of the original app, or a foreign program: its frames count, nothing else of it does.
    func legacySender(_ session: PeerSession) {
        session.connection.markIdentified()
        guard let fingerprint = session.connection.peerFingerprint else { return }
        guard trust(of: fingerprint.peerID, fingerprint: fingerprint) != .blocked else { return endBlocked(session) }
        endSurplus(of: fingerprint, newest: session)
    }

    func endBlocked(_ session: PeerSession) {
        session.act { [name = configuration.name] machine, actions in machine.endBlocked(ownName: name, now: .now, &actions) }
    }

    /// Sessions of a key, with and without Hello, oldest first.
    func sessions(of key: Fingerprint) -> [PeerSession] {
        sessions.values.filter { $0.connection.peerFingerprint == key && !$0.machine.isClosed }.sorted {
            $0.connection.id < $1.connection.id
        }
    }

    /// One more session of a key said Hello, or showed that it says none. Those that the peer dialled and those that were dialled here
    /// are counted apart: where both dial at the same moment, each side would end others.
    private func endSurplus(of key: Fingerprint, newest: PeerSession) {
        let older = sessions(of: key).filter {
            $0 !== newest && $0.machine.hasBegun && $0.connection.role == newest.connection.role
        }
        let asked = Set(challenges.values.map { ObjectIdentifier($0.older) })
        let surplus = DuplicateSessions.surplus(
            older.map {
                DuplicateSessions.Older(
                    isAnswered: $0.machine.isOpen && !asked.contains(ObjectIdentifier($0)),
                    isPairing: pairing.hasExchange(on: ObjectIdentifier($0)))
            })
        for index in surplus { older[index].act { $0.end(.limit, &$1) } }
    }

    func alertReceived(_ message: String, _ session: PeerSession) {
        guard let peer = session.peer, let link = links[peer] else { return }
        let isTrusted = trust(of: peer, fingerprint: session.connection.peerFingerprint) == .trusted
        guard isTrusted || !link.alertRecorded else { return }
        link.alertRecorded = true
        events.record(
            .alertReceived, peer: peer,
            data: [
                "message": PeerName.cut(message, bytes: isTrusted ? Node.alertBytes : Node.strangerAlertBytes),
                "trusted": isTrusted ? "true" : "false",
            ], from: isTrusted ? .alerts(of: peer) : .strangers, self)
    }

    /// Bytes of an alert that are recorded: of a stranger's a line.
    static let alertBytes = ProtocolLimits.messageBytes
    static let strangerAlertBytes = 160

    /// Tells the peer the room and the name it now has here.
    /// - Parameter always: also where it has heard both.
    func tellHello(_ session: PeerSession, always: Bool = false) {
        guard let peer = session.peer, session.connection.isTLS else { return }
        let isTrusted = trust(of: peer, fingerprint: session.connection.peerFingerprint) == .trusted
        let hello = hello(trusted: isTrusted)
        session.act { machine, actions in
            machine.setTrusted(isTrusted)
            machine.sayHelloAgain(name: hello.name, maxFrameBytes: hello.maxFrameBytes, always: always, &actions)
        }
        session.machine.setStrangerRate(strangerRate, now: .now)
        shareAmongStrangers()
    }

    // MARK: Time

    /// Calls the session at that whole second, together with the others.
    func shareTick(_ session: PeerSession, at second: ContinuousClock.Instant) {
        sharedTicks.add(ObjectIdentifier(session), at: second)
        scheduleSharedTicks()
    }

    private func scheduleSharedTicks() {
        sharedTickTimer.set(sharedTicks.next, self) { node in
            for (session, second) in node.sharedTicks.take(now: .now) { node.sessions[session]?.sharedTick(at: second) }
            node.scheduleSharedTicks()
        }
    }

    // MARK: Duplicates

    private func challenge(_ older: PeerSession, against newer: PeerSession) {
        // A session is asked one thing at a time: what it was asked before has no answer any more.
        for (message, pair) in challenges where pair.older === older { challenges[message] = nil }
        let message = "still-there-\(String(UInt64.random(in: .min ... .max), radix: 16))"
        challenges[message] = (newer, older)
        older.act { $0.challenge(message, now: .now, &$1) }
    }

    func challengeEnded(_ session: PeerSession, message: String, answered: Bool) {
        if session.checks.ping?.message == message { return session.checks.ping.take()?.done(answered) ?? () }
        guard let (newer, older) = challenges.removeValue(forKey: message), older === session else { return }
        guard answered else {
            older.act { $0.end(.silent, &$1) }
            return
        }
        guard newer.connection.isOpen, let oldBoot = older.machine.peerHello?.boot, let newBoot = newer.machine.peerHello?.boot else {
            return
        }
        guard oldBoot == newBoot else {
            if let peer = newer.peer { apply(.identityConflict(peer, oldBoot, newBoot)) }
            newer.act { $0.end(.conflict, &$1) }
            older.act { $0.end(.conflict, &$1) }
            return
        }
        switch DuplicateSessions.verdict(
            own: id, peer: newer.peer ?? id, olderDialledHere: older.connection.role == .dialer,
            newerDialledHere: newer.connection.role == .dialer)
        {
        case .endOlder: endDuplicate(older)
        case .endNewer: endDuplicate(newer)
        case .leaveToPeer: break
        }
    }

    /// One of three sessions is gone, and with it the question which of the other two is too many.
    private func challengeAgain(_ link: PeerLink) {
        guard let newest = link.sessions.last else { return }
        for older in link.sessions.dropLast() where !challenges.values.contains(where: { $0.older === older }) {
            challenge(older, against: newest)
        }
    }

    private func endDuplicate(_ session: PeerSession) {
        // Not between the answers of two people: one of them would have agreed and the other not.
        guard !pairing.hasExchange(on: ObjectIdentifier(session)) else {
            endsAfterPairing = session
            return
        }
        session.act { $0.end(.duplicateSession, &$1) }
    }

    // MARK: Ended

    func sessionEnded(_ session: PeerSession, end: Session.End, closedByPeer: Bool) {
        sessions.removeValue(forKey: ObjectIdentifier(session))
        shareAmongStrangers()
        lookWhetherDrained()
        for (message, pair) in challenges where pair.older === session || pair.newer === session { challenges[message] = nil }
        if let dialled = session.dialled, let probe = dialled.probe { endProbe(probe, probeResult(session, dialled, end: end)) }
        if case .own(.conflict) = end, session.peer == nil, let boot = session.machine.refusedBoot {
            apply(.ownIdentityElsewhere(boot))
        }
        if session.peer == nil, let wanted = session.machine.configuration.expected, let link = links[wanted],
            link.sending == nil, mayHaveRows(link)
        {
            transferFailed(link, end: end, closedByPeer: false)
        }
        guard let peer = session.peer, let link = links[peer], let index = link.sessions.firstIndex(where: { $0 === session }) else {
            return
        }
        logger.log(
            level: sessionLogLevel(peer, session.connection.peerFingerprint), "session ended",
            metadata: ["peer.id": "\(peer)", "reason": "\(Node.describe(end))"])
        conflictTold(by: peer, end)
        if let info = session.info { apply(.sessionDown(info, Node.sessionEnd(end))) }
        if !directory.holds(peer) {
            fingerprints[peer] = nil
            invitations.remove(peer)
        }
        let wasSending = link.sending === session
        link.sessions.remove(at: index)
        if link.sessions.isEmpty { rememberSeen(peer) }
        challengeAgain(link)
        pairingSessionEnded(session, peer)
        guard wasSending else { return }

        let hadWork = link.delivery.inFlight > 0
        if case .peer(.blocked, _) = end { rejectAll(for: peer) }
        if let next = link.sending, let hello = next.machine.peerHello {
            link.delivery.connected(frameLimit: hello.maxFrameBytes, inFlight: next.machine.unacknowledgedTags.count)
            pump(link)
            return
        }
        let hasRows = mayHaveRows(link)
        link.delivery.disconnected()
        giveTurnBack(link)
        if hadWork {
            transferFailed(link, end: end, closedByPeer: closedByPeer, blamed: session.machine.unacknowledgedTags.min())
        } else if hasRows, !link.delivery.isPaused(now: .now) {
            resume(link, at: .now + .seconds(1))
        }
        link.alertRecorded = false
        wakeWaiters()
        link.endedWithRows = hasRows
        forgetIfQuiet(link)
    }

    /// A link with no session, nothing to send and nothing under way is nothing to remember.
    func forgetIfQuiet(_ link: PeerLink) {
        guard link.sessions.isEmpty, !link.endedWithRows, !link.delivery.knowsOfRows, link.delivery.isQuiet, !link.isDialling,
            !link.delivery.isPaused(now: .now)
        else { return }
        link.resumption?.cancel()
        links[link.peer] = nil
    }

    /// Whether rows wait for the peer, as far as is known.
    private func mayHaveRows(_ link: PeerLink) -> Bool {
        link.delivery.hasWork && (link.delivery.knowsOfRows || known[link.peer]?.queued ?? 0 > 0)
    }

    static func sessionEnd(_ end: Session.End) -> SessionEnd {
        switch end {
        case .peer(.shutdown, _): .shutdown
        case .peer(.idle, _), .own(.idle): .idle
        case .lost, .own(.silent), .own(.receiptTimeout): .lost
        case .peer, .own: .other
        }
    }

    private func probeResult(_ session: PeerSession, _ dialled: Dialled, end: Session.End) -> ProbeResult {
        let proven = session.connection.peerFingerprint?.peerID
        switch end {
        case .own(.`self`): return .ownIdentity(sameBoot: true, dialled.endpoint)
        case .own(.conflict): return .ownIdentity(sameBoot: false, dialled.endpoint)
        // Only who proved the own key may say that it is one's own.
        case .peer(.`self`, _) where proven == id: return .ownIdentity(sameBoot: true, dialled.endpoint)
        case .peer(.conflict, _) where proven == id: return .ownIdentity(sameBoot: false, dialled.endpoint)
        case .own(.identityMismatch):
            guard let proven, proven != dialled.expected else { return .failed("does not say who it is") }
            return .otherIdentity(proven, dialled.endpoint)
        case .own(let code): return .failed("does not greet as a peer does (\(code.rawValue))")
        case .peer(let code, _): return .failed("ends the session (\(code?.rawValue ?? "for a reason unknown here"))")
        case .lost: return .failed("closes the connection")
        }
    }
}
