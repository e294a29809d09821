public import HexlistAPI
import HexlistDiscovery
public import HexlistModel

/// A summary of the state of a node.
public struct NodeStatus: Sendable, Equatable {
    public var uuid: PeerID
    public var fingerprint: Fingerprint
    public var name: String
    /// Whether this machine is configured to be announced.
    public var isAnnounced: Bool
    public var port: Int
    public var boot: BootNonce
    public var discovery: DiscoveryStatus
    /// A message about a conflict of this machine's identity, with advice; `nil` if there is none.
    public var conflict: String?
    /// The domains browsed by unicast DNS, sorted by name.
    public var domains: [DomainStatus]
    /// The number of verified peers.
    public var peers: Int
    /// The number of ghosts, except those with the reason `self` or `duplicate`.
    public var ghosts: Int
    public var localSend: LocalSendStatus
    public var routeProblems: [RouteProblem]
}

extension DomainStatus {
    init(_ domain: String, _ backend: BackendState) {
        self.init(domain: domain, state: backend.state, message: backend.message)
    }
}

extension Node {
    /// The public keys of this machine.
    public nonisolated var ownKeys: OwnPublicKeys {
        OwnPublicKeys(uuid: id, card: envelopes.card.text, certificate: identity.certificatePEM)
    }

    /// A summary of the node's state.
    public func status() -> NodeStatus {
        let rows = finder.directory.listing()
        let backend = finder.state
        return NodeStatus(
            uuid: id, fingerprint: identity.fingerprint, name: configuration.name, isAnnounced: configuration.announce, port: port,
            boot: boot,
            discovery: DiscoveryStatus(state: backend?.state ?? .starting, message: backend?.message), conflict: conflicts.message(self),
            domains: finder.domains.sorted { $0.key < $1.key }.map(DomainStatus.init),
            peers: rows.count { $0.state == .verified } + devices.directory.listing(now: clocks.now).count { $0.state == .verified },
            ghosts: rows.count(where: \.isOddGhost), localSend: devices.status(self),
            routeProblems: routes.views(self).compactMap { view in view.problem.map { RouteProblem(route: view.name, message: $0) } })
    }
}
