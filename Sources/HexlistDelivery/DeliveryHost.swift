public import HexlistEventLoop
public import HexlistModel
public import Logging

/// The actor that owns a `DeliveryScheduler`: the state of peers, and dials.
public protocol DeliveryHost: EventLoopActor {
    nonisolated var logger: Logger { get }
    nonisolated var outbox: any OutboxStore { get }
    var deliveries: DeliveryScheduler { get }
    /// Whether the peer is online according to discovery.
    func isVerified(_ peer: PeerID) -> Bool
    /// Whether two machines have the identity of the peer, or this machine's own.
    func isInConflict(with peer: PeerID) -> Bool
    /// Whether a check for an identity conflict of the peer is in progress, which takes at most 5 s.
    func isUndecided(_ peer: PeerID) -> Bool
    /// Whether the outbox had rows for the peer when it was last read.
    func hadRows(for peer: PeerID) -> Bool
    /// Creates a courier for the peer, for example by a dial. Its `connected` is reported before `completion`, which is called after this
    /// method returns.
    /// - Returns: `false` if the peer has no address; `completion` is not called then.
    func reach(_ peer: PeerID, then completion: @escaping @Sendable (isolated Self, _ isReached: Bool) -> Void) -> Bool
    /// Records results of rows for metrics.
    nonisolated func answered(_ results: [RowResult])
    /// Records the time from sending a hex to its result for metrics, of one hex at a time for each peer.
    nonisolated func measured(_ time: Duration)
    /// Notifies watchers that rows changed.
    nonisolated func outboxChanged()
    /// Notes that the scheduler removed a peer without a courier, queued rows and rows in flight.
    func deliveryEnded(with peer: PeerID)
}
