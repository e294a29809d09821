/// What the sessions of strangers that came in get together (`limits.strangerSessions`, `limits.allStrangersFramesPerSecond`):
/// one key costs nothing, so a bound for each peer bounds nobody.
enum StrangerSessions {
    /// Whose session ends where there are too many: the oldest of the network with the most, so that one that opens many loses
    /// its own.
    /// - Parameter networks: of each session, oldest first, the newcomer's last.
    /// - Returns: the index; `nil` for none.
    static func surplus(_ networks: [String], limit: Int) -> Int? {
        guard networks.count > max(1, limit) else { return nil }
        var counts: [String: Int] = [:]
        for network in networks { counts[network, default: 0] += 1 }
        let most = counts.values.max() ?? 0
        return networks.firstIndex { counts[$0] == most }
    }

    /// Frames a second each is read at.
    static func rate(each: Int, together: Int, sessions: Int) -> Double {
        min(Double(each), Double(together) / Double(max(1, sessions)))
    }
}
