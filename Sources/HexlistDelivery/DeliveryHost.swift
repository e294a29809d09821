public import HexlistEventLoop
public import HexlistModel
public import Logging

/// The actor that owns a `DeliveryScheduler`: it knows which peers are online, dials peers, and is notified of results.
public protocol DeliveryHost: EventLoopActor {
    nonisolated var logger: Logger { get }
    nonisolated var outbox: any OutboxStore { get }
    var deliveries: DeliveryScheduler { get }
    /// Whether the peer is online and has proved its key (`verified` in discovery).
    func isVerified(_ peer: PeerID) -> Bool
    /// Whether two machines have the peer's identity, or two machines have this machine's identity.
    func isInConflict(with peer: PeerID) -> Bool
    /// Whether a check for an identity conflict of the peer is in progress. It takes at most 5 s.
    func isUndecided(_ peer: PeerID) -> Bool
    /// Whether rows for the peer were queued when the peer's record was last read from the store.
    func hadRows(for peer: PeerID) -> Bool
    /// Creates a courier for the peer, for example by a dial. If that succeeds, the host calls `DeliveryScheduler.connected` before
    /// `completion`. `completion` is never called before this method returns.
    /// - Returns: `false` if the peer has no address; `completion` is then not called.
    func reach(_ peer: PeerID, then completion: @escaping @Sendable (isolated Self, _ isReached: Bool) -> Void) -> Bool
    /// Records results of rows for metrics.
    nonisolated func answered(_ results: [RowResult])
    /// Records the time from sending a hex to its result, for metrics. For each peer, one hex at a time is measured.
    nonisolated func measured(_ time: Duration)
    /// Notifies watchers that rows changed.
    nonisolated func outboxChanged()
    /// Called after the scheduler has removed its state of a peer, which has no courier, no queued rows and no rows in flight.
    func deliveryEnded(with peer: PeerID)
}
