import HexlistModel

/// Recognizes alerts that a peer repeats on each of its sessions. A peer that blocks this machine does so before every `Bye` `blocked`, but
/// its person blocked once.
struct AlertRepetitions {
    typealias Instant = ContinuousClock.Instant

    /// Lifetime of a session after Hello from which a repeated text is recorded again; a blocking peer ends sessions sooner.
    static let repetitionInterval: Duration = .seconds(3)

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
