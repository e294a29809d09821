import HexlistEventLoop
import HexlistModel
import NIOCore

/// The scheduler's state of one peer: its couriers, rows and pauses. A class, so that its queues are modified in place.
final class PeerDeliveryContext {
    let peer: PeerID
    /// The couriers, oldest first; the last one is used. Only while duplicate sessions are being compared, there are several.
    var couriers: [any Courier] = []
    var delivery = PeerDelivery()
    /// The number of failed transfers in a row, for the back-off. A delivered hex resets it.
    var transferFailures = 0
    /// Whether the peer is being dialled because of queued rows.
    var isReaching = false
    /// Whether rows may have been queued when the last courier ended.
    var endedWithRows = true
    /// The timer that resumes sending after a pause.
    let resumption: DeadlineTimer
    /// The row in flight whose round-trip time is being measured, and the instant at which it was sent.
    var measured: (row: Int64, at: ContinuousClock.Instant)?

    /// The pause after consecutive failures: a random time between `shortestPause` and a maximum of 2, 4, 8 … 300 s (full jitter).
    static let backoff = Backoff(from: .seconds(2), to: .seconds(300))
    static let shortestPause = Duration.seconds(1)
    /// The pause after a peer has reported an identity conflict. A peer checks for it every 30 s.
    static let conflictPause = Duration.seconds(30)

    init(peer: PeerID, on eventLoop: any EventLoop, _ clocks: Clocks) {
        self.peer = peer
        resumption = DeadlineTimer(on: eventLoop, clocks)
    }

    var courier: (any Courier)? { couriers.last }

    /// Whether no courier has a row in flight.
    var isAnswered: Bool { couriers.allSatisfy(\.inFlight.isEmpty) }
}
