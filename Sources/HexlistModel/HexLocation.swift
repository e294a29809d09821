/// The place of a stored hex.
public enum HexLocation: String, Sendable, CaseIterable {
    /// The inbox: received and accepted.
    case inbox
    /// Received from a stranger and kept outside the inbox, within a quota, until the sender is trusted or the hex is accepted.
    case held
    /// My Hexlist: the user's own hexes.
    case mine
}
