/// The list in which a stored hex is.
public enum HexLocation: String, Sendable, CaseIterable {
    /// The inbox: hexes that were accepted, automatically or by the user.
    case inbox
    /// Hexes of strangers, limited by a quota. They stay here until the user trusts the sender or accepts the hex.
    case held
    /// My Hexlist: the user's own hexes.
    case mine
}
