import HexlistDiscovery
import HexlistEventLoop
public import HexlistModel
import HexlistSession
import HexlistStore
import HexlistTransport
import HexlistWire
import NIOCore

// Facts and tests for `hexlist doctor`, with this node's identity.
extension Node {
    /// The time to wait for the answer to a Ping, whose challenge takes 5 s of reading.
    private static let pingPatience = TimeAmount.seconds(8)
    /// The most sessions asked one after another, each of which ended for the next or was compared with it.
    private static let meetings = 3
    /// Sessions are compared within 5 s, and one that is silent is closed 2 s later.
    private static let (comparisons, comparisonPause): (Int, Duration) = (25, .milliseconds(300))
    /// The bytes of a frame besides its message.
    private static let pingOverhead = 256

    public func facts() -> NodeFacts {
        let live = links.compactMap { peer, link in link.sending.map { (peer, $0) } }
        let named = live.map { peer, session in
            (peer: peer, name: label(of: peer)?.text() ?? peer.shortID, session: session)
        }
        .sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
        return NodeFacts(
            status: status(), listen: configuration.listen, diskReserveBytes: configuration.limits.diskReserveBytes,
            isIdentityElsewhere: finder.directory.isInConflict(id), announcements: finder.directory.ownAnnouncements,
            staticPeers: finder.directory.configuredAddresses,
            dialledIn: named.filter { $0.session.connection.role == .acceptor && !isOwn($0.session) }
                .map { ($0.peer, $0.name, $0.session.connection.remoteAddress, clocks.now - $0.session.connection.openedAt) }
                .sorted { $0.age < $1.age },
            mayDialBack: named.filter { entry in
                known.trust(of: entry.session.connection.peerFingerprint) == .trusted && !isOwn(entry.session)
                    && entry.session.machine.peerHello?.answersDialBack == true
            }.map { ($0.peer, $0.name, $0.session.connection.localAddress) })
    }

    /// A daemon on the same machine says nothing of what is in front of it.
    private func isOwn(_ session: PeerSession) -> Bool { session.connection.remoteAddress == session.connection.localAddress }

    public func sessionFacts(of peer: PeerID) -> SessionFacts? { links[peer]?.sending.flatMap { sessionFacts(of: $0) } }

    private func sessionFacts(of session: PeerSession) -> SessionFacts? {
        guard let hello = session.machine.peerHello, let boot = hello.boot else { return nil }
        return SessionFacts(
            address: session.connection.remoteAddress, isDialledHere: session.connection.role == .dialer, boot: boot,
            version: session.info?.version ?? "", maxFrameBytes: hello.maxFrameBytes, dialsBack: hello.answersDialBack)
    }

    // MARK: Reaching

    /// - Returns: numeric addresses, or why there are none.
    public func addresses(of name: String) async -> Result<[String], ReachFailure> {
        guard let result = try? await transport.addresses(of: name).get() else { return .success([]) }
        return result.mapError { ReachFailure($0) }
    }

    /// TCP, then TLS up to the identity, and no further.
    /// - Parameters:
    ///   - host: numeric.
    ///   - peer: `nil` takes whoever proves itself.
    public func reach(_ host: String, port: Int, interface: String?, expecting peer: PeerID?) async -> AddressProbeResult {
        let target = DialTarget(host: host, port: UInt16(clamping: port), interface: interface)
        let failed = Result<Duration, DialError>.failure(.failed("it could not be tried"))
        let tcp = (try? await transport.connectTime(target).get()) ?? failed
        var facts = AddressProbeResult(host: host, port: port, tcp: tcp.mapError { ReachFailure($0) }, tls: nil)
        guard case .success = tcp else { return facts }
        let begun = clocks.now
        guard let report = try? await transport.dial([target], expecting: peer).report.get() else { return facts }
        if let connection = report.connection {
            facts.peer = connection.peerFingerprint?.peerID
            connection.abort()
            facts.tls = .success(clocks.now - begun)
        } else {
            facts.tls = .failure(ReachFailure(report.summary ?? .closed))
        }
        return facts
    }

    /// Makes a session with the peer, where there is none, and meets it there.
    /// - Returns: what was found out; otherwise why there is no session.
    public func greet(_ peer: PeerID, at host: String, port: Int, interface: String?) async -> Result<SessionDiagnostics, ReachFailure> {
        if let meeting = await meet(peer) { return .success(meeting) }
        let endpoint =
            finder.directory.endpoints(of: peer).first { $0.host == host && Int($0.port) == port }
            ?? Endpoint(host: host, port: UInt16(clamping: port), interface: interface, via: .lastKnown)
        guard let report = try? await transport.dial([DialTarget(endpoint)], expecting: peer).report.get(), !isStopping else {
            return .failure(ReachFailure(.cancelled))
        }
        guard let connection = report.connection else { return .failure(ReachFailure(report.summary ?? .closed)) }
        let session = begin(connection, Dialled(endpoint: endpoint, probe: nil, expected: peer))
        _ = await eventLoop.within(.seconds(7), otherwise: false) { session.checks.opened = $0 }
        if let meeting = await meet(peer) { return .success(meeting) }
        return .failure(
            ReachFailure(text: session.end?.text ?? "No Hello came.", isBlocked: session.end?.isBlockedThere ?? false))
    }

    // MARK: On a session

    /// The facts of the peer's session and a short and a long Ping, all of one session: one that ends meanwhile says why, unless there is
    /// another by then, which is asked instead.
    /// - Returns: `nil` where there is no session.
    public func meet(_ peer: PeerID) async -> SessionDiagnostics? {
        var meeting: SessionDiagnostics?
        for _ in 0..<Node.meetings {
            await untilCompared(peer)
            guard let session = links[peer]?.sending, let facts = sessionFacts(of: session) else { return nil }
            let ping = await ping(session)
            meeting = SessionDiagnostics(session: facts, ping: ping)
            let isReplaced = !session.connection.isOpen && links[peer]?.sending.map { $0 !== session } == true
            guard isReplaced || ping == .notNow else { break }
        }
        return meeting
    }

    /// Waits while sessions of the peer are compared, or one is asked something: each may be about to end, and what it is asked stays
    /// without an answer then. Several may stay, as while two machines pair.
    func untilCompared(_ peer: PeerID) async {
        for _ in 0..<Node.comparisons {
            let open = links[peer]?.sessions.filter { !$0.machine.isClosed } ?? []
            guard open.count > 1 || open.first?.machine.isChallenging == true else { return }
            try? await Task.sleep(for: Node.comparisonPause)
        }
    }

    /// A short Ping, and one about as long as the longest frame both sides take: a path that loses large packets swallows that. A session
    /// on which one is not answered is ended, for it carries no hexes either. The way back is for the other side's doctor: a Pong repeats
    /// short tokens only.
    private func ping(_ session: PeerSession) async -> PingOutcome {
        let short = await ping(session, padding: 0)
        guard case .answered = short else { return short }
        let limit = min(
            session.machine.peerHello?.maxFrameBytes ?? 0, session.machine.ownHello.maxFrameBytes, ProtocolLimits.stringBytes)
        return await ping(session, padding: max(0, limit - Node.pingOverhead))
    }

    private func ping(_ session: PeerSession, padding bytes: Int) async -> PingOutcome {
        // A comparison that began meanwhile would lose its question to this one.
        guard !session.machine.isChallenging else { return .notNow }
        let token = "doctor-\(BootNonce.random)"
        let begun = clocks.now
        let end = await eventLoop.within(Node.pingPatience, otherwise: SessionChecks.PingEnd.unanswered) { done in
            session.checks.ping = (token, done)
            session.act { $0.challenge(token, padding: bytes, now: clocks.now, &$1) }
        }
        if session.checks.ping?.message == token { session.checks.ping = nil }
        switch end {
        case .answered: return .answered(bytes: bytes, after: clocks.now - begun)
        case .displaced: return .notNow
        case .unanswered: break
        }
        if let end = session.end { return .ended(end.text, isBlocked: end.isBlockedThere) }
        if session.connection.isOpen { session.act { $0.end(.silent, &$1) } }
        return .unanswered(bytes: bytes)
    }
}

extension ReachFailure {
    init(_ error: DialError) {
        switch error {
        case .refused: self.init(text: "the connection is refused", isRefused: true)
        case .otherIdentity(let other): self.init(text: "another peer answers there: \(other)", isOther: true)
        case .notHexlist: self.init(text: "what answers there is no Hexlist peer", isOther: true)
        case .timeout: self.init(text: "nothing answers within 3 s")
        case .closed, .unreachable, .nameNotFound, .cancelled, .failed: self.init(text: error.description)
        }
    }
}

extension Session.End {
    fileprivate var isBlockedThere: Bool { if case .peer(.blocked?, _) = self { true } else { false } }
}
