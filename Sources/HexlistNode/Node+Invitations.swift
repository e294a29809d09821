import HexlistModel
import HexlistWire
import NIOCore

/// Whoever was refused for now is told by another Hello as soon as this node may take more, so that nobody waits for `retryAfter`
/// (Docs/Protocol.md, "Refusals").
extension Node {
    /// Strangers remembered as refused; others wait for `retryAfter`. Trusted peers are all remembered: a person chose them.
    static let refusedStrangersBound = 64

    /// - Parameter takings: as they were when the store was asked.
    func noteRefusals(_ results: [InboundResult], of session: PeerSession, decidedAt takings: Int) {
        guard let peer = session.peer, results.contains(where: \.isForNow) else { return }
        if takings != self.takings {
            invite(peer)  // what was decided is outdated
        } else if isTrusted(peer) {
            refusedTrusted.insert(peer)
        } else if refusedStrangers.count < Node.refusedStrangersBound {
            refusedStrangers.insert(peer)
        }
    }

    /// More may be taken than before: of whom, is seen when they try again.
    func mayTakeMore() {
        takings += 1
        let peers = Array(refusedTrusted) + refusedStrangers
        refusedTrusted = []
        refusedStrangers = []
        for peer in peers { invite(peer) }
    }

    /// After a change of trust. A peer that is trusted now may send what was refused before, and is likely to trust this node too; and
    /// whatever becomes of its held hexes may make room for those of others.
    func trustTold(of peer: PeerID, _ trust: Trust) {
        refusedTrusted.remove(peer)
        refusedStrangers.remove(peer)
        invitedLater.remove(peer)
        if trust == .trusted {
            invite(peer)
            deliveries.trustBegan(peer, self)
        }
        mayTakeMore()
    }

    /// Says Hello again: on the sessions there are, on a new one where the peer is here, else on the next one there will be.
    private func invite(_ peer: PeerID) {
        let open = links[peer]?.sessions.filter(\.machine.isOpen) ?? []
        guard open.isEmpty else {
            for session in open { tellHello(session, always: true) }
            return
        }
        guard !isQuarantined(peer), trust(of: peer, fingerprint: nil) != .blocked else { return }
        guard directory.isVerified(peer) else { return inviteLater(peer) }
        invitations.insert(peer)
        invitationTurns.ask(peer, isTrusted: isTrusted(peer))
        dialInvited()
    }

    /// Remembers a peer that is away, so that it is told with its next Hello. Of strangers `refusedStrangersBound` at most: one more takes the
    /// place of another.
    func inviteLater(_ peer: PeerID) {
        invitations.remove(peer)
        if !isTrusted(peer), invitedLater.count { !isTrusted($0) } >= Node.refusedStrangersBound,
            let other = invitedLater.first(where: { !isTrusted($0) })
        {
            invitedLater.remove(other)
        }
        invitedLater.insert(peer)
    }

    /// Takes a peer that says Hello off both lists.
    /// - Returns: whether it is to be told with another Hello.
    func takeInvitation(_ peer: PeerID) -> Bool {
        let isInvited = invitations.remove(peer) != nil
        return invitedLater.remove(peer) != nil || isInvited
    }

    private func isTrusted(_ peer: PeerID) -> Bool { trust(of: peer, fingerprint: fingerprints[peer]) == .trusted }

    /// Dials those whose turn it is and who have not come meanwhile.
    private func dialInvited() {
        while !isStopping, let peer = invitationTurns.next() {
            let endpoints = directory.endpoints(of: peer)
            let hasSession = links[peer].map { link in link.isDialling || link.sessions.contains(where: \.machine.isOpen) } ?? false
            guard invitations.contains(peer), !endpoints.isEmpty, !hasSession, trust(of: peer, fingerprint: nil) != .blocked else {
                invitationTurns.ended()
                continue
            }
            dial(peer, endpoints) { node, connected in
                node.invitationTurns.ended()
                if !connected, node.invitations.contains(peer) { node.inviteLater(peer) }
                node.dialInvited()
            }
        }
    }
}

/// Whom to dial for an invitation: so many at once, trusted peers before strangers.
struct InvitationTurns {
    /// One command of a person makes no burst of dials; dead addresses of some leave turns for the others.
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

extension InboundResult {
    var isForNow: Bool { if case .refused(let code, _, _) = self { code.isTemporary } else { false } }
}
