import HexlistDiscovery
import HexlistEventLoop
import HexlistModel
import HexlistSession
import HexlistTransport
import HexlistWire
import NIOCore

/// The parts of a node that a `RefusedPeersNotifier` uses.
protocol RefusedPeersNotifierHost: EventLoopActor {
    var refusedPeersNotifier: RefusedPeersNotifier { get }
    var registry: PeerRegistry { get }
    func isVerified(_ peer: PeerID) -> Bool
    /// Whether deliveries to the peer are held back because of an identity conflict.
    func isQuarantined(_ peer: PeerID) -> Bool
    /// The open sessions with a peer, oldest first.
    func sessions(with peer: PeerID) -> [PeerSession]
    /// The addresses at which the peer can be dialled, the best first.
    func endpoints(of peer: PeerID) -> [Endpoint]
    /// Whether a dial to the peer for its outbox rows is in progress.
    func isDialling(_ peer: PeerID) -> Bool
    /// Dials a peer, and begins a session if it answers.
    func dial(_ peer: PeerID, _ endpoints: [Endpoint], then completion: @escaping @Sendable (isolated Self, _ connected: Bool) -> Void)
    /// - Parameter always: whether to send a Hello even if nothing changed since the last one.
    func sendHello(_ session: PeerSession, always: Bool)
}

/// When the node may accept more than before, sends another Hello to the peers that it refused temporarily, so that they need not wait for
/// `retryAfter` (Docs/Protocol.md, "Refusals").
final class RefusedPeersNotifier {
    /// Maximum number of strangers in `refused`, and of strangers with a notice `later`. Further strangers get no notice and wait for
    /// `retryAfter`. Trusted peers are not limited, because the user chose them.
    static let strangerLimit = 64

    enum Notice {
        /// The peer is online and is dialled.
        case now
        /// The peer is away; it gets another Hello on its next session.
        case later
    }

    /// The peers that were refused temporarily and got no notice since.
    var refused: Set<PeerID> = []
    private(set) var pending: [PeerID: Notice] = [:]
    private var slots = CapacityNoticeDialSlots()
    /// Increases whenever more may be accepted than before.
    private(set) var capacityEpoch = 0

    /// Records a peer whose hexes were refused temporarily.
    /// - Parameter epoch: `capacityEpoch` at the time of the decision.
    func refused(_ results: [DeliveryResult], of session: PeerSession, decidedAt epoch: Int, _ host: isolated some RefusedPeersNotifierHost)
    {
        guard let peer = session.peer, results.contains(where: \.isTemporary) else { return }
        if epoch != capacityEpoch {
            notify(peer, host)  // the refusal is outdated
        } else if isTrusted(peer, host) || refused.count(where: { !isTrusted($0, host) }) < Self.strangerLimit {
            refused.insert(peer)
        }
    }

    /// Notifies all refused peers, because more may be accepted than before.
    func mayAcceptMore(_ host: isolated some RefusedPeersNotifierHost) {
        capacityEpoch += 1
        let trusted = refused.filter { isTrusted($0, host) }
        let strangers = refused.subtracting(trusted)
        refused = []
        for peer in Array(trusted) + strangers { notify(peer, host) }
    }

    /// Removes a peer from `refused`, and its notice if that is postponed (`later`).
    func forget(_ peer: PeerID) {
        refused.remove(peer)
        if pending[peer] == .later { pending[peer] = nil }
    }

    /// Sends another Hello on the open sessions with a peer; without one, dials the peer if it is online, or waits for its next session.
    func notify(_ peer: PeerID, _ host: isolated some RefusedPeersNotifierHost) {
        let open = host.sessions(with: peer).filter(\.machine.isOpen)
        guard open.isEmpty else {
            for session in open { host.sendHello(session, always: true) }
            return
        }
        guard !host.isQuarantined(peer), host.registry[peer]?.trust != .blocked else { return }
        guard host.isVerified(peer) else { return notifyLater(peer, host) }
        pending[peer] = .now
        slots.request(peer, isTrusted: isTrusted(peer, host))
        dial(host)
    }

    /// Postpones the notice to a peer that went away, or could not be dialled.
    func peerLeft(_ peer: PeerID, _ host: isolated some RefusedPeersNotifierHost) { if pending[peer] == .now { notifyLater(peer, host) } }

    /// Removes the pending notice to a peer that sent a Hello.
    /// - Returns: whether to send another Hello.
    func take(_ peer: PeerID) -> Bool { pending.removeValue(forKey: peer) != nil }

    /// Notifies a peer on its next session. If there are too many strangers, the notice to another stranger is dropped.
    func notifyLater(_ peer: PeerID, _ host: isolated some RefusedPeersNotifierHost) {
        pending[peer] = nil
        if !isTrusted(peer, host) {
            let strangers = pending.filter { $0.value == .later && !isTrusted($0.key, host) }
            if strangers.count >= Self.strangerLimit, let other = strangers.first { pending[other.key] = nil }
        }
        pending[peer] = .later
    }

    private func isTrusted(_ peer: PeerID, _ host: isolated some RefusedPeersNotifierHost) -> Bool {
        host.registry.record(of: peer)?.trust == .trusted
    }

    /// Dials the next peers to notify, except those with a session.
    private func dial(_ host: isolated some RefusedPeersNotifierHost) {
        while !host.isStopping, let peer = slots.next() {
            let endpoints = host.endpoints(of: peer)
            let hasSession = host.isDialling(peer) || host.sessions(with: peer).contains(where: \.machine.isOpen)
            guard pending[peer] == .now, !endpoints.isEmpty, !hasSession, host.registry[peer]?.trust != .blocked else {
                slots.ended()
                continue
            }
            host.dial(peer, endpoints) { host, connected in
                host.refusedPeersNotifier.slots.ended()
                if !connected { host.refusedPeersNotifier.peerLeft(peer, host) }
                host.refusedPeersNotifier.dial(host)
            }
        }
    }
}

/// A limit on concurrent dials that notify peers. Trusted peers are dialled before strangers.
struct CapacityNoticeDialSlots {
    /// Maximum number of dials at once.
    static let atOnce = 8

    private var trusted: CircularBuffer<PeerID> = []
    private var strangers: CircularBuffer<PeerID> = []
    private var running = 0

    mutating func request(_ peer: PeerID, isTrusted: Bool) {
        if isTrusted { trusted.append(peer) } else { strangers.append(peer) }
    }

    /// The next peer to dial; `nil` if none waits or `atOnce` dials are in progress. The caller reports the end of the dial with `ended`.
    mutating func next() -> PeerID? {
        guard running < Self.atOnce, let peer = trusted.popFirst() ?? strangers.popFirst() else { return nil }
        running += 1
        return peer
    }

    mutating func ended() { running -= 1 }
}
