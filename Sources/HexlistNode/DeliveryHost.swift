import HexlistModel

/// What the deliveries use of their node.
protocol DeliveryHost: DialHost {
    var deliveries: DeliveryScheduler { get }
    var sends: SendTracker { get set }
    /// Whether two machines have one identity, that of the peer or this node's own.
    func isInConflict(with peer: PeerID) -> Bool
    /// Whether the store had rows for the peer when it was last asked.
    func hadRows(for peer: PeerID) -> Bool
    /// Has everyone who waits for rows look again: what the rows wait for may have changed.
    func wakeWaiters()
}
