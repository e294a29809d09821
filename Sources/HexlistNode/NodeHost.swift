import HexlistDiscovery
import HexlistModel
import HexlistStore
import Logging
import NIOCore

/// What the owners of a node's state use of it. An owner is a class that lives on the node's event loop: its methods take the node as their
/// `isolated` host, and callbacks of timers and of the store come back by way of the host, so it needs neither locks nor tasks.
protocol NodeHost: Actor {
    nonisolated var store: HexStore { get }
    nonisolated var eventLoop: any EventLoop { get }
    nonisolated var logger: Logger { get }
    nonisolated var watchers: Watchers { get }
    var configuration: NodeConfiguration { get }
    var isStopping: Bool { get }
}

extension NodeHost {
    /// From a thread of the store or of discovery back to the loop, in order.
    nonisolated func onLoop(_ body: @escaping @Sendable (isolated Self) -> Void) {
        eventLoop.execute { self.assumeIsolated { body($0) } }
    }
}

/// What an owner uses that makes sessions of its own.
protocol DialHost: NodeHost {
    /// Whether the peer is here.
    func isVerified(_ peer: PeerID) -> Bool
    /// Where the peer can be dialled, the best first.
    func endpoints(of peer: PeerID) -> [Endpoint]
    /// Dials a peer for work of this node's own, and begins the session where it answers.
    func dial(_ peer: PeerID, _ endpoints: [Endpoint], then completion: @escaping @Sendable (isolated Self, _ connected: Bool) -> Void)
}

/// What an owner uses that goes by the sessions there are.
protocol LinkHost: DialHost {
    /// Open ones, oldest first.
    func sessions(with peer: PeerID) -> [PeerSession]
    /// Whether a dial for rows that wait is under way.
    func isDialling(_ peer: PeerID) -> Bool
}
