import HexlistDiscovery
import HexlistEventLoop
import HexlistModel
import HexlistSession
import HexlistStore
import Logging
import NIOCore

/// The parts of a node that the owners of its state use. An owner is a class that lives on the node's event loop: its methods take the node
/// as their `isolated` host, and callbacks of timers and of the store come back through the host, so it needs neither locks nor tasks.
protocol NodeHost: EventLoopActor {
    nonisolated var store: HexStore { get }
    nonisolated var logger: Logger { get }
    nonisolated var metrics: NodeMetrics { get }
    nonisolated var watchers: Watchers { get }
    var configuration: NodeConfiguration { get }
}

/// The parts of a node that an owner uses that makes sessions.
protocol DialHost: NodeHost {
    /// Whether the peer is here.
    func isVerified(_ peer: PeerID) -> Bool
    /// The places where the peer can be dialled, the best first.
    func endpoints(of peer: PeerID) -> [Endpoint]
    /// Dials a peer for work of this node's own, and begins the session where it answers.
    func dial(_ peer: PeerID, _ endpoints: [Endpoint], then completion: @escaping @Sendable (isolated Self, _ connected: Bool) -> Void)
}

/// The parts of a node that an owner uses that goes by the sessions there are.
protocol LinkHost: DialHost {
    /// The open sessions with a peer, oldest first.
    func sessions(with peer: PeerID) -> [PeerSession]
    /// Whether a dial for rows that wait is under way.
    func isDialling(_ peer: PeerID) -> Bool
}
