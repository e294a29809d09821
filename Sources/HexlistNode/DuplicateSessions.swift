import HexlistModel

/// Which of two live sessions with one start of one peer goes (Docs/Protocol.md, "Session", 3).
enum DuplicateSessions {
    enum Verdict: Sendable, Equatable {
        case endOlder
        case endNewer
        /// The same side dialled both, and it is not this one: that side says `Bye`.
        case leaveToPeer
    }

    static func verdict(own: PeerID, peer: PeerID, olderDialledHere: Bool, newerDialledHere: Bool) -> Verdict {
        guard olderDialledHere != newerDialledHere else { return newerDialledHere ? .endOlder : .leaveToPeer }
        // Two dialers: the session the greater UUID dialled stays.
        let newerStays = newerDialledHere == (own > peer)
        return newerStays ? .endOlder : .endNewer
    }
}
