import HexlistEventLoop
import HexlistModel
import NIOCore

/// The delivery to one peer: its couriers, rows and pauses. A class, so that the queues are modified without a copy.
final class DeliveryLink {
    let peer: PeerID
    /// The couriers, oldest first. The last one is used. There are several only while duplicate sessions are compared.
    var couriers: [any Courier] = []
    var delivery = PeerDelivery()
    /// The number of failed transfers since the last delivered hex.
    var transferFailures = 0
    /// Whether the peer is being dialled for queued rows.
    var isReaching = false
    /// Whether there may have been queued rows when the last courier ended.
    var endedWithRows = true
    /// The timer for the end of a pause.
    let resumption: DeadlineTimer
    /// The row in flight whose time until its result is being measured, and the instant at which it was sent.
    var measured: (row: Int64, at: ContinuousClock.Instant)?

    /// The pauses after consecutive failures: a random time between `shortestPause` and 2, 4, 8 … 300 s (full jitter).
    static let backoff = Backoff(from: .seconds(2), to: .seconds(300))
    static let shortestPause = Duration.seconds(1)
    /// The pause after a peer reports an identity conflict, which it checks every 30 s.
    static let conflictPause = Duration.seconds(30)

    init(peer: PeerID, on eventLoop: any EventLoop, _ clocks: Clocks) {
        self.peer = peer
        resumption = DeadlineTimer(on: eventLoop, clocks)
    }

    var courier: (any Courier)? { couriers.last }

    /// Whether no row is in flight.
    var isAnswered: Bool { couriers.allSatisfy(\.inFlight.isEmpty) }
}
