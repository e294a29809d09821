import HexlistModel

// Checks whether a trusted peer can be dialled that has only dialled this node so far. Its announcement says where, but is only a hint;
// once the handshake there has proved the peer's key, the place is saved, and the next start need not wait for mDNS.
extension PeerDirectory {
    /// The number of checks in a row. The peer's next session starts a new row.
    private static let attempts = 4

    mutating func checkReach(of id: PeerID) {
        guard let peer = peers[id], needsReach(peer), schedules[.reach(id)] == nil, !reachEndpoints(of: id).isEmpty else { return }
        request(.reach(id), at: now, as: .newcomer)
    }

    func needsReach(_ peer: DirectoryPeer) -> Bool {
        peer.trust == .trusted && peer.hasSession && peer.conflict == nil
            && !peer.saved.contains { peer.answered($0.place) != nil && !isPast($0, of: peer) }
    }

    /// The places announced by a start that has a session.
    func reachEndpoints(of id: PeerID) -> [Endpoint] {
        guard let peer = peers[id] else { return [] }
        let announced = Set(
            peer.records.compactMap { records[$0]?.claim }.filter {
                refusal(of: $0) == nil && $0.boot.map { peer.sessions[$0] != nil } ?? true
            }
            .map(\.endpoint.place))
        return endpoints(of: id).filter { announced.contains($0.place) && peer.marks[$0.place]?.isGood ?? true }
    }

    mutating func reached(_ target: ProbeTarget, at endpoint: Endpoint) {
        guard case .reach(let id) = target, let peer = peers[id], let boot = peer.boot else { return }
        peers[id]?.mark(endpoint.place, .answered(boot, at: now))
        peers[id]?.leaveFormerPorts(endpoint, boot)
        peers[id]?.save(endpoint)
        touchedPeers.insert(id)
    }

    mutating func reachFailed(_ id: PeerID, failures: Int) {
        guard let peer = peers[id], needsReach(peer), failures < Self.attempts else { return }
        reschedule(.reach(id), at: now + DirectoryTimes.backoff.pause(after: failures), as: .retry)
    }
}
