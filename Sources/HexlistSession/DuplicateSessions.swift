import HexlistModel

/// Decides which of two live sessions with one start of one peer ends (Docs/Protocol.md, "Session", 3).
enum DuplicateSessions {
    enum Resolution: Sendable, Equatable {
        case endOlder
        case endNewer
        /// The other side dialled both sessions; it says `Bye` to one.
        case leaveToPeer
    }

    static func resolution(own: PeerID, peer: PeerID, olderDialledHere: Bool, newerDialledHere: Bool) -> Resolution {
        guard olderDialledHere != newerDialledHere else { return newerDialledHere ? .endOlder : .leaveToPeer }
        // Both sides dialled: the session dialled by the greater UUID stays.
        let newerStays = newerDialledHere == (own > peer)
        return newerStays ? .endOlder : .endNewer
    }

    /// A session that existed before the newest one.
    struct OlderSession: Sendable, Equatable {
        /// Whether the session has said Hello and owes no answer to a Ping that asks whether it lives.
        var isAnswered: Bool
        /// Whether two people are comparing digits on it.
        var isPairing = false
        /// Whether it is of another start than the newest session, so that its answer may show that two machines have the key.
        var isOtherStart = false
    }

    /// The most sessions dialled by one side, including the newest, which is in use and unasked. A key has at most four in all.
    static let sessionsOfOneKey = 2

    /// The sessions to end (`Bye` `limit`) because another one came before it was known which of them live: first those that did not
    /// answer, then the oldest. Sessions of other starts than the newest one's stay, as evidence of a second machine; if only such ones are
    /// left and are too many, the newest session ends.
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
