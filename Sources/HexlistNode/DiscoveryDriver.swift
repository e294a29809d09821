import HexlistAPI
import HexlistDiscovery
import HexlistEventLoop
import HexlistModel
import HexlistSession
import HexlistTransport
import HexlistWire
import Logging
import NIOCore

/// Drives the `PeerDirectory`: executes its outputs (probes, resolvers, events) and its timer.
final class DiscoveryDriver {
    /// The pause before the second dial to an address at which the connection of the first dial was closed.
    private static let portClosing = TimeAmount.milliseconds(50)

    private let own: PeerID
    private let backend: (any PeerDiscovery)?
    private(set) var directory: PeerDirectory
    /// The state of the DNS-SD backend; `nil` until it is reported.
    private(set) var state: BackendState?
    /// The states of the domains that are browsed by unicast DNS. A domain is missing until its state is reported.
    private(set) var domains: [String: BackendState] = [:]
    /// The probes in progress. A probe whose dial opened a session is removed when that session has received the peer's Hello, or has
    /// ended.
    private var probes: [ProbeID: Dial] = [:]
    private let timer: DeadlineTimer

    var isProbing: Bool { !probes.isEmpty }

    /// - Parameter backend: the discovery service; `nil` to find only configured and last-known peers.
    init(_ directory: PeerDirectory, own: PeerID, backend: (any PeerDiscovery)?, on eventLoop: any EventLoop, _ clocks: Clocks) {
        self.directory = directory
        self.own = own
        self.backend = backend
        state = backend == nil ? .off : nil
        timer = DeadlineTimer(on: eventLoop, clocks)
    }

    func start(publishing announcement: ServiceAnnouncement?, _ events: @escaping @Sendable (DiscoveryEvent) -> Void) {
        backend?.start(publishing: announcement, events: events)
    }

    func publish(_ announcement: ServiceAnnouncement?) { backend?.publish(announcement) }

    func stop(_ node: isolated Node) async {
        timer.cancel()
        if let backend { await backend.stop() }
        for dial in probes.values { dial.cancel() }
    }

    func discovered(_ event: DiscoveryEvent, _ node: isolated Node) {
        switch event {
        case .backend(let state):
            if self.state != state { node.logger.notice("discovery changed", metadata: ["discovery.state": "\(state.logText)"]) }
            self.state = state
        case .domain(let domain, let state):
            node.logger.notice("discovery changed", metadata: ["discovery.domain": "\(domain)", "discovery.state": "\(state.logText)"])
            domains[domain] = state
        case .interfaces(let addresses):
            node.transport.setOwnNetworks(addresses.map { (prefix: $0.address, length: $0.prefixLength) })
        case .woke, .appeared, .withdrawn, .resolved, .resolveFailed: break
        }
        apply(.discovery(event), node)
    }

    /// Passes one input to the directory and executes its outputs.
    func apply(_ input: PeerDirectory.Input, _ node: isolated Node) {
        let outputs = directory.handle(input, now: node.clocks.now)
        for output in outputs {
            switch output {
            case .probe(let probe, let endpoints, let expecting): dial(probe, endpoints, expecting: expecting, node)
            case .check(let probe, let endpoints, let expecting): check(probe, endpoints, expecting: expecting, node)
            case .openResolver(let record): backend?.resolve(record, open: true)
            case .closeResolver(let record): backend?.resolve(record, open: false)
            case .changed(let event): node.changed(event)
            case .listingChanged: node.watchers.notify()
            }
        }
        timer.set(directory.nextDeadline, node) { $0.finder.apply(.tick, $0) }
    }

    // MARK: Probes

    /// Dials a peer and begins a session, whose Hello or end completes the probe. The session is kept if the peer proves its identity.
    private func dial(
        _ probe: ProbeID, _ endpoints: [Endpoint], expecting: PeerID?, isSecond: Bool = false, _ node: isolated Node
    ) {
        dial(probe, endpoints, expecting: expecting, node) { node, report, reached in
            guard node.finder.probes[probe] != nil, !node.isStopping else { return report.connection?.abort() ?? () }
            if let connection = report.connection {
                // `proved` or `sessionEnded` completes the probe.
                node.begin(connection, reached.map { SessionDial(endpoint: $0, probe: probe, expected: expecting) })
            } else if !isSecond, case .closed? = report.summary {
                // The connection was closed before the Hello, perhaps by a process that is terminating. Such a process closes its
                // connections first and its listening socket a moment later. A second dial after that moment is refused, which is a clear
                // result.
                node.eventLoop.scheduleTask(in: DiscoveryDriver.portClosing) { [weak node] in
                    node?.assumeIsolated { node in
                        guard node.finder.probes[probe] != nil else { return }
                        node.finder.dial(probe, endpoints, expecting: expecting, isSecond: true, node)
                    }
                }
            } else {
                node.finder.endProbe(probe, node.finder.result(report, of: endpoints), node)
            }
        }
    }

    /// Dials a peer up to the end of the TLS handshake, which proves its key, without a session.
    private func check(_ probe: ProbeID, _ endpoints: [Endpoint], expecting: PeerID, _ node: isolated Node) {
        dial(probe, endpoints, expecting: expecting, node) { node, report, reached in
            report.connection?.close()
            guard let reached else { return node.finder.endProbe(probe, node.finder.result(report, of: endpoints), node) }
            node.finder.endProbe(probe, .reached(reached), node)
            node.registry.rememberPlaces(of: expecting, node)
        }
    }

    /// Dials the endpoints of a probe.
    /// - Parameter then: called with the endpoint that was reached; `nil` if there was none.
    private func dial(
        _ probe: ProbeID, _ endpoints: [Endpoint], expecting: PeerID?, _ node: isolated Node,
        then: @escaping @Sendable (isolated Node, DialReport, _ reached: Endpoint?) -> Void
    ) {
        guard !node.isStopping else { return }
        let dial = node.transport.dial(endpoints.map { DialTarget($0) }, expecting: expecting)
        probes[probe] = dial
        dial.report.whenSuccess { [weak node] report in
            node?.assumeIsolated { node in then(node, report, endpoints.first { DialTarget($0) == report.connection?.target }) }
        }
    }

    private func endProbe(_ probe: ProbeID, _ result: ProbeResult, _ node: isolated Node) {
        guard probes.removeValue(forKey: probe) != nil else { return }
        node.metrics.probed(result)
        apply(.probeEnded(probe, result), node)
        node.wakeWaiters()
    }

    /// Completes a probe, because the dialled peer sent its Hello.
    func proved(_ peer: PeerID, _ boot: BootNonce, by dialled: SessionDial, _ node: isolated Node) {
        if let probe = dialled.probe { endProbe(probe, .proved(peer, boot, dialled.endpoint), node) }
    }

    func sessionEnded(_ session: PeerSession, _ end: Session.EndReason, _ node: isolated Node) {
        if let dialled = session.dialled, let probe = dialled.probe { endProbe(probe, result(session, dialled, end: end), node) }
        if case .own(.conflict) = end, session.peer == nil, let boot = session.machine.refusedBoot {
            apply(.ownIdentityElsewhere(boot), node)
        }
    }

    private func result(_ report: DialReport, of endpoints: [Endpoint]) -> ProbeResult {
        for failure in report.failures {
            guard case .otherIdentity(let other) = failure.error,
                let endpoint = endpoints.first(where: { DialTarget($0) == failure.target })
            else { continue }
            // The boot nonce is unknown before the Hello, so the address is assumed to be one of this machine. Another machine with this
            // identity is recognised by its announcements.
            return other == own ? .ownIdentity(sameBoot: true, endpoint) : .otherIdentity(other, endpoint)
        }
        switch report.summary {
        case .refused: return .refused
        case .timeout, .unreachable, .otherIdentity, .nameNotFound, .failed, .cancelled, nil: return .noAnswer
        case .closed: return .failed("closes the connection")
        case .notHexlist: return .failed("is no Hexlist peer")
        }
    }

    private func result(_ session: PeerSession, _ dialled: SessionDial, end: Session.EndReason) -> ProbeResult {
        let proven = session.connection.peerFingerprint?.peerID
        switch end {
        case .own(.`self`): return .ownIdentity(sameBoot: true, dialled.endpoint)
        case .own(.conflict): return .ownIdentity(sameBoot: false, dialled.endpoint)
        // Only a peer that proved this node's key can be this node or a clone.
        case .peer(.`self`, _) where proven == own: return .ownIdentity(sameBoot: true, dialled.endpoint)
        case .peer(.conflict, _) where proven == own: return .ownIdentity(sameBoot: false, dialled.endpoint)
        case .own(.identityMismatch):
            guard let proven, proven != dialled.expected else { return .failed("does not prove its identity") }
            return .otherIdentity(proven, dialled.endpoint)
        case .own(let code): return .failed("does not send a valid Hello (\(code.rawValue))")
        case .peer(let code, _): return .failed("ends the session (\(code?.rawValue ?? "for a reason unknown here"))")
        case .lost: return .failed("closes the connection")
        }
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

extension SessionEnd {
    init(_ end: Session.EndReason) {
        self =
            switch end {
            case .peer(.shutdown, _): .shutdown
            case .peer(.idle, _), .own(.idle): .idle
            case .lost, .own(.silent), .own(.receiptTimeout): .lost
            case .peer, .own: .other
            }
    }
}

extension DialTarget {
    init(_ endpoint: Endpoint) { self.init(host: endpoint.host, port: endpoint.port, interface: endpoint.interface) }
}
