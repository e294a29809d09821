import HexlistAPI
import HexlistDelivery
import HexlistDiscovery
import HexlistModel
import HexlistSession

extension Node {
    func discovered(_ event: DiscoveryEvent) {
        guard !isStopping else { return }
        if case .woke = event {
            logger.info("the machine woke from sleep")
            // Ends the sessions whose timeouts passed during the sleep.
            for session in sessions.values { session.timePassed() }
            devices.woke(self)
        }
        if case .interfaces(let addresses) = event { devices.networkChanged(addresses, self) }
        finder.discovered(event, self)
        notifyWatchers()
    }

    func changed(_ event: PeerEvent) {
        switch event {
        case .up(let peer):
            deliver { deliveries, _ in deliveries.peerIsBack(peer) }
            transfers.peerIsUp(peer)
            events.record(.peerUp, peer: peer, from: peerPresence(of: peer), self)
        case .down(let peer):
            refusedPeersNotifier.peerLeft(peer, self)
            events.record(.peerDown, peer: peer, from: peerPresence(of: peer), self)
        case .conflict(let peer): conflicts.began(with: peer, self)
        case .conflictEnded(let peer): conflicts.ended(with: peer, self)
        case .ghost(let ghost):
            events.record(
                .peerGhost, peer: ghost.peer, data: ["name": ghost.name, "reason": ghost.reason.rawValue, "why": ghost.why],
                from: source(of: ghost), self)
        }
    }

    private func peerPresence(of peer: PeerID) -> EventAllowance.Source {
        registry.isTrusted(peer) ? .peerPresence(of: peer) : .strangers
    }

    private func source(of ghost: GhostEvent) -> EventAllowance.Source {
        guard ghost.reason == .impostor, let peer = ghost.peer, registry.isTrusted(peer) else { return .strangers }
        return .impostors(of: peer)
    }
}
