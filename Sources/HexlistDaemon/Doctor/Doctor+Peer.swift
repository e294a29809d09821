import HexlistAPI
import HexlistModel
import HexlistNode
import HexlistTransport

// The checks of one peer: its announcement, its addresses, TCP, TLS, the Hello, the trust, a long frame, and dialling back.
extension Doctor {
    func peer(_ text: String) async -> [DoctorStep] {
        let rows: [PeerView]
        let id: PeerID
        do {
            (rows, id) = try await find(text)
        } catch {
            if error.code == .notFound, let place = await configured(text) { return await steps(of: place) }
            return [DoctorStep("peer", .failed, error.message, advice: error.hint.map { [$0] } ?? [], code: error.code.rawValue)]
        }
        return await steps(of: id, rows)
    }

    /// Whether a PEER argument matches a peer, an announcement, or an address configured under `peers:`.
    func isThere(_ text: String) async -> Bool {
        if (try? await find(text)) != nil { return true }
        return await configured(text) != nil
    }

    /// Makes the checks of one peer.
    /// - Parameter rows: the list entries with the UUID of the peer, including ghosts; at least one.
    func steps(of id: PeerID, _ rows: [PeerView]) async -> [DoctorStep] {
        guard id != api.node.id else { return [Self.isOwn] }
        let main = rows.first { $0.state != .ghost } ?? rows[0]
        if main.kind?.known == .localsend {
            let name = main.label.text(.named)
            return [
                DoctorStep(
                    "peer", main.state == .verified ? .ok : .warning,
                    "\(name) uses LocalSend and \(main.state == .verified ? "answers." : "does not answer.")",
                    advice: main.state == .verified ? [] : ["Open LocalSend on it."])
            ]
        }
        var steps = [Self.record(main, others: rows.filter { $0 != main }, isHiding: await !api.node.status().isAnnounced)]
        let (resolving, endpoints) = await resolve(main.endpoints)
        if let resolving { steps.append(resolving) }
        let reaches = await reach(endpoints, id)
        steps += Self.reaching(reaches)
        return await steps + session(id, main.trust.known ?? .stranger, reaches)
    }

    static let isOwn = DoctorStep("peer", .failed, "That is this machine.", advice: ["Name another peer: `hexlist peers --all`."])

    /// Makes the checks that need a session: the Hello, the trust, a long frame, and dialling back.
    func session(_ id: PeerID, _ trust: Trust, _ reaches: [(endpoint: EndpointView, reach: AddressProbeResult)]) async -> [DoctorStep] {
        // A session with a blocked peer would be closed immediately, so these checks are omitted.
        guard trust != .blocked else { return [] }
        let (hello, diagnostics) = await greet(id, trust, reaches)
        guard let diagnostics else { return [hello] }
        let dialBack = diagnostics.session.dialsBack ? await dialBacks.ask(id, api.node) : .cannotAsk
        // The session is read again, because the peer may have sent another Hello meanwhile.
        let there = Self.peersTrust(await api.node.diagnostics.session(with: id) ?? diagnostics.session, diagnostics.ping, dialBack)
        let trusting = Self.trust(id, trust, there)
        guard there != .blocked else { return [hello, trusting] }  // nothing can be sent in either direction
        return [hello, trusting, Self.frame(diagnostics.ping)] + [Self.dialBack(dialBack)].compactMap { $0 }
    }

    /// Infers the peer's trust in this machine. The behaviour of the peer has precedence over the frame limit that it announced: a peer
    /// closes sessions of machines that it blocks, and dials back only for machines that it trusts.
    static func peersTrust(_ facts: SessionFacts, _ ping: PingOutcome, _ dialBack: DialBackOutcome) -> Trust {
        if case .ended(_, isBlocked: true) = ping { return .blocked }
        if case .result(let result) = dialBack { return result == .notTrusted ? .stranger : .trusted }
        // Trusted peers get a frame limit of at least 1 MiB (Docs/Protocol.md, "Framing").
        return facts.maxFrameBytes >= ProtocolLimits.trustedFrameBytes ? .trusted : .stranger
    }

    /// Finds the UUID that a PEER argument names, and the list entries with this UUID: the peer, and ghosts that claim its UUID.
    private func find(_ text: String) async throws(HexlistError) -> (rows: [PeerView], id: PeerID) {
        let all: [PeerView]
        do {
            all = try await api.node.peers.all()
            let id = try await api.node.peers.resolve(text).requiredID()
            return (all.filter { $0.uuid == id }, id)
        } catch let error as HexlistError {
            // No known peer matches the text, but a ghost may: an announcement that is not a verified peer.
            guard error.code == .notFound, let all = try? await api.node.peers.all() else { throw error }
            let claimed = Set(PeerReference(text).ghosts(among: all).compactMap(\.uuid))
            guard claimed.count == 1, let id = claimed.first else { throw error }
            return (all.filter { $0.uuid == id }, id)
        } catch {
            throw HexlistError(.internal, "Peers cannot be read.", hint: "hexlistd's log says more.")
        }
    }

    static func record(_ row: PeerView, others: [PeerView], isHiding: Bool = false) -> DoctorStep {
        let id = row.uuid?.description ?? ""
        let ghosts = others.filter { $0.reason != "duplicate" }.compactMap { ghost in ghost.reason.map { "\($0): \(ghost.why ?? "")" } }
        let more = ghosts.isEmpty ? "" : " Hidden beside it: \(ghosts.prefix(4).joined(separator: "; "))."
        let why = row.why ?? ""
        let name = row.label.text(.whole)
        switch row.state {
        // A blocked peer is reported as blocked even while its session is still closing.
        case .verified where row.trust == .blocked, .away where row.trust == .blocked:
            return DoctorStep(
                "peer", .failed, "\(name) is blocked here, so nothing is sent to it or accepted from it.\(more)",
                advice: ["hexlist peer unblock \(id)"])
        case .verified: return DoctorStep("peer", .ok, "\(name) is verified: \(why).\(more)")
        case .away:
            return DoctorStep(
                "peer", .failed, "\(name) is away: \(why).\(more)",
                advice: ["Is hexlistd running there, on the same network? `hexlist status` on that machine."]
                    + (row.endpoints.contains { $0.via == "static" } ? [] : ["If it is elsewhere, name its address under `peers:`."]))
        case .ghost:
            return DoctorStep(
                "peer", .failed, "\(name) is hidden, \(row.reason ?? "ghost"): \(why).\(more)",
                advice: advice(ghost: row.reason, isHiding: isHiding))
        }
    }

    static func advice(ghost reason: String?, isHiding: Bool = false) -> [String] {
        switch reason {
        case "unverified" where isHiding: ["This machine hides (`announce: false`): pair with it, or name its address under `peers:`."]
        case "conflict": ["Two machines use one identity: run `hexlist id rotate` on one of them."]
        case "impostor":
            ["Another program or machine answers at that address. If it replaces the old one, `hexlist peer forget` the old one."]
        case "invalid": ["Its announcement is damaged or belongs to another program: restart hexlistd on that machine."]
        case "stale": ["It is announced but does not answer: is hexlistd running there, and is its port open?"]
        case "unverified": ["Its identity is being checked; try again in a few seconds."]
        default: []
        }
    }

    /// Resolves the host names among the addresses of a peer. At most eight addresses are used.
    /// - Returns: the step `peer.resolve`, and the addresses in numeric form without duplicates.
    func resolve(_ known: [EndpointView]) async -> (step: DoctorStep?, endpoints: [EndpointView]) {
        var endpoints: [EndpointView] = []
        var (found, failed): ([String], [String]) = ([], [])
        for endpoint in known.prefix(8) where endpoint.via != "inbound" {
            guard DialTarget(host: endpoint.host, port: 0).isName else {
                endpoints.append(endpoint)
                continue
            }
            switch await api.node.diagnostics.addresses(of: endpoint.host) {
            case .success(let addresses):
                found.append("\(endpoint.host) is \(addresses.joined(separator: ", "))")
                for address in addresses {
                    var numeric = endpoint
                    numeric.host = address
                    endpoints.append(numeric)
                }
            case .failure(let why): failed.append("\(endpoint.host): \(why.text)")
            }
        }
        var seen: Set<String> = []
        endpoints = endpoints.filter { seen.insert("\($0.host) \($0.port)").inserted }
        if !failed.isEmpty {
            let step = DoctorStep(
                "peer.resolve", endpoints.isEmpty ? .failed : .warning, (failed + found).joined(separator: "; ") + ".",
                advice: ["Is the name correct? `getent hosts NAME`"])
            return (step, endpoints)
        }
        guard !endpoints.isEmpty else {
            let dialsIn = known.contains { $0.via == "inbound" }
            let text =
                dialsIn
                ? "It connected to this machine; no address at which it accepts connections is known." : "No address of it is known."
            return (
                DoctorStep(
                    "peer.resolve", dialsIn ? .warning : .failed, text,
                    advice: ["Wait until it is announced, or name its address under `peers:`."]), []
            )
        }
        let places = endpoints.map { "\(HostPort.text($0.host, $0.port)) (\($0.via))" }
        return (
            DoctorStep("peer.resolve", .ok, (found + ["Known at \(places.joined(separator: ", "))"]).joined(separator: "; ") + "."),
            endpoints
        )
    }

    func reach(_ endpoints: [EndpointView], _ id: PeerID?) async -> [(endpoint: EndpointView, reach: AddressProbeResult)] {
        var reaches: [(EndpointView, AddressProbeResult)] = []
        for endpoint in endpoints.prefix(8) {
            reaches.append(
                (
                    endpoint,
                    await api.node.diagnostics.probe(endpoint.host, port: endpoint.port, interface: endpoint.interface, expecting: id)
                ))
        }
        return reaches
    }

    static func reaching(_ reaches: [(endpoint: EndpointView, reach: AddressProbeResult)]) -> [DoctorStep] {
        guard !reaches.isEmpty else { return [] }
        let tcp = result(reaches.map { ($0.reach, $0.reach.tcp) })
        let isRefused = reaches.contains { if case .failure(let why) = $0.reach.tcp { why.isRefused } else { false } }
        let port = reaches[0].reach.port
        var steps = [
            DoctorStep(
                "peer.tcp", tcp.state, tcp.text,
                advice: tcp.state == .ok
                    ? []
                    : isRefused
                        ? [
                            "The machine answers, but nothing listens on port \(port): start hexlistd there, or see which port its `hexlist status` shows."
                        ]
                        : [
                            "Let TCP port \(port) through the firewall there (`hexlist doctor` there shows the command) and any firewall in between.",
                            "Does this machine's own firewall allow the connection? `nc -vz ADDRESS \(port)`",
                        ])
        ]
        let connected = reaches.compactMap { entry in entry.reach.tls.map { (entry.reach, $0) } }
        guard !connected.isEmpty else { return steps }
        let tls = result(connected)
        let isOther = connected.contains { if case .failure(let why) = $0.1 { why.isOther } else { false } }
        steps.append(
            DoctorStep(
                "peer.tls", tls.state, tls.text,
                advice: tls.state == .ok
                    ? []
                    : isOther
                        ? ["Another machine or program answers there now. `hexlist peers --all --why` shows all peers and their addresses."]
                        : [
                            "It may have reached a limit, or a device in between breaks TLS: see the log of hexlistd there.",
                            "A path that loses large packets has the same effect: try `ip link set dev IFACE mtu 1280` here.",
                        ]))
        return steps
    }

    /// Combines the results of the attempts at all addresses: failed if none succeeded, a warning if only some succeeded.
    private static func result(_ tries: [(AddressProbeResult, Result<Duration, ReachFailure>)]) -> (state: DoctorStep.State, text: String) {
        var works = 0
        let parts = tries.map { reach, result -> String in
            switch result {
            case .success(let time):
                works += 1
                return "\(HostPort.text(reach.host, reach.port)) in \(milliseconds(time))"
            case .failure(let why): return "\(HostPort.text(reach.host, reach.port)): \(why.text)"
            }
        }
        return (works == 0 ? .failed : works < tries.count ? .warning : .ok, parts.joined(separator: "; ") + ".")
    }

    private func greet(
        _ id: PeerID, _ trust: Trust, _ reaches: [(endpoint: EndpointView, reach: AddressProbeResult)]
    ) async -> (step: DoctorStep, diagnostics: SessionDiagnostics?) {
        var diagnostics = await api.node.diagnostics.testSession(with: id)
        var failure: ReachFailure?
        // This limits the total time if each attempt times out.
        let givesUp = ContinuousClock.now + .seconds(30)
        for (endpoint, reach) in reaches where diagnostics == nil && .now < givesUp {
            guard case .success? = reach.tls else { continue }
            switch await api.node.diagnostics.openSession(with: id, at: endpoint.host, port: endpoint.port, interface: endpoint.interface) {
            case .success(let found): diagnostics = found
            case .failure(let why): failure = why
            }
        }
        guard let diagnostics, case let facts = diagnostics.session else {
            if failure?.isBlocked == true { return (Self.trust(id, trust, .blocked), nil) }
            return (
                DoctorStep(
                    "peer.hello", .failed,
                    failure.map { "It did not prove its identity. \($0.text)" }
                        ?? "There is no session, and \(reaches.isEmpty ? "no address to make one at" : "no address of it answers").",
                    advice: failure == nil ? [] : ["Both machines need versions with the same protocol: run `hexlist --version` on both."]),
                nil
            )
        }
        let who = facts.isDialledHere ? "dialled here" : "dialled there"
        return (
            DoctorStep(
                "peer.hello", .ok,
                "Its Hello proves \(id), start \(facts.boot), version \(facts.version), on a session with \(facts.address) (\(who))."),
            diagnostics
        )
    }

    /// Makes the step `peer.trust`.
    /// - Parameters:
    ///   - trust: this machine's trust in the peer.
    ///   - peersTrust: the peer's trust in this machine.
    static func trust(_ id: PeerID, _ trust: Trust, _ peersTrust: Trust) -> DoctorStep {
        guard peersTrust != .blocked else {
            return DoctorStep(
                "peer.trust", .failed, "The peer has blocked this machine: it ends every session, and accepts nothing.",
                advice: ["On the other machine: `hexlist peer unblock PEER`, with this machine as PEER."])
        }
        let isTrustedThere = peersTrust == .trusted
        let here =
            switch trust {
            case .trusted: "It is trusted here"
            case .stranger: "It is a stranger here: its hexes wait for approval"
            case .blocked: "It is blocked here"
            }
        let there =
            isTrustedThere
            ? "this machine is trusted there" : "this machine is a stranger there: hexes wait for approval"
        var advice: [String] = []
        if trust != .trusted {
            advice.append("hexlist peer \(trust == .blocked ? "unblock" : "trust") \(id)")
        }
        if !isTrustedThere { advice.append("On the other machine: `hexlist peer trust`, or `hexlist pair` on both.") }
        return DoctorStep("peer.trust", advice.isEmpty ? .ok : .warning, "\(here); \(there).", advice: advice)
    }

    static func frame(_ outcome: PingOutcome) -> DoctorStep {
        switch outcome {
        case .answered(let bytes, let time):
            DoctorStep("peer.frame", .ok, "A frame of \(bytes) bytes arrives: answered in \(milliseconds(time)).")
        case .unanswered(bytes: 0):
            DoctorStep(
                "peer.frame", .failed,
                "The session does not answer, not even to a short frame: hexlistd there hangs, or the connection is broken.",
                advice: ["The session was closed: try again. If it fails again, run `hexlist status` on that machine."])
        case .unanswered(let bytes):
            DoctorStep(
                "peer.frame", .failed, "A frame of \(bytes) bytes is not answered, but small ones are: the path loses large packets.",
                advice: [
                    "A tunnel or router in between drops packets over its MTU without reporting it. Lower the MTU here: `ip link set dev IFACE mtu 1280`.",
                    "Or let TCP find the MTU: `sysctl -w net.ipv4.tcp_mtu_probing=1` on both machines.",
                ])
        case .ended(let why, _):
            DoctorStep(
                "peer.frame", .failed, "The session ended before a long frame was answered. \(why)",
                advice: ["The log of hexlistd there has the reason, for example a limit that was reached."])
        case .notNow:
            DoctorStep("peer.frame", .warning, "A long frame could not be tested: the session is being replaced.", advice: ["Look again."])
        }
    }

    static func dialBack(_ outcome: DialBackOutcome) -> DoctorStep? {
        switch outcome {
        case .result(.reached): DoctorStep("peer.dialBack", .ok, "It can connect to this machine's port, too.")
        case .result(.notTrusted):
            DoctorStep("peer.dialBack", .warning, "It does not trust this machine, so it does not test connections to it.")
        case .result(let result):
            DoctorStep(
                "peer.dialBack", .failed, "Asked to connect to this machine's port, it \(text(result)).",
                advice: ["Let the port through this machine's firewall (step firewall) and any firewall in between."])
        case .noReply:
            DoctorStep(
                "peer.dialBack", .warning, "Asked to connect to this machine's port, it does not answer.",
                advice: ["Try again in a few seconds: it answers once in 10 s."])
        case .cannotAsk: nil
        }
    }
}
