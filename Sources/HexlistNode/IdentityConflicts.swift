import HexlistDelivery
import HexlistDiscovery
import HexlistEventLoop
import HexlistModel
import HexlistSession
import HexlistWire
import Logging
import NIOCore

/// Handles identity conflicts: two machines with the same key, which cannot be distinguished. Nothing is delivered to such a pair; outbox
/// rows for it stay queued. If one of the two is this machine, it sends nothing and refuses all hexes, with the reason for their senders.
final class IdentityConflicts {
    static let ownConflictMessage = "Another machine uses this one's identity, so it accepts nothing until the conflict is resolved."
    /// Seconds until a refused sender tries again. Conflicts are checked every half minute.
    static let ownConflictRetry = 60

    /// Trusted peers that ended a session because another machine proves this one's identity to them.
    private(set) var witnesses: Set<PeerID> = []

    func began(with peer: PeerID, _ node: isolated Node) {
        let isKnown = peer == node.id || node.registry.isTrusted(peer)
        node.logger.log(
            level: isKnown ? .warning : .debug, peer == node.id ? "another machine uses this identity" : "two machines use one identity",
            metadata: ["peer.id": "\(peer)"])
        // Conflicts of strangers are not recorded, because anyone can create any number of keys.
        if isKnown {
            node.events.record(
                .conflictIdentity, peer: peer, data: peer == node.id ? ["own": "true"] : [:], from: .peerPresence(of: peer), node)
        }
        for session in node.links[peer]?.sessions ?? [] { session.act { $0.end(.conflict, &$1) } }
        node.wakeWaiters()
    }

    func ended(with peer: PeerID, _ node: isolated Node) {
        let isOwn = peer == node.id
        node.logger.log(
            level: isOwn || node.registry.isTrusted(peer) ? .notice : .debug, "one machine uses this identity again",
            metadata: ["peer.id": "\(peer)"])
        node.deliver { $0.holdsChanged(of: isOwn ? nil : peer, $1) }
        if isOwn { node.refusedPeersNotifier.mayAcceptMore(node) }
        node.wakeWaiters()
        node.notifyWatchers()
    }

    /// Records a peer's report that another machine has this machine's identity. The report is the `Bye` `conflict` with which the peer
    /// ends its sessions with both machines. Reports of strangers are ignored. Those of trusted peers are shown to the user and have no
    /// other effect.
    func sessionEnded(with peer: PeerID, _ end: Session.EndReason, _ node: isolated Node) {
        guard case .peer(.conflict, _) = end, node.registry.isTrusted(peer) else {
            witnesses.remove(peer)
            return
        }
        guard witnesses.insert(peer).inserted else { return }
        node.logger.warning("a peer says that another machine uses this identity", metadata: ["peer.id": "\(peer)"])
        node.events.record(
            .conflictIdentity, peer: node.id, data: ["own": "true", "toldBy": "\(peer)"], from: .peerPresence(of: peer), node)
    }

    /// Discards a witness's report of a conflict if a new session with the witness stays open for 3 s. A witness that still sees the
    /// conflict ends each session right after Hello.
    func sessionOpened(_ session: PeerSession, with peer: PeerID, _ node: isolated Node) {
        guard witnesses.contains(peer) else { return }
        node.eventLoop.scheduleTask(in: .seconds(3)) { [weak node] in
            node?.assumeIsolated { node in
                guard session.connection.isOpen, node.conflicts.witnesses.remove(peer) != nil else { return }
                node.notifyWatchers()
            }
        }
    }

    /// A message about a conflict of this machine's identity; `nil` if there is none.
    func message(_ node: isolated Node) -> String? {
        if node.finder.directory.isInConflict(node.id) {
            return
                "Another machine uses this machine's identity, so nothing is sent or accepted. Run `hexlist id rotate` on one of the two; "
                + "the conflict ends about two minutes later."
        }
        guard let witness = witnesses.filter({ node.registry.isTrusted($0) }).min() else { return nil }
        return
            "\(node.peerList.text(of: witness)) reports that another machine uses this machine's identity, and accepts nothing from either. "
            + "Run `hexlist id rotate` on one of the two; the conflict ends about two minutes later."
    }
}
