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

    /// A session there was before the newest one.
    struct Older: Sendable, Equatable {
        /// It said Hello, and has no Ping to answer that asks whether it lives.
        var isAnswered: Bool
        /// Two people compare digits on it.
        var isPairing = false
    }

    /// With the newest one, which is used and asked nothing yet.
    static let sessionsOfOneKey = 2

    /// Those that end (`Bye` `limit`) because one more came before it was known which of them live: what did not answer goes first, then
    /// the oldest.
    /// - Parameter older: oldest first.
    /// - Returns: indices.
    static func surplus(_ older: [Older]) -> [Int] {
        let order = older.indices.sorted { left, right in
            let (a, b) = (older[left], older[right])
            if a.isPairing != b.isPairing { return b.isPairing }
            return a.isAnswered == b.isAnswered ? left < right : b.isAnswered
        }
        return Array(order.prefix(max(0, older.count + 1 - sessionsOfOneKey)))
    }
}
