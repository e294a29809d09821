import HexlistDiscovery
import HexlistEventLoop
import HexlistModel
import HexlistTransport
public import NIOCore

extension Node: DeliveryHost {
    /// A link for each peer with a session, or with rows to send.
    var links: [PeerID: PeerLink] { deliveries.links }

    func hasWork(for peer: PeerID?) -> Bool {
        guard let peer else { return false }
        return deliveries.hasWork(for: peer) || pairing.desk.concerns(peer) || fetching.wants(peer) || serving.isBusy(with: peer)
    }

    func isInConflict(with peer: PeerID) -> Bool { finder.directory.isInConflict(peer) || finder.directory.isInConflict(id) }

    func isUndecided(_ peer: PeerID) -> Bool { duplicates.isUndecided(peer) || links[peer]?.hasSeveralStarts ?? false }

    func isVerified(_ peer: PeerID) -> Bool { finder.directory.isVerified(peer) }

    func endpoints(of peer: PeerID) -> [Endpoint] { finder.directory.endpoints(of: peer) }

    func sessions(with peer: PeerID) -> [PeerSession] { links[peer]?.sessions ?? [] }

    func isDialling(_ peer: PeerID) -> Bool { links[peer]?.isDialling ?? false }

    func hadRows(for peer: PeerID) -> Bool { known[peer]?.queued ?? 0 > 0 }

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
                    node.begin(connection, reached.map { Dialled(endpoint: $0, probe: nil, expected: peer) })
                }
                completion(node, report.connection != nil)
            }
        }
    }
}

// While another node takes this one's place, with another identity.
extension Node {
    /// Sends nothing new, and waits for what is on its way to be answered, so that a row is not sent once under the old identity and
    /// again under the new one.
    public func drain(for patience: TimeAmount = .seconds(5)) async {
        _ = await eventLoop.within(patience, otherwise: false) { done in deliveries.drain { done(true) } }
        deliveries.stopWaitingToDrain()
    }

    /// Ends `drain`: rows are sent again.
    public func resume() { deliveries.resume(self) }
}

extension Duration {
    /// Whole milliseconds, rounded down.
    var milliseconds: Int64 { components.seconds * 1_000 + components.attoseconds / 1_000_000_000_000_000 }
}
