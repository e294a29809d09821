import HexlistModel

// Checks whether a trusted peer that has only dialled this node can be dialled too. Its announcement is only a hint; when a handshake at
// the announced address proves the peer's key, the address is saved. After a restart, this node can then dial the peer without mDNS.
extension PeerDirectory {
    /// Maximum number of consecutive failed checks. The count begins again with the peer's next session.
    private static let attempts = 4

    /// - Parameter again: whether to repeat a check that failed before, because a new address was announced.
    mutating func checkReach(of id: PeerID, again: Bool = false) {
        guard let peer = peers[id], needsReach(peer), !reachEndpoints(of: id).isEmpty else { return }
        if schedules[.reach(id)] == nil {
            request(.reach(id), at: now, as: .newcomer)
        } else if again {
            requestAnnounced(.reach(id), of: id, as: .newcomer)
        }
    }

    func needsReach(_ peer: DirectoryPeer) -> Bool {
        peer.trust == .trusted && peer.hasSession && peer.conflict == nil
            && !peer.saved.contains { saved in peer.sessions.keys.contains { peer.hasAnswered(saved.socketAddress, $0) } }
    }

    /// The endpoints announced by a process of the peer that has a session with this node.
    func reachEndpoints(of id: PeerID) -> [Endpoint] {
        guard let peer = peers[id] else { return [] }
        let announced = Set(
            peer.records.compactMap { records[$0]?.claim }.filter {
                refusal(of: $0) == nil && $0.boot.map { peer.sessions[$0] != nil } ?? true
            }
            .map(\.endpoint.socketAddress))
        return endpoints(of: id).filter { announced.contains($0.socketAddress) && peer.dialResults[$0.socketAddress]?.isGood ?? true }
    }

    /// Records that a check proved the peer's key at an endpoint.
    /// - Parameter start: the peer's newest proved boot nonce when the check began.
    mutating func reached(_ target: ProbeTarget, at endpoint: Endpoint, by start: BootNonce?) {
        guard case .reach(let id) = target, let peer = peers[id], let boot = peer.boot else { return }
        // If another process of the peer proved itself during the check, it is unknown which of the two answered.
        guard boot == start else { return checkReachAnew(of: id) }
        peers[id]?.recordDial(endpoint.socketAddress, .answered(boot, at: now))
        peers[id]?.leaveFormerPorts(endpoint, boot)
        peers[id]?.save(endpoint)
        touchedPeers.insert(id)
        for record in peer.records { requestResolver(record) }
    }

    /// Discards earlier checks and begins again, because the peer has a new process that was not checked yet.
    mutating func checkReachAnew(of id: PeerID) {
        if schedules[.reach(id)]?.running != nil {
            schedules[.reach(id)]?.again = true
        } else {
            cancel(.reach(id))
            schedules[.reach(id)] = nil
        }
        checkReach(of: id)
    }

    mutating func reachFailed(_ id: PeerID, failures: Int) {
        guard let peer = peers[id], needsReach(peer), failures < Self.attempts else { return }
        reschedule(.reach(id), at: now + DirectoryIntervals.backoff.pause(after: failures), as: .retry)
    }
}
