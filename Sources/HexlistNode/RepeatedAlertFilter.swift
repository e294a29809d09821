import HexlistModel

/// Recognises an `Alert` frame with the same text as the peer's last one, sent on a new session. For example, a peer that blocks this
/// machine sends an `Alert` on every session before it ends the session with `Bye` `blocked`.
struct RepeatedAlertFilter {
    typealias Instant = ContinuousClock.Instant

    /// Minimum time after a peer's last alert, and after the Hello of the new session, before the same text is recorded again. A peer that
    /// blocks this machine ends each session sooner.
    static let repetitionInterval: Duration = .seconds(3)

    private struct Alert {
        var message: String
        var at: Instant
        /// The id of the connection on which the alert arrived.
        var session: UInt64
    }

    /// The last alert of each peer that the directory tracks.
    private var last: [PeerID: Alert] = [:]

    /// Records an alert, unless it repeats the peer's last one on a new session.
    /// - Parameter greetedAt: the time of the session's Hello.
    /// - Returns: whether the alert is to be recorded. `false` if the peer's last alert was on an earlier session and had the same text,
    ///   and if less than `repetitionInterval` has passed since that alert or since this session's Hello.
    mutating func isNews(_ message: String, from peer: PeerID, on session: UInt64, greetedAt: Instant, now: Instant) -> Bool {
        if let last = last[peer], last.session != session, PeerTextComparison.areEqual(last.message, message),
            now - max(last.at, greetedAt) < Self.repetitionInterval
        {
            return false
        }
        last[peer] = Alert(message: message, at: now, session: session)
        return true
    }

    mutating func sessionEnded(of peer: PeerID, greetedAt: Instant, now: Instant) {
        if let last = last[peer], now - max(last.at, greetedAt) >= Self.repetitionInterval { self.last[peer] = nil }
    }

    mutating func forget(_ peer: PeerID) { last[peer] = nil }
}
