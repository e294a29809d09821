import HexlistModel
import HexlistSession
import HexlistWire

/// The open sessions with one peer, and what this machine asked it for on them. Kept as long as there is a session, or the delivery knows the
/// peer, so that limits outlive a session.
struct PeerSessions {
    /// Open sessions, oldest first; the last one is used. More than one only while duplicates are being settled.
    var sessions: [PeerSession] = []
    /// Whether an alert was recorded since the last session of this peer ended: a stranger's go into the event log once.
    var alertRecorded = false
    /// When the peer was last dialled because it asked to be.
    var dialledBackAt: ContinuousClock.Instant?
    /// When the peer was last asked to dial.
    var askedBackAt: ContinuousClock.Instant?
    /// The peer's answer then; `nil` while it has not answered.
    var answeredBack: DialBack.Result?

    var sending: PeerSession? { sessions.last }

    /// Whether open sessions have different boot numbers: their peer restarted, or is two machines.
    var hasSeveralStarts: Bool {
        guard sessions.count > 1 else { return false }
        let open = sessions.lazy.filter { !$0.machine.isClosed }
        return open.contains { $0.machine.peerHello?.boot != open.first?.machine.peerHello?.boot }
    }
}
