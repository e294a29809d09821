public import HexlistAPI
import HexlistDiscovery
public import HexlistModel

/// A node at a glance.
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
    /// The domains browsed by unicast DNS, by name.
    public var domains: [DomainStatus]
    /// The number of verified peers.
    public var peers: Int
    /// The number of ghosts, except those with the reason `self` or `duplicate`.
    public var ghosts: Int
}

extension DomainStatus {
    init(_ domain: String, _ backend: BackendState) {
        self.init(domain: domain, state: backend.state, message: backend.message)
    }
}
