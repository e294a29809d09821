public import HexlistEventLoop
public import HexlistModel
public import Logging

/// The decisions and the services that the delivery needs of the actor it belongs to.
public protocol DeliveryHost: EventLoopActor {
    nonisolated var logger: Logger { get }
    nonisolated var outbox: any OutboxStore { get }
    var deliveries: DeliveryScheduler { get }
    /// Whether the peer is reachable as far as discovery knows.
    func isVerified(_ peer: PeerID) -> Bool
    /// Whether two machines have one identity, that of the peer or this machine's own.
    func isInConflict(with peer: PeerID) -> Bool
    /// Whether it is still unknown if two machines have the peer's identity, which takes at most 5 s.
    func isUndecided(_ peer: PeerID) -> Bool
    /// Whether the outbox had rows for the peer when it was last read.
    func hadRows(for peer: PeerID) -> Bool
    /// Makes a courier for the peer, for instance by a dial. A courier that comes of it is reported by `connected` before `completion`, which
    /// is never called before this returns.
    /// - Returns: `false`, and `completion` is not called, if the peer has no address.
    func reach(_ peer: PeerID, then completion: @escaping @Sendable (isolated Self, _ isReached: Bool) -> Void) -> Bool
    /// A peer answered for rows. For metrics.
    nonisolated func answered(_ results: [RowResult])
    /// The time from sending a hex to its result, of one hex at a time for each peer. For metrics.
    nonisolated func measured(_ time: Duration)
    /// Rows changed, so lists of them are outdated.
    nonisolated func outboxChanged()
    /// The scheduler forgot the peer: nothing of it is queued or in flight, and it has no courier.
    func deliveryEnded(with peer: PeerID)
}
