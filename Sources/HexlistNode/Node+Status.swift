import HexlistAPI
import HexlistDiscovery
import HexlistModel

extension Node {
    /// The node at a glance.
    public func status() -> NodeStatus {
        let rows = finder.directory.listing()
        let backend = finder.state
        return NodeStatus(
            uuid: id, fingerprint: identity.fingerprint, name: configuration.name, isAnnounced: configuration.announce, port: port,
            boot: boot,
            discovery: DiscoveryStatus(state: backend?.state ?? .starting, message: backend?.message), conflict: conflicts.message(self),
            domains: finder.domains.sorted { $0.key < $1.key }.map(DomainStatus.init),
            peers: rows.count { $0.state == .verified }, ghosts: rows.count(where: \.isOddGhost))
    }
}
