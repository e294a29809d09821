import HexlistDelivery
import HexlistDiscovery
import HexlistEventLoop
import HexlistModel
import HexlistSession
import HexlistTransport
import NIOCore

extension Node: RefusedPeersNotifierHost {
    /// Whether there is work for the peer, so that its session is not ended as idle.
    func hasWork(for peer: PeerID?) -> Bool {
        guard let peer else { return false }
        return deliver { deliveries, _ in deliveries.hasWork(for: peer) } || pairingDriver.coordinator.concerns(peer)
            || transfers.hasWork(for: peer)
    }

    func isInConflict(with peer: PeerID) -> Bool { finder.directory.isInConflict(peer) || finder.directory.isInConflict(id) }

    func isUndecided(_ peer: PeerID) -> Bool { duplicates.isUndecided(peer) || links[peer]?.hasSeveralBoots ?? false }

    func isQuarantined(_ peer: PeerID) -> Bool { deliver { $0.isHeld(peer, $1) } }

    func isVerified(_ peer: PeerID) -> Bool { finder.directory.isVerified(peer) }

    func endpoints(of peer: PeerID) -> [Endpoint] { finder.directory.endpoints(of: peer) }

    func sessions(with peer: PeerID) -> [PeerSession] { links[peer]?.sessions ?? [] }

    func isDialling(_ peer: PeerID) -> Bool { deliver { deliveries, _ in deliveries.isReaching(peer) } }

    func dial(_ peer: PeerID, _ endpoints: [Endpoint], then completion: @escaping @Sendable (isolated Node, _ connected: Bool) -> Void) {
        let dial = transport.dial(endpoints.map { DialTarget($0) }, expecting: peer)
        dial.report.whenSuccess { [weak self] report in
            self?.assumeIsolated { node in
                guard !node.isStopping else {
                    report.connection?.abort()
                    return
                }
                if let connection = report.connection {
                    let reached = endpoints.first { DialTarget($0) == connection.target }
                    node.begin(connection, reached.map { SessionDial(endpoint: $0, probe: nil, expected: peer) })
                }
                completion(node, report.connection != nil)
            }
        }
    }
}
