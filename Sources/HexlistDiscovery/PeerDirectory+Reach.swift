import HexlistModel

// Checks whether a trusted peer can be dialled that has only dialled this node so far. Its announcement says where, but is only a hint;
// once the handshake there has proved the peer's key, the place is saved, and the next start need not wait for mDNS.
extension PeerDirectory {
    /// The number of checks in a row. The peer's next session starts a new row.
    private static let attempts = 4

    /// - Parameter again: whether a new place is announced, so that a start which was looked for in vain is looked for once more.
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
            && !peer.saved.contains { saved in peer.sessions.keys.contains { peer.hasAnswered(saved.place, $0) } }
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

    /// Records that the peer's key was proved at a place, by the start that was the newest when the check began.
    mutating func reached(_ target: ProbeTarget, at endpoint: Endpoint, by start: BootNonce?) {
        guard case .reach(let id) = target, let peer = peers[id], let boot = peer.boot else { return }
        // Another start proved itself during the check: which of the two answered is unknown.
        guard boot == start else { return checkReachAnew(of: id) }
        peers[id]?.mark(endpoint.place, .answered(boot, at: now))
        peers[id]?.leaveFormerPorts(endpoint, boot)
        peers[id]?.save(endpoint)
        touchedPeers.insert(id)
        for record in peer.records { wantResolver(record) }
    }

    /// Begins a new row of checks, for a start that was not looked for yet.
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
        reschedule(.reach(id), at: now + DirectoryTimes.backoff.pause(after: failures), as: .retry)
    }
}
