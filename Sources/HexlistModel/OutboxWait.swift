/// The reason why a queued row of the outbox is not on its way. The raw values are those of the local API and of the store.
public enum OutboxWait: String, Sendable, CaseIterable {
    /// The peer, which is away.
    case peer
    /// The end of a conflict: two machines have one identity, the peer's or the own one.
    case conflict
    /// A session: the peer is being dialled.
    case session
    /// A turn: other transfers go first.
    case turn
    /// Room: as much as the peer takes at once is on its way to it.
    case window
    /// The end of a pause, after a failure or because the peer asked for it.
    case retry
    /// The peer's trust: the row is longer than what it takes of strangers.
    case trust
}
