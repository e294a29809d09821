public import HexlistAPI
import HexlistDiscovery
public import HexlistModel

/// A node at a glance.
public struct NodeStatus: Sendable, Equatable {
    public var uuid: PeerID
    public var fingerprint: Fingerprint
    public var name: String
    /// Whether others are told of this machine, as configured.
    public var isAnnounced: Bool
    public var port: Int
    public var boot: BootNonce
    public var discovery: DiscoveryStatus
    /// The report that another machine has this one's identity, with advice; `nil` where nobody says so.
    public var conflict: String?
    /// The domains browsed by unicast DNS, by name.
    public var domains: [DomainStatus]
    /// Rows `verified`, and ghosts but for this machine itself and more announcements of a listed peer (`self`, `duplicate`).
    public var peers: Int
    public var ghosts: Int
}

extension DomainStatus {
    init(_ domain: String, _ backend: BackendState) {
        self.init(domain: domain, state: backend.state, message: backend.message)
    }
}
