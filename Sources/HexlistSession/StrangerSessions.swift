/// The limits that inbound sessions of strangers share (`SessionLimits`).
enum StrangerSessions {
    /// Chooses the session to end if there are too many: the oldest one of the network that has the most sessions, so that a peer that
    /// opens many sessions loses one of its own.
    /// - Parameter networks: the network of each session, oldest first, the newcomer's last.
    /// - Returns: the session's index; `nil` if none has to end.
    static func surplus(_ networks: [String], limit: Int) -> Int? {
        guard networks.count > max(1, limit) else { return nil }
        var counts: [String: Int] = [:]
        for network in networks { counts[network, default: 0] += 1 }
        let most = counts.values.max() ?? 0
        return networks.firstIndex { counts[$0] == most }
    }

    /// Maximum frames per second for each session.
    static func rate(each: Int, together: Int, sessions: Int) -> Double {
        min(Double(each), Double(together) / Double(max(1, sessions)))
    }
}
