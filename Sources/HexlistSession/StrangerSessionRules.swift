/// The rules for the limits that sessions dialled by strangers share (`SessionLimits`).
enum StrangerSessionRules {
    /// Chooses the session to end if there are too many. It is the oldest one of the network with the most sessions, so a peer that opens
    /// many sessions loses one of its own.
    /// - Parameter networks: the network of each session, oldest session first, the new session last.
    /// - Returns: the index of the session to end; `nil` if the limit is not exceeded.
    static func surplus(_ networks: [String], limit: Int) -> Int? {
        guard networks.count > max(1, limit) else { return nil }
        var counts: [String: Int] = [:]
        for network in networks { counts[network, default: 0] += 1 }
        let most = counts.values.max() ?? 0
        return networks.firstIndex { counts[$0] == most }
    }

    /// Returns the maximum frames per second for each session.
    static func rate(each: Int, together: Int, sessions: Int) -> Double {
        min(Double(each), Double(together) / Double(max(1, sessions)))
    }
}
