import HexlistDiscovery
import HexlistModel
import HexlistSession
import HexlistTransport
import HexlistWire
import NIOCore

protocol InvitationsHost: LinkHost {
    var invitations: Invitations { get }
    var known: PeerRegistry { get }
    func isQuarantined(_ peer: PeerID) -> Bool
    /// - Parameter always: also where the peer has heard the same before.
    func tellHello(_ session: PeerSession, always: Bool)
}

/// Invites peers that were refused for now, by another Hello as soon as the node may take more, so that they need not wait for `retryAfter`
/// (Docs/Protocol.md, "Refusals").
final class Invitations {
    /// The most strangers remembered as refused, and as many to be told later; others wait for `retryAfter`. All trusted peers are
    /// remembered, because the user chose them.
    static let strangersBound = 64

    enum Invitation {
        /// For a peer that is here, and is dialled in its turn.
        case now
        /// For a peer that was away when more could be taken: with its next Hello.
        case later
    }

    /// Peers that were refused for now since they were last told that more may be taken. Of strangers at most `strangersBound`.
    var refused: Set<PeerID> = []
    /// Peers that are to be told on the next session with them. Of strangers at most `strangersBound` later.
    private(set) var invited: [PeerID: Invitation] = [:]
    private var turns = InvitationSlots()
    /// Rises whenever more may be taken than before.
    private(set) var takings = 0

    /// - Parameter takings: as they were when the store was asked.
    func refused(_ results: [DeliveryResult], of session: PeerSession, decidedAt takings: Int, _ host: isolated some InvitationsHost) {
        guard let peer = session.peer, results.contains(where: \.isTemporary) else { return }
        if takings != self.takings {
            invite(peer, host)  // what was decided is outdated
        } else if isTrusted(peer, host) || refused.count(where: { !isTrusted($0, host) }) < Self.strangersBound {
            refused.insert(peer)
        }
    }

    /// More may be taken than before: of whom, is seen when they try again.
    func mayTakeMore(_ host: isolated some InvitationsHost) {
        takings += 1
        let trusted = refused.filter { isTrusted($0, host) }
        let strangers = refused.subtracting(trusted)
        refused = []
        for peer in Array(trusted) + strangers { invite(peer, host) }
    }

    /// Forgets what a peer was refused or is to be told.
    func forget(_ peer: PeerID) {
        refused.remove(peer)
        if invited[peer] == .later { invited[peer] = nil }
    }

    /// Says Hello again: on the sessions there are, on a new one where the peer is here, else on the next one there will be.
    func invite(_ peer: PeerID, _ host: isolated some InvitationsHost) {
        let open = host.sessions(with: peer).filter(\.machine.isOpen)
        guard open.isEmpty else {
            for session in open { host.tellHello(session, always: true) }
            return
        }
        guard !host.isQuarantined(peer), host.known[peer]?.trust != .blocked else { return }
        guard host.isVerified(peer) else { return inviteLater(peer, host) }
        invited[peer] = .now
        turns.ask(peer, isTrusted: isTrusted(peer, host))
        dial(host)
    }

    /// A peer is away now, or the dial to it failed.
    func peerLeft(_ peer: PeerID, _ host: isolated some InvitationsHost) { if invited[peer] == .now { inviteLater(peer, host) } }

    /// Takes the invitation of a peer that says Hello.
    /// - Returns: whether it is to be told with another Hello.
    func take(_ peer: PeerID) -> Bool { invited.removeValue(forKey: peer) != nil }

    /// Remembers a peer that is away. Where there are too many strangers, one more takes the place of another.
    func inviteLater(_ peer: PeerID, _ host: isolated some InvitationsHost) {
        invited[peer] = nil
        if !isTrusted(peer, host) {
            let strangers = invited.filter { $0.value == .later && !isTrusted($0.key, host) }
            if strangers.count >= Self.strangersBound, let other = strangers.first { invited[other.key] = nil }
        }
        invited[peer] = .later
    }

    private func isTrusted(_ peer: PeerID, _ host: isolated some InvitationsHost) -> Bool { host.known.record(of: peer)?.trust == .trusted }

    /// Dials those whose turn it is and who have not come meanwhile.
    private func dial(_ host: isolated some InvitationsHost) {
        while !host.isStopping, let peer = turns.next() {
            let endpoints = host.endpoints(of: peer)
            let hasSession = host.isDialling(peer) || host.sessions(with: peer).contains(where: \.machine.isOpen)
            guard invited[peer] == .now, !endpoints.isEmpty, !hasSession, host.known[peer]?.trust != .blocked else {
                turns.ended()
                continue
            }
            host.dial(peer, endpoints) { host, connected in
                host.invitations.turns.ended()
                if !connected { host.invitations.peerLeft(peer, host) }
                host.invitations.dial(host)
            }
        }
    }
}

/// The order in which peers are dialled for invitations: a limited number at once, trusted peers before strangers.
struct InvitationSlots {
    /// The dials at once. One command of the user causes no burst of dials, and dead addresses leave turns for others.
    static let atOnce = 8

    private var trusted: CircularBuffer<PeerID> = []
    private var strangers: CircularBuffer<PeerID> = []
    private var running = 0

    mutating func ask(_ peer: PeerID, isTrusted: Bool) {
        if isTrusted { trusted.append(peer) } else { strangers.append(peer) }
    }

    /// `nil` while as many dials run as may. Each one it gives has to be `ended`.
    mutating func next() -> PeerID? {
        guard running < Self.atOnce, let peer = trusted.popFirst() ?? strangers.popFirst() else { return nil }
        running += 1
        return peer
    }

    mutating func ended() { running -= 1 }
}
