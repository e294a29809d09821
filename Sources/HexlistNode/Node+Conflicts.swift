import HexlistDelivery
import HexlistDiscovery
import HexlistModel
import HexlistSession
import HexlistWire
import NIOCore

/// Machines with one identity. Nothing is delivered to one of them, and nothing is sent or taken under an identity of one's own that
/// another machine has too: who of the two is meant, nobody can know. Rows wait, and senders are told to.
extension Node {
    static let ownConflictMessage = "Another machine uses this one's identity, so it takes nothing until that is settled."
    /// Seconds; a conflict is looked at every half minute.
    static let ownConflictRetry = 60

    func isQuarantined(_ peer: PeerID) -> Bool { deliver { $0.isHeld(peer, $1) } }

    func conflictBegan(_ peer: PeerID) {
        let isKnown = peer == id || known.isTrusted(peer)
        logger.log(
            level: isKnown ? .warning : .debug, peer == id ? "another machine uses this identity" : "two machines use one identity",
            metadata: ["peer.id": "\(peer)"])
        // A stranger could make as many as it has keys.
        if isKnown {
            events.record(.conflictIdentity, peer: peer, data: peer == id ? ["own": "true"] : [:], from: .comings(of: peer), self)
        }
        for session in links[peer]?.sessions ?? [] { session.act { $0.end(.conflict, &$1) } }
        wakeWaiters()
    }

    func conflictEnded(_ peer: PeerID) {
        let isKnown = peer == id || known.isTrusted(peer)
        logger.log(level: isKnown ? .notice : .debug, "one machine uses this identity again", metadata: ["peer.id": "\(peer)"])
        deliver { [id] in $0.holdsChanged(of: peer == id ? nil : peer, $1) }
        if peer == id { invitations.mayTakeMore(self) }
        wakeWaiters()
        notifyWatchers()
    }

    /// A peer that meets two machines with this identity ends its sessions with both. A stranger may say what it likes; a trusted peer's
    /// word is worth telling, and no more than that.
    func conflictTold(by peer: PeerID, _ end: Session.End) {
        guard case .peer(.conflict, _) = end, known.isTrusted(peer) else {
            conflictWitnesses.remove(peer)
            return
        }
        guard conflictWitnesses.insert(peer).inserted else { return }
        logger.warning("a peer says that another machine uses this identity", metadata: ["peer.id": "\(peer)"])
        events.record(.conflictIdentity, peer: id, data: ["own": "true", "toldBy": "\(peer)"], from: .comings(of: peer), self)
    }

    /// A witness ends sessions right after Hello: one that lives longer takes its word back.
    func awaitWitness(_ session: PeerSession, _ peer: PeerID) {
        eventLoop.scheduleTask(in: .seconds(3)) { [weak self] in
            self?.assumeIsolated { node in
                guard session.connection.isOpen, node.conflictWitnesses.remove(peer) != nil else { return }
                node.notifyWatchers()
            }
        }
    }

    /// A sentence for people about a conflict of this machine's identity; `nil` if there is none.
    var conflictText: String? {
        if finder.directory.isInConflict(id) {
            return "Another machine has this one's identity, so nothing is sent or taken. Run `hexlist id rotate` on one of them; "
                + "about two minutes later it is settled."
        }
        guard let witness = conflictWitnesses.filter({ known.isTrusted($0) }).min() else { return nil }
        return
            "\(label(of: witness)?.text() ?? witness.shortID) says that another machine has this one's identity, and takes nothing from either. "
            + "Run `hexlist id rotate` on one of them; where that was done, it is settled about two minutes later."
    }
}
