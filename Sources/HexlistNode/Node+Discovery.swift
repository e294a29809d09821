import HexlistDiscovery
import HexlistModel
import HexlistStore
import HexlistTransport
import HexlistWire
import NIOCore

/// The directory decides; this carries out: probes, resolvers, events, its clock.
extension Node {
    func discovered(_ event: DiscoveryEvent) {
        guard !isStopping else { return }
        switch event {
        case .backend(let state):
            if discoveryState != state { logger.notice("discovery changed", metadata: ["discovery.state": "\(state.logText)"]) }
            discoveryState = state
        case .woke: woke()
        case .domain(let domain, let state):
            logger.notice("discovery changed", metadata: ["discovery.domain": "\(domain)", "discovery.state": "\(state.logText)"])
            domainStates[domain] = state
        case .interfaces(let addresses):
            transport.setOwnNetworks(addresses.map { (prefix: $0.address, length: $0.prefixLength) })
        case .appeared, .withdrawn, .resolved, .resolveFailed: break
        }
        apply(.discovery(event))
        notifyWatchers()
    }

    /// The machine slept: sessions the other side gave up long ago are found to be silent now, and not when their time comes.
    private func woke() {
        logger.info("the machine woke from sleep")
        for session in sessions.values { session.timePassed() }
    }

    /// One input into the directory, its outputs out.
    func apply(_ input: PeerDirectory.Input) {
        let outputs = directory.handle(input, now: .now)
        for output in outputs {
            switch output {
            case .probe(let probe, let endpoints, let expecting): dial(probe, endpoints, expecting: expecting)
            case .check(let probe, let endpoints, let expecting): check(probe, endpoints, expecting: expecting)
            case .openResolver(let record): discovery?.resolve(record, open: true)
            case .closeResolver(let record): discovery?.resolve(record, open: false)
            case .changed(let event): changed(event)
            case .listingChanged: notifyWatchers()
            }
        }
        directoryTimer.set(directory.nextDeadline, self) { $0.apply(.tick) }
    }

    /// A dial up to Hello. The session stays where the peer proves itself.
    private func dial(_ probe: ProbeID, _ endpoints: [Endpoint], expecting: PeerID?, isSecond: Bool = false) {
        guard !isStopping else { return }
        let dial = transport.dial(endpoints.map { DialTarget($0) }, expecting: expecting)
        probes[probe] = dial
        dial.report.whenSuccess { [weak self] report in
            self?.assumeIsolated { node in
                guard node.probes[probe] != nil, !node.isStopping else {
                    report.connection?.abort()
                    return
                }
                if let connection = report.connection {
                    // Ends when Hello was checked, or the session ended before.
                    let reached = endpoints.first { DialTarget($0) == connection.target }
                    node.begin(connection, reached.map { Dialled(endpoint: $0, probe: probe, expected: expecting) })
                } else if !isSecond, case .closed? = report.summary {
                    // A process that is being ended closes its sessions before the port it listens on: a moment later it refuses.
                    node.eventLoop.scheduleTask(in: Node.portClosing) { [weak node] in
                        node?.assumeIsolated { node in
                            guard node.probes[probe] != nil else { return }
                            node.dial(probe, endpoints, expecting: expecting, isSecond: true)
                        }
                    }
                } else {
                    node.endProbe(probe, node.probeResult(report, of: endpoints))
                }
            }
        }
    }

    private static let portClosing = TimeAmount.milliseconds(50)

    /// A dial up to the end of the handshake, where the key is proven.
    private func check(_ probe: ProbeID, _ endpoints: [Endpoint], expecting: PeerID) {
        guard !isStopping else { return }
        let dial = transport.dial(endpoints.map { DialTarget($0) }, expecting: expecting)
        probes[probe] = dial
        dial.report.whenSuccess { [weak self] report in
            self?.assumeIsolated { node in
                report.connection?.close()
                guard let reached = endpoints.first(where: { DialTarget($0) == report.connection?.target }) else {
                    return node.endProbe(probe, node.probeResult(report, of: endpoints))
                }
                node.endProbe(probe, .reached(reached))
                node.rememberPlaces(of: expecting)
            }
        }
    }

    func endProbe(_ probe: ProbeID, _ result: ProbeResult) {
        guard probes.removeValue(forKey: probe) != nil else { return }
        apply(.probeEnded(probe, result))
        wakeWaiters()
    }

    private func probeResult(_ report: DialReport, of endpoints: [Endpoint]) -> ProbeResult {
        for failure in report.failures {
            guard case .otherIdentity(let other) = failure.error,
                let endpoint = endpoints.first(where: { DialTarget($0) == failure.target })
            else { continue }
            // Without a Hello nobody said which start it is: where another machine has this identity, its own announcements tell.
            return other == id ? .ownIdentity(sameBoot: true, endpoint) : .otherIdentity(other, endpoint)
        }
        switch report.summary {
        case .refused: return .refused
        case .timeout, .unreachable, .otherIdentity, .nameNotFound, .failed, .cancelled, nil: return .noAnswer
        case .closed: return .failed("closes the connection")
        case .notHexlist: return .failed("is no Hexlist peer")
        }
    }

    // MARK: Events

    private func changed(_ event: PeerEvent) {
        switch event {
        case .up(let peer):
            links[peer]?.delivery.peerIsBack()
            events.record(.peerUp, peer: peer, from: comings(of: peer), self)
        case .down(let peer):
            if invitations.contains(peer) { inviteLater(peer) }
            events.record(.peerDown, peer: peer, from: comings(of: peer), self)
        case .conflict(let peer): conflictBegan(peer)
        case .conflictEnded(let peer): conflictEnded(peer)
        case .ghost(let ghost):
            events.record(
                .peerGhost, peer: ghost.peer, data: ["name": ghost.name, "reason": ghost.reason.rawValue, "why": ghost.why],
                from: source(of: ghost), self)
        }
    }

    private func comings(of peer: PeerID) -> EventAllowance.Source {
        known[peer]?.trust == .trusted ? .comings(of: peer) : .strangers
    }

    private func source(of ghost: GhostEvent) -> EventAllowance.Source {
        guard ghost.reason == .impostor, let peer = ghost.peer, known[peer]?.trust == .trusted else { return .strangers }
        return .impostors(of: peer)
    }
}

extension BackendState {
    var state: DiscoveryState {
        switch self {
        case .running: .running
        case .degraded: .degraded
        case .unavailable: .unavailable
        case .off: .off
        }
    }

    var message: String? {
        switch self {
        case .running, .off: nil
        case .degraded(let message), .unavailable(let message): message
        }
    }

    var logText: String { message.map { "\(state.rawValue): \($0)" } ?? state.rawValue }
}

extension DialTarget {
    init(_ endpoint: Endpoint) { self.init(host: endpoint.host, port: endpoint.port, interface: endpoint.interface) }
}
