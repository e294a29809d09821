import HexlistAPI
import HexlistDelivery
import HexlistDiscovery
import HexlistEventLoop
import HexlistModel
import HexlistSession
import HexlistStore
import HexlistTransport

// What the outbox asks of the node, and the node of it.
extension Node {
    /// Calls the deliveries, which belong to the outbox on the same event loop.
    func deliver<Value: Sendable>(_ body: @Sendable (DeliveryScheduler, isolated Outbox) -> Value) -> Value {
        outbox.assumeIsolated { body($0.deliveries, $0) }
    }

    /// Makes all callers that wait for rows look again, because what the rows wait for may have changed.
    func wakeWaiters() { deliver { $0.wakeWaiters($1) } }

    func deliveryEnded(with peer: PeerID) { if links[peer]?.sessions.isEmpty ?? false { links[peer] = nil } }

    /// A session can take more hexes.
    func roomMade(on session: PeerSession) {
        guard let peer = session.peer else { return }
        deliver { $0.pump(session, to: peer, $1) }
    }

    /// A session's peer answered for rows.
    func settled(_ rows: [RowResult], on session: PeerSession) {
        guard let peer = session.peer else { return }
        deliver { $0.settled(rows, by: session, to: peer, $1) }
    }
}
