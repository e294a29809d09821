import HexlistAPI
import HexlistDiscovery
import HexlistEventLoop
import HexlistModel
import HexlistSession
import HexlistTransport
import HexlistWire
import Logging
import NIOCore

/// The parts of a node that the owners use which find peers and know them.
protocol PeersHost: NodeHost {
    nonisolated var transport: PeerTransport { get }
    var finder: DiscoveryDriver { get }
    var known: PeerRegistry { get }
    /// The addresses of the sessions that are sent on, by peer.
    var sessionAddresses: [PeerID: String] { get }
    @discardableResult
    func begin(_ connection: PeerConnection, _ dialled: Dialled?) -> PeerSession
    func changed(_ event: PeerEvent)
    /// Makes all callers that wait for rows look again, because what the rows wait for may have changed.
    func wakeWaiters()
}

/// The shell of the `PeerDirectory`: carries out probes, resolvers and events, and runs its clock.
final class DiscoveryDriver {
    /// The pause after a dial that was closed, before a second one.
    private static let portClosing = TimeAmount.milliseconds(50)

    private let own: PeerID
    private let backend: (any PeerDiscovery)?
    private(set) var directory: PeerDirectory
    /// `nil` until something is heard of it.
    private(set) var state: BackendState?
    /// The states of domains browsed by unicast DNS, once something is known.
    private(set) var domains: [String: BackendState] = [:]
    /// The dials under way; one that led to a session stays until the session says Hello or ends.
    private var probes: [ProbeID: Dial] = [:]
    private let timer: DeadlineTimer

    var isProbing: Bool { !probes.isEmpty }

    /// - Parameter backend: `nil` where only static and last-known peers are looked for.
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

    func stop(_ host: isolated some PeersHost) async {
        timer.cancel()
        if let backend { await backend.stop() }
        for dial in probes.values { dial.cancel() }
    }

    func discovered(_ event: DiscoveryEvent, _ host: isolated some PeersHost) {
        switch event {
        case .backend(let state):
            if self.state != state { host.logger.notice("discovery changed", metadata: ["discovery.state": "\(state.logText)"]) }
            self.state = state
        case .domain(let domain, let state):
            host.logger.notice("discovery changed", metadata: ["discovery.domain": "\(domain)", "discovery.state": "\(state.logText)"])
            domains[domain] = state
        case .interfaces(let addresses):
            host.transport.setOwnNetworks(addresses.map { (prefix: $0.address, length: $0.prefixLength) })
        case .woke, .appeared, .withdrawn, .resolved, .resolveFailed: break
        }
        apply(.discovery(event), host)
    }

    /// Passes one input to the directory and carries out its outputs.
    func apply(_ input: PeerDirectory.Input, _ host: isolated some PeersHost) {
        let outputs = directory.handle(input, now: host.clocks.now)
        for output in outputs {
            switch output {
            case .probe(let probe, let endpoints, let expecting): dial(probe, endpoints, expecting: expecting, host)
            case .check(let probe, let endpoints, let expecting): check(probe, endpoints, expecting: expecting, host)
            case .openResolver(let record): backend?.resolve(record, open: true)
            case .closeResolver(let record): backend?.resolve(record, open: false)
            case .changed(let event): host.changed(event)
            case .listingChanged: host.watchers.notify()
            }
        }
        timer.set(directory.nextDeadline, host) { $0.finder.apply(.tick, $0) }
    }

    // MARK: Probes

    /// A dial up to Hello. The session stays where the peer proves itself.
    private func dial(
        _ probe: ProbeID, _ endpoints: [Endpoint], expecting: PeerID?, isSecond: Bool = false, _ host: isolated some PeersHost
    ) {
        dial(probe, endpoints, expecting: expecting, host) { host, report, reached in
            guard host.finder.probes[probe] != nil, !host.isStopping else { return report.connection?.abort() ?? () }
            if let connection = report.connection {
                // Ends when Hello was checked, or the session ended before.
                host.begin(connection, reached.map { Dialled(endpoint: $0, probe: probe, expected: expecting) })
            } else if !isSecond, case .closed? = report.summary {
                // A process that is being ended closes its sessions before the port it listens on: a moment later it refuses.
                host.eventLoop.scheduleTask(in: DiscoveryDriver.portClosing) { [weak host] in
                    host?.assumeIsolated { host in
                        guard host.finder.probes[probe] != nil else { return }
                        host.finder.dial(probe, endpoints, expecting: expecting, isSecond: true, host)
                    }
                }
            } else {
                host.finder.endProbe(probe, host.finder.result(report, of: endpoints), host)
            }
        }
    }

    /// A dial up to the end of the handshake, where the key is proven.
    private func check(_ probe: ProbeID, _ endpoints: [Endpoint], expecting: PeerID, _ host: isolated some PeersHost) {
        dial(probe, endpoints, expecting: expecting, host) { host, report, reached in
            report.connection?.close()
            guard let reached else { return host.finder.endProbe(probe, host.finder.result(report, of: endpoints), host) }
            host.finder.endProbe(probe, .reached(reached), host)
            host.known.rememberPlaces(of: expecting, host)
        }
    }

    /// - Parameter then: is told which of the endpoints was reached, if any.
    private func dial<Host: PeersHost>(
        _ probe: ProbeID, _ endpoints: [Endpoint], expecting: PeerID?, _ host: isolated Host,
        then: @escaping @Sendable (isolated Host, DialReport, _ reached: Endpoint?) -> Void
    ) {
        guard !host.isStopping else { return }
        let dial = host.transport.dial(endpoints.map { DialTarget($0) }, expecting: expecting)
        probes[probe] = dial
        dial.report.whenSuccess { [weak host] report in
            host?.assumeIsolated { host in then(host, report, endpoints.first { DialTarget($0) == report.connection?.target }) }
        }
    }

    private func endProbe(_ probe: ProbeID, _ result: ProbeResult, _ host: isolated some PeersHost) {
        guard probes.removeValue(forKey: probe) != nil else { return }
        host.metrics.probed(result)
        apply(.probeEnded(probe, result), host)
        host.wakeWaiters()
    }

    /// A dialled peer said Hello.
    func proved(_ peer: PeerID, _ boot: BootNonce, by dialled: Dialled, _ host: isolated some PeersHost) {
        if let probe = dialled.probe { endProbe(probe, .proved(peer, boot, dialled.endpoint), host) }
    }

    func sessionEnded(_ session: PeerSession, _ end: Session.End, _ host: isolated some PeersHost) {
        if let dialled = session.dialled, let probe = dialled.probe { endProbe(probe, result(session, dialled, end: end), host) }
        if case .own(.conflict) = end, session.peer == nil, let boot = session.machine.refusedBoot {
            apply(.ownIdentityElsewhere(boot), host)
        }
    }

    private func result(_ report: DialReport, of endpoints: [Endpoint]) -> ProbeResult {
        for failure in report.failures {
            guard case .otherIdentity(let other) = failure.error,
                let endpoint = endpoints.first(where: { DialTarget($0) == failure.target })
            else { continue }
            // Without a Hello it is unknown which start answered: if another machine has this identity, its own announcements tell.
            return other == own ? .ownIdentity(sameBoot: true, endpoint) : .otherIdentity(other, endpoint)
        }
        switch report.summary {
        case .refused: return .refused
        case .timeout, .unreachable, .otherIdentity, .nameNotFound, .failed, .cancelled, nil: return .noAnswer
        case .closed: return .failed("closes the connection")
        case .notHexlist: return .failed("is no Hexlist peer")
        }
    }

    private func result(_ session: PeerSession, _ dialled: Dialled, end: Session.End) -> ProbeResult {
        let proven = session.connection.peerFingerprint?.peerID
        switch end {
        case .own(.`self`): return .ownIdentity(sameBoot: true, dialled.endpoint)
        case .own(.conflict): return .ownIdentity(sameBoot: false, dialled.endpoint)
        // Only a peer that proved this node's key can be this node, or its clone.
        case .peer(.`self`, _) where proven == own: return .ownIdentity(sameBoot: true, dialled.endpoint)
        case .peer(.conflict, _) where proven == own: return .ownIdentity(sameBoot: false, dialled.endpoint)
        case .own(.identityMismatch):
            guard let proven, proven != dialled.expected else { return .failed("does not say who it is") }
            return .otherIdentity(proven, dialled.endpoint)
        case .own(let code): return .failed("does not greet as a peer does (\(code.rawValue))")
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
    /// The directory's term for an end of a session.
    init(_ end: Session.End) {
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
