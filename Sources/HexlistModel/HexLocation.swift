/// Where a stored hex is.
public enum HexLocation: String, Sendable, CaseIterable {
    /// Received, and taken in.
    case inbox
    /// Received from a stranger and kept apart, within a quota, until its sender is trusted or it is accepted.
    case held
    /// My Hexlist: one's own bundles.
    case mine
}
