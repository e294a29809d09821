import HexlistModel

/// Decides which of two live sessions with the same boot nonce of a peer ends (Docs/Protocol.md, "Session", "Two sessions with one peer").
enum DuplicateSessions {
    enum Resolution: Sendable, Equatable {
        case endOlder
        case endNewer
        /// Keep both: the peer dialled both sessions and ends one itself.
        case leaveToPeer
    }

    static func resolution(own: PeerID, peer: PeerID, olderDialledHere: Bool, newerDialledHere: Bool) -> Resolution {
        guard olderDialledHere != newerDialledHere else { return newerDialledHere ? .endOlder : .leaveToPeer }
        // One session was dialled by each machine. The one dialled by the machine with the greater UUID stays.
        let newerStays = newerDialledHere == (own > peer)
        return newerStays ? .endOlder : .endNewer
    }

    /// A session that existed before the newest one.
    struct OlderSession: Sendable, Equatable {
        /// Whether the session received a Hello, and no challenge on it is unanswered.
        var isAnswered: Bool
        /// Whether the users are comparing the digits of a pairing on the session.
        var isPairing = false
        /// Whether the session's boot nonce differs from that of the newest session. If the peer still answers on such a session, two
        /// machines have the key.
        var isOtherStart = false
    }

    /// Maximum sessions of a key that were dialled by the same machine, including the newest one, which is never challenged. A key
    /// therefore has at most four sessions: two dialled by each machine.
    static let sessionsOfOneKey = 2

    /// Returns the surplus sessions, to be ended with `Bye` `limit`: first those that have not answered, then the oldest. Sessions with
    /// another boot nonce than the newest one are not ended, because they may show a second machine. If there are too many of these alone,
    /// the newest session ends.
    /// - Parameter older: all sessions but the newest one, oldest first.
    /// - Returns: the indices of the older sessions to end, and whether the newest one ends.
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
