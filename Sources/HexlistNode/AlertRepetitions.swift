import HexlistModel

/// Recognizes alerts that a peer repeats on each of its sessions. A peer that blocks this machine does so before every `Bye` `blocked`, but
/// its person blocked once.
struct AlertRepetitions {
    typealias Instant = ContinuousClock.Instant

    /// The life of a session, from its Hello on, after which the same text is news again: a peer that blocks this machine ends sessions
    /// right after Hello.
    static let patience: Duration = .seconds(3)

    private struct Alert {
        var message: String
        var at: Instant
        /// The number of its connection.
        var session: UInt64
    }

    /// The last alert of each peer. Peers that the directory drops are forgotten, so there are as many as it tracks at most.
    private var last: [PeerID: Alert] = [:]

    /// Notes an alert.
    /// - Parameter greetedAt: the instant of its session's Hello.
    /// - Returns: false if an earlier session said the same and none has lived for `patience` since.
    mutating func isNews(_ message: String, from peer: PeerID, on session: UInt64, greetedAt: Instant, now: Instant) -> Bool {
        if let last = last[peer], last.session != session, PeerText.areEqual(last.message, message),
            now - max(last.at, greetedAt) < Self.patience
        {
            return false
        }
        last[peer] = Alert(message: message, at: now, session: session)
        return true
    }

    mutating func sessionEnded(of peer: PeerID, greetedAt: Instant, now: Instant) {
        if let last = last[peer], now - max(last.at, greetedAt) >= Self.patience { self.last[peer] = nil }
    }

    mutating func forget(_ peer: PeerID) { last[peer] = nil }
}
