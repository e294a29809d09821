/// What is done with the hexes of one peer, as the user set it. It only narrows what trust and `receiveFrom` allow: a stranger's hexes
/// never go further than `receiveFrom` says, and of a blocked peer nothing is taken.
public enum PeerReceive: String, CaseIterable, Sendable {
    /// As trust and `receiveFrom` say.
    case inbox
    /// They are held, out of the inbox, also those of a trusted peer.
    case held
    /// They are refused for now; the peer keeps them.
    case nothing
}
