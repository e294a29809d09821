/// The reason why a queued outbox row is not being sent yet. The raw values are used by the local API and the store.
public enum OutboxWaitReason: String, Sendable, CaseIterable {
    /// The peer is offline.
    case peer
    /// The peer is offline, and the row could not be posted on any route so far.
    case route
    /// The row was posted on a route, and the peer has not confirmed it.
    case receipt
    /// Two machines use the same identity, either the peer's or this machine's.
    case conflict
    /// The peer is being dialled; there is no session yet.
    case session
    /// All send slots are taken by other peers.
    case slot = "turn"
    /// The maximum number of hexes or bytes is in flight to the peer.
    case window
    /// The row waits before the next attempt, after a failure or because the peer asked for a delay.
    case retry
    /// This machine is a stranger to the peer, and the row is larger than the peer's limit for frames of strangers.
    case trust
    /// The user of the device has to answer. Only for devices.
    case answer
    /// The device requires a PIN, which is not set, or was wrong. Only for devices.
    case pin
}
