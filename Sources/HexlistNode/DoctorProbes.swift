import HexlistDiscovery
import HexlistEventLoop
public import HexlistModel
import HexlistSession
import HexlistStore
import HexlistTransport
import HexlistWire
public import NIOCore

/// Facts and tests for `hexlist doctor`. The tests dial with the identity of the node.
public struct DoctorProbes: Sendable {
    /// Timeout of a Ping. It exceeds the session's own timeout for the Pong: 5 s, excluding the time in which reading is paused.
    private static let pingTimeout = TimeAmount.seconds(8)
    /// Maximum number of sessions that a test tries. It tries another one if a session is replaced, or compared with a duplicate, during
    /// the test.
    private static let sessionAttempts = 3
    /// The number of checks whether duplicate sessions are still being compared, and the pause between two checks: 7.5 s in total. A
    /// comparison takes up to 5 s, and a session that does not answer is closed 2 s later.
    private static let (comparisonChecks, comparisonInterval): (Int, Duration) = (25, .milliseconds(300))
    /// Bytes of a Ping frame that are reserved for everything besides its padding.
    private static let pingOverhead = 256

    let node: Node

    public func facts() async -> NetworkFacts {
        await node.perform { node in
            let live = node.links.compactMap { peer, link in
                link.sending.map { (peer: peer, name: node.peerList.text(of: peer), session: $0) }
            }
            .sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
            // A session with another daemon on this machine says nothing about the network.
            let remote = live.filter { $0.session.connection.remoteAddress != $0.session.connection.localAddress }
            return NetworkFacts(
                status: node.status(), listen: node.configuration.listen, diskReserveBytes: node.configuration.limits.diskReserveBytes,
                isIdentityElsewhere: node.finder.directory.isInConflict(node.id), announcements: node.finder.directory.ownAnnouncements,
                staticPeers: node.finder.directory.configuredAddresses,
                dialledIn: remote.filter { $0.session.connection.role == .acceptor }
                    .map { ($0.peer, $0.name, $0.session.connection.remoteAddress, node.clocks.now - $0.session.connection.openedAt) }
                    .sorted { $0.age < $1.age },
                mayDialBack: remote.filter { entry in
                    node.registry.trust(of: entry.session.connection.peerFingerprint) == .trusted
                        && entry.session.machine.peerHello?.answersDialBack == true
                }.map { ($0.peer, $0.name, $0.session.connection.localAddress) })
        }
    }

    /// The facts of the session that is used with a peer; `nil` if there is none.
    public func session(with peer: PeerID) async -> SessionFacts? {
        await node.perform { $0.links[peer]?.sending.flatMap { SessionFacts($0) } }
    }

    // MARK: Addresses

    /// Resolves a host name.
    /// - Returns: numeric addresses, or the reason why there are none.
    public func addresses(of name: String) async -> Result<[String], ReachFailure> {
        await node.perform { node in
            guard let result = try? await node.transport.addresses(of: name).get() else { return .success([]) }
            return result.mapError { ReachFailure($0) }
        }
    }

    /// Dials an address with TCP, then with TLS until the peer has proved its key.
    /// - Parameters:
    ///   - host: a numeric IP address.
    ///   - peer: the expected peer; `nil` for any.
    public func probe(_ host: String, port: Int, interface: String?, expecting peer: PeerID?) async -> AddressProbeResult {
        await node.perform { node in
            let target = DialTarget(host: host, port: UInt16(clamping: port), interface: interface)
            let failed = Result<Duration, DialError>.failure(.failed("it could not be tested"))
            let tcp = (try? await node.transport.connectTime(target).get()) ?? failed
            var result = AddressProbeResult(host: host, port: port, tcp: tcp.mapError { ReachFailure($0) }, tls: nil)
            guard case .success = tcp else { return result }
            let begun = node.clocks.now
            guard let report = try? await node.transport.dial([target], expecting: peer).report.get() else { return result }
            if let connection = report.connection {
                result.peer = connection.peerFingerprint?.peerID
                connection.abort()
                result.tls = .success(node.clocks.now - begun)
            } else {
                result.tls = .failure(ReachFailure(report.summary ?? .closed))
            }
            return result
        }
    }

    // MARK: Sessions

    /// Dials a peer unless there is a session with it, and tests the session.
    public func openSession(
        with peer: PeerID, at host: String, port: Int, interface: String?
    ) async -> Result<SessionDiagnostics, ReachFailure> {
        await node.perform { node in
            if let result = await testSession(with: peer, node) { return .success(result) }
            let endpoint =
                node.finder.directory.endpoints(of: peer).first { $0.host == host && Int($0.port) == port }
                ?? Endpoint(host: host, port: UInt16(clamping: port), interface: interface, via: .lastKnown)
            guard let report = try? await node.transport.dial([DialTarget(endpoint)], expecting: peer).report.get(), !node.isStopping else {
                return .failure(ReachFailure(.cancelled))
            }
            guard let connection = report.connection else { return .failure(ReachFailure(report.summary ?? .closed)) }
            let session = node.begin(connection, SessionDial(endpoint: endpoint, probe: nil, expected: peer))
            _ = await node.eventLoop.within(.seconds(7), otherwise: false) { session.checks.opened = $0 }
            if let result = await testSession(with: peer, node) { return .success(result) }
            return .failure(
                ReachFailure(text: session.end?.text ?? "No Hello came.", isBlocked: session.end?.isBlockedThere ?? false))
        }
    }

    /// Tests the session with a peer by a short and a long Ping. If another session replaces it during the test, that session is tested
    /// instead. If it ends and no other session exists, the result has the reason.
    /// - Returns: `nil` if there is no session.
    public func testSession(with peer: PeerID) async -> SessionDiagnostics? { await testSession(with: peer, node) }

    private func testSession(with peer: PeerID, _ node: isolated Node) async -> SessionDiagnostics? {
        var result: SessionDiagnostics?
        for _ in 0..<Self.sessionAttempts {
            await waitUntilCompared(peer, node)
            guard let session = node.links[peer]?.sending, let facts = SessionFacts(session) else { return nil }
            let ping = await ping(session, node)
            result = SessionDiagnostics(session: facts, ping: ping)
            let isReplaced = !session.connection.isOpen && node.links[peer]?.sending.map { $0 !== session } == true
            guard isReplaced || ping == .notNow else { break }
        }
        return result
    }

    /// Waits while several sessions with the peer are open or one is being challenged, because a session may then end before it answers a
    /// request. The wait is bounded (`comparisonChecks`), because several sessions can persist, for example while two machines pair.
    private func waitUntilCompared(_ peer: PeerID, _ node: isolated Node) async {
        for _ in 0..<Self.comparisonChecks {
            let open = node.links[peer]?.sessions.filter { !$0.machine.isClosed } ?? []
            guard open.count > 1 || open.first?.machine.isChallenging == true else { return }
            try? await Task.sleep(for: Self.comparisonInterval)
        }
    }

    /// Sends a short Ping, then one about as long as the longest frame that both peers accept, to detect a path that loses large packets. A
    /// session that does not answer is ended, because it would transport no hexes either. The opposite direction is not tested: a Pong
    /// repeats only short tokens.
    private func ping(_ session: PeerSession, _ node: isolated Node) async -> PingOutcome {
        let short = await ping(session, padding: 0, node)
        guard case .answered = short else { return short }
        let limit = min(
            session.machine.peerHello?.maxFrameBytes ?? 0, session.machine.ownHello.maxFrameBytes, ProtocolLimits.stringBytes)
        return await ping(session, padding: max(0, limit - Self.pingOverhead), node)
    }

    private func ping(_ session: PeerSession, padding bytes: Int, _ node: isolated Node) async -> PingOutcome {
        // This Ping would replace a challenge that is in flight on the session.
        guard !session.machine.isChallenging else { return .notNow }
        let token = "doctor-\(BootNonce.random)"
        let begun = node.clocks.now
        let end = await node.eventLoop.within(Self.pingTimeout, otherwise: PendingDiagnostics.PingResult.unanswered) { done in
            session.checks.ping = (token, done)
            session.act { $0.challenge(token, padding: bytes, now: node.clocks.now, &$1) }
        }
        if session.checks.ping?.message == token { session.checks.ping = nil }
        switch end {
        case .answered: return .answered(bytes: bytes, after: node.clocks.now - begun)
        case .displaced: return .notNow
        case .unanswered: break
        }
        if let end = session.end { return .ended(end.text, isBlocked: end.isBlockedThere) }
        if session.connection.isOpen { session.act { $0.end(.silent, &$1) } }
        return .unanswered(bytes: bytes)
    }

    // MARK: Dial-back

    /// Asks a peer to dial this machine's port (Docs/Protocol.md, "Dialling back"). A recent answer is reused while it still applies.
    ///
    /// If the session ends before the answer arrives and another session with the peer is open, the request is sent again on that session.
    /// - Parameters:
    ///   - waits: whether to wait until another request to the peer is permitted, and until the comparison of sessions with it has ended.
    ///   - timeout: the time to wait for the answer on one session. The peer's dial takes up to 3 s.
    public func requestDialBack(from peer: PeerID, waits: Bool = true, timeout: TimeAmount = .seconds(8)) async -> DialBackOutcome {
        await node.perform { node in
            for _ in 0..<Self.sessionAttempts {
                if waits { await waitUntilCompared(peer, node) }
                // A peer ignores dial-back requests that come too soon.
                if let last = node.links[peer]?.lastDialBackRequest {
                    let next = last + node.dialBacks.pause * 1.25
                    if next > node.clocks.now, let answer = node.links[peer]?.dialBackAnswer, isCurrent(answer, of: peer, node) {
                        return .result(answer)
                    }
                    guard waits || next <= node.clocks.now else { return .cannotAsk }
                    try? await Task.sleep(until: next, clock: .continuous)
                }
                guard let session = node.links[peer]?.sending, session.checks.dialBack == nil, let port = UInt16(exactly: node.port),
                    session.machine.peerHello?.answersDialBack == true
                else { return .cannotAsk }
                let result = await requestDialBack(on: session, of: peer, to: port, timeout: timeout, node)
                if let result { return .result(result) }
                guard waits, session.machine.isClosed, node.links[peer]?.sending != nil else { break }
            }
            return .noReply
        }
    }

    private func requestDialBack(
        on session: PeerSession, of peer: PeerID, to port: UInt16, timeout: TimeAmount, _ node: isolated Node
    ) async -> DialBack.Result? {
        node.links[peer]?.lastDialBackRequest = node.clocks.now
        node.links[peer]?.dialBackAnswer = nil
        let request = DialBack(token: BootNonce.random, port: port)
        let result = await node.eventLoop.within(timeout, otherwise: DialBack.Result?.none) { done in
            session.checks.dialBack = (request.token, done)
            session.act { $0.askToDialBack(request, &$1) }
        }
        if session.checks.dialBack?.token == request.token { session.checks.dialBack = nil }
        node.links[peer]?.dialBackAnswer = result
        return result
    }

    /// Whether a recent dial-back answer still applies. Failures are tried again, because the user may have fixed their cause.
    private func isCurrent(_ answer: DialBack.Result, of peer: PeerID, _ node: isolated Node) -> Bool {
        switch answer {
        case .reached: true
        // The answer is outdated if the peer has trusted this machine since, which its greater frame limit shows.
        case .notTrusted: node.deliver { deliveries, _ in deliveries.frameLimit(of: peer) } < ProtocolLimits.trustedFrameBytes
        case .refused, .timeout, .unreachable, .closed, .otherIdentity, .foreign: false
        }
    }
}

extension Node {
    public nonisolated var diagnostics: DoctorProbes { DoctorProbes(node: self) }
}

extension SessionFacts {
    fileprivate init?(_ session: PeerSession) {
        guard let hello = session.machine.peerHello, let boot = hello.boot else { return nil }
        self.init(
            address: session.connection.remoteAddress, isDialledHere: session.connection.role == .dialer, boot: boot,
            version: session.info?.version ?? "", maxFrameBytes: hello.maxFrameBytes, dialsBack: hello.answersDialBack)
    }
}

extension ReachFailure {
    init(_ error: DialError) {
        switch error {
        case .refused: self.init(text: "the connection is refused", isRefused: true)
        case .otherIdentity(let other): self.init(text: "another peer answers at that address: \(other)", isOther: true)
        case .notHexlist: self.init(text: "another program than Hexlist answers there", isOther: true)
        case .timeout: self.init(text: "no answer within 3 s")
        case .closed, .unreachable, .nameNotFound, .cancelled, .failed: self.init(text: error.description)
        }
    }
}

extension Session.EndReason {
    fileprivate var isBlockedThere: Bool { if case .peer(.blocked?, _) = self { true } else { false } }
}
