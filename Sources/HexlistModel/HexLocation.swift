/// The list that contains a stored hex.
public enum HexLocation: String, Sendable, CaseIterable {
    /// The inbox: received and accepted hexes.
    case inbox
    /// Hexes of strangers, within a quota, until the sender is trusted or the hex is accepted.
    case held
    /// My Hexlist: hexes of the user.
    case mine
}
