/// The user's setting for hexes received from one peer. It can only restrict: hexes of strangers are still subject to `receiveFrom`, and
/// those of blocked peers are refused.
public enum PeerReceive: String, CaseIterable, Sendable {
    /// According to trust and `receiveFrom`.
    case inbox
    /// Kept outside the inbox, even if the peer is trusted.
    case held
    /// Refused temporarily; they stay in the peer's outbox.
    case nothing
}
