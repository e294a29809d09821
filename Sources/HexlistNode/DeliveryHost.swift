import HexlistDiscovery
import HexlistModel

/// The parts of the node that the deliveries use.
protocol DeliveryHost: NodeHost {
    var deliveries: DeliveryScheduler { get }
    var sends: SendTracker { get set }
    /// Whether two machines have one identity, that of the peer or this node's own.
    func isInConflict(with peer: PeerID) -> Bool
    /// Whether the peer is here.
    func isVerified(_ peer: PeerID) -> Bool
    /// The places where the peer can be dialled, the best first.
    func endpoints(of peer: PeerID) -> [Endpoint]
    /// Whether the store had rows for the peer when it was last asked.
    func hadRows(for peer: PeerID) -> Bool
    /// Dials a peer for work of this node's own, and begins the session where it answers.
    func dial(_ peer: PeerID, _ endpoints: [Endpoint], then completion: @escaping @Sendable (isolated Self, _ connected: Bool) -> Void)
    /// Makes all callers that wait for rows look again, because what the rows wait for may have changed.
    func wakeWaiters()
}
