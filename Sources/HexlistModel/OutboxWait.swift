/// The reason why a queued outbox row is not being sent. The raw values are used by the local API and the store.
public enum OutboxWait: String, Sendable, CaseIterable {
    /// The peer is offline.
    case peer
    /// Two machines have the same identity, the peer's or this one's.
    case conflict
    /// There is no session yet: the peer is being dialled.
    case session
    /// No slot is free: other peers are being sent to.
    case slot = "turn"
    /// The window is full: the maximum is in flight to the peer.
    case window
    /// Back-off after a failure, or at the peer's request.
    case retry
    /// The peer does not trust this machine, and the row is longer than its limit for strangers.
    case trust
}
