/// The user's setting for hexes from one peer. It can only add restrictions: hexes of strangers are also subject to `receiveFrom`, and
/// hexes of blocked peers are always refused.
public enum PeerReceiveSetting: String, CaseIterable, Sendable {
    /// Hexes are stored as the peer's trust and `receiveFrom` determine.
    case inbox
    /// Hexes are stored outside the inbox, even if the peer is trusted.
    case held
    /// Hexes are refused temporarily. They stay in the peer's outbox.
    case nothing
}
