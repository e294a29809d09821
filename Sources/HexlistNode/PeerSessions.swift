import HexlistModel
import HexlistSession
import HexlistWire

/// The open sessions with one peer, and its rate limits. Kept while there is a session or a delivery to the peer, so that limits outlive a
/// session.
struct PeerSessions {
    /// The sessions whose connection is open, oldest first. There are several only while duplicates are compared.
    var sessions: [PeerSession] = []
    /// Whether an alert was recorded since the first of these sessions opened. Further alerts of a stranger are not recorded.
    var hasRecordedAlert = false
    /// The time of the last dial that the peer requested with a dial-back request.
    var lastDialBack: ContinuousClock.Instant?
    /// The time of this machine's last dial-back request to the peer.
    var lastDialBackRequest: ContinuousClock.Instant?
    /// The answer to the last dial-back request; `nil` until it arrives.
    var dialBackAnswer: DialBack.Result?

    /// The session that is used: the newest one that has not been ended.
    var sending: PeerSession? { sessions.last { !$0.machine.isClosed } }

    /// Whether open sessions have different boot nonces: the peer restarted, or is two machines.
    var hasSeveralBoots: Bool {
        guard sessions.count > 1 else { return false }
        let open = sessions.lazy.filter { !$0.machine.isClosed }
        return open.contains { $0.machine.peerHello?.boot != open.first?.machine.peerHello?.boot }
    }
}
