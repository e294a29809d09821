public import HexlistEventLoop
public import HexlistModel
public import Logging

/// The actor that owns a `DeliveryScheduler`. It provides the state of peers, dials peers, and receives the scheduler's notifications.
public protocol DeliveryHost: EventLoopActor {
    nonisolated var logger: Logger { get }
    nonisolated var outbox: any OutboxStore { get }
    var deliveries: DeliveryScheduler { get }
    /// Whether the peer is online according to discovery.
    func isVerified(_ peer: PeerID) -> Bool
    /// Whether two machines have the peer's identity, or two machines have this machine's identity.
    func isInConflict(with peer: PeerID) -> Bool
    /// Whether the host is still checking for an identity conflict of the peer. A check takes at most 5 s.
    func isUndecided(_ peer: PeerID) -> Bool
    /// Whether the peer had queued rows when the store's record of the peer was last read.
    func hadRows(for peer: PeerID) -> Bool
    /// Creates a courier for the peer, for example by a dial. The host calls `DeliveryScheduler.connected` before `completion`, and
    /// `completion` never before this method returns.
    /// - Returns: `false` if the peer has no address; `completion` is not called then.
    func reach(_ peer: PeerID, then completion: @escaping @Sendable (isolated Self, _ isReached: Bool) -> Void) -> Bool
    /// Records results of rows for metrics.
    nonisolated func answered(_ results: [RowResult])
    /// Records, for metrics, the time from sending a hex to its result. It is measured for one hex at a time of each peer.
    nonisolated func measured(_ time: Duration)
    /// Notifies watchers that rows changed.
    nonisolated func outboxChanged()
    /// Called after the scheduler removed its state of a peer that has no courier, no queued rows and no rows in flight.
    func deliveryEnded(with peer: PeerID)
}
