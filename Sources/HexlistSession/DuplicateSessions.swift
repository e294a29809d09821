import HexlistModel

/// Decides which of two live sessions with the same boot nonce of a peer ends (Docs/Protocol.md, "Session", "Two sessions with one peer").
enum DuplicateSessions {
    enum Resolution: Sendable, Equatable {
        case endOlder
        case endNewer
        /// The peer dialled both sessions and ends one itself.
        case leaveToPeer
    }

    static func resolution(own: PeerID, peer: PeerID, olderDialledHere: Bool, newerDialledHere: Bool) -> Resolution {
        guard olderDialledHere != newerDialledHere else { return newerDialledHere ? .endOlder : .leaveToPeer }
        // Each side dialled one session. The session that the side with the greater UUID dialled stays.
        let newerStays = newerDialledHere == (own > peer)
        return newerStays ? .endOlder : .endNewer
    }

    /// A session that existed before the newest one.
    struct OlderSession: Sendable, Equatable {
        /// Whether the session had a Hello and has no unanswered challenge.
        var isAnswered: Bool
        /// Whether two users are comparing digits on the session.
        var isPairing = false
        /// Whether the session's boot nonce differs from that of the newest session. If such a session still answers a challenge, two
        /// machines have the key.
        var isOtherStart = false
    }

    /// Maximum sessions of a key that the same side dialled, including the newest, which is used and not challenged. A key has at most four
    /// sessions, two dialled by each side.
    static let sessionsOfOneKey = 2

    /// The surplus sessions to end (`Bye` `limit`): first those that did not answer, then the oldest. Sessions with another boot nonce than the
    /// newest one stay, as evidence of a second machine; if only such ones are left and are too many, the newest session ends.
    /// - Parameter older: the sessions, oldest first.
    /// - Returns: their indices, and whether the newest session is to end.
    static func surplus(_ older: [OlderSession]) -> (older: [Int], isNewest: Bool) {
        let order = older.indices.filter { !older[$0].isOtherStart }.sorted { left, right in
            let (a, b) = (older[left], older[right])
            if a.isPairing != b.isPairing { return b.isPairing }
            return a.isAnswered == b.isAnswered ? left < right : b.isAnswered
        }
        let count = max(0, older.count + 1 - sessionsOfOneKey)
        return (Array(order.prefix(count)), count > order.count)
    }
}
