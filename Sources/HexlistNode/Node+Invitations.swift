import HexlistModel
import HexlistWire

/// Whoever was refused for now is told by another Hello as soon as this node may take more, so that nobody waits for `retryAfter`
/// (Docs/Protocol.md, "Refusals").
extension Node {
    /// Peers remembered as refused; a person's one command leads to no more dials than that. Others wait for `retryAfter`.
    static let refusedPeersBound = 64

    /// - Parameter takings: as they were when the store was asked.
    func noteRefusals(_ results: [InboundResult], of session: PeerSession, decidedAt takings: Int) {
        guard let peer = session.peer, results.contains(where: \.isForNow) else { return }
        if takings != self.takings {
            invite(peer)  // what was decided is outdated
        } else if refusedPeers.count < Node.refusedPeersBound {
            refusedPeers.insert(peer)
        }
    }

    /// More may be taken than before: of whom, is seen when they try again.
    func mayTakeMore() {
        takings += 1
        let peers = refusedPeers
        refusedPeers = []
        for peer in peers { invite(peer) }
    }

    /// After a change of trust. A peer that is trusted now may send what was refused before, and is likely to trust this node too; and
    /// whatever becomes of its held hexes may make room for those of others.
    func trustTold(of peer: PeerID, _ trust: Trust) {
        refusedPeers.remove(peer)
        if trust == .trusted {
            invite(peer)
            if let link = links[peer] {
                link.delivery.trustBegan()
                kick(link)
            }
        }
        mayTakeMore()
    }

    /// Says Hello again, on a new session where there is none.
    private func invite(_ peer: PeerID) {
        let open = links[peer]?.sessions.filter(\.machine.isOpen) ?? []
        guard open.isEmpty else {
            for session in open { tellHello(session, always: true) }
            return
        }
        guard directory.isVerified(peer), !isQuarantined(peer), trust(of: peer, fingerprint: nil) != .blocked else { return }
        invitations.insert(peer)
        let endpoints = directory.endpoints(of: peer)
        guard !endpoints.isEmpty, links[peer]?.isDialling != true else { return }
        dial(peer, endpoints) { node, connected in
            if !connected { node.invitations.remove(peer) }
        }
    }
}

extension InboundResult {
    var isForNow: Bool { if case .refused(let code, _, _) = self { code.isTemporary } else { false } }
}
