import HexlistEventLoop
import HexlistModel
import NIOCore

/// The delivery to one peer that has a courier, or rows to send. A reference, so that its queues change in place.
final class DeliveryLink {
    let peer: PeerID
    /// The couriers, the newest last, which is used. There is more than one only while duplicate sessions are being settled.
    var couriers: [any Courier] = []
    var delivery = PeerDelivery()
    /// Transfers in a row that failed; a delivered hex resets it.
    var transferFailures = 0
    /// Whether a courier is being made.
    var isReaching = false
    /// Whether rows may have waited when the last courier ended.
    var endedWithRows = true
    /// The timer for the end of a pause.
    let resumption: DeadlineTimer
    /// The hex of which the time to its result is measured, and when it was sent; `nil` while none is.
    var measured: (row: Int64, at: ContinuousClock.Instant)?

    /// The pauses after failures in a row, with full jitter from `shortestPause` up: at most 2, 4, 8 … 300 s.
    static let backoff = Backoff(from: .seconds(2), to: .seconds(300))
    static let shortestPause = Duration.seconds(1)
    /// The pause after a peer said that two machines have this one's identity: it checks that every 30 s.
    static let conflictPause = Duration.seconds(30)

    init(peer: PeerID, on eventLoop: any EventLoop, _ clocks: Clocks) {
        self.peer = peer
        resumption = DeadlineTimer(on: eventLoop, clocks)
    }

    var courier: (any Courier)? { couriers.last }

    /// Whether every row that was sent has its result.
    var isAnswered: Bool { couriers.allSatisfy(\.inFlight.isEmpty) }
}
