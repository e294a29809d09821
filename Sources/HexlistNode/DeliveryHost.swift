import HexlistModel

/// The parts of the node that the deliveries use.
protocol DeliveryHost: DialHost {
    var deliveries: DeliveryScheduler { get }
    var sends: SendTracker { get set }
    /// Whether two machines have one identity, that of the peer or this node's own.
    func isInConflict(with peer: PeerID) -> Bool
    /// Whether it is not known yet if two machines have the peer's identity, which takes 5 s at most.
    func isUndecided(_ peer: PeerID) -> Bool
    /// Whether the store had rows for the peer when it was last asked.
    func hadRows(for peer: PeerID) -> Bool
    /// Makes all callers that wait for rows look again, because what the rows wait for may have changed.
    func wakeWaiters()
}
