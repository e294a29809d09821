import HexlistEventLoop
import HexlistModel
import HexlistWire
import NIOCore

/// The state of one peer that has a session, or rows to send. A reference, so that its queues change in place.
final class PeerLink {
    let peer: PeerID
    /// Open sessions, oldest first; the last one is sent on. More than one only while duplicates are being settled.
    var sessions: [PeerSession] = []
    var delivery = PeerDelivery()
    /// Transfers in a row that failed; what is stored or held ends the row.
    var transferFailures = 0
    /// The pauses after failures in a row, with full jitter from `shortestPause` up: at most 2, 4, 8 … 300 s.
    static let backoff = Backoff(from: .seconds(2), to: .seconds(300))
    static let shortestPause = Duration.seconds(1)
    /// The pause after a peer said that two machines have this one's identity: it looks at that every half minute.
    static let conflictPause = Duration.seconds(30)
    /// Whether this node dials for rows that wait; the directory's probes are apart.
    var isDialling = false
    /// Whether rows may have waited when the last session ended.
    var endedWithRows = true
    /// The timer that fires when a pause is over.
    let resumption: DeadlineTimer
    /// Whether an alert was recorded since the last session of this peer ended: a stranger's go into the event log once.
    var alertRecorded = false

    /// The hex of which the time to its receipt is measured, and when it was sent; `nil` while none is.
    var measured: (row: Int64, at: ContinuousClock.Instant)?

    /// When the peer was last dialled because it asked to be.
    var dialledBackAt: ContinuousClock.Instant?
    /// When the peer was last asked to dial.
    var askedBackAt: ContinuousClock.Instant?
    /// What it answered then; `nil` while it has not.
    var answeredBack: DialBack.Result?

    init(peer: PeerID, on eventLoop: any EventLoop, _ clocks: Clocks) {
        self.peer = peer
        resumption = DeadlineTimer(on: eventLoop, clocks)
    }

    var sending: PeerSession? { sessions.last }

    /// Whether open sessions have different boot numbers: their peer restarted, or is two machines.
    var hasSeveralStarts: Bool {
        guard sessions.count > 1 else { return false }
        let open = sessions.lazy.filter { !$0.machine.isClosed }
        return open.contains { $0.machine.peerHello?.boot != open.first?.machine.peerHello?.boot }
    }

    /// Whether the peer answered for all that was sent to it.
    var isAnswered: Bool { sessions.allSatisfy(\.machine.unacknowledgedTags.isEmpty) }
}
