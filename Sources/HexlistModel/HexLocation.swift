/// The part of the store to which a hex belongs.
public enum HexLocation: String, Sendable, CaseIterable {
    /// The inbox: hexes that were accepted, automatically or by the user.
    case inbox
    /// Hexes outside the inbox: those of strangers, limited by a quota, and those of peers with the setting `PeerReceiveSetting.held`. They stay
    /// held until the user trusts the sender, changes this setting, or accepts them.
    case held
    /// My Hexlist: the user's own hexes.
    case mine
}
