import HexlistModel

// The peers and announced places that this node dials by itself (Docs/Protocol.md, "Discovery").
extension PeerDirectory {
    /// Whether a peer with an endpoint is probed. False for a peer with a session, for a blocked one, and, while this machine hides, for a
    /// stranger unless it answered at a configured address.
    func mayProbe(_ peer: DirectoryPeer) -> Bool {
        !peer.hasSession && peer.trust != .blocked && (asksStrangers(peer) || peer.hasStaticEndpoint)
    }

    /// Whether an announcement of this peer may cause a dial.
    func asksStrangers(_ peer: DirectoryPeer) -> Bool { !isHiding || peer.trust == .trusted }

    /// The reason why a claim's endpoint is not dialled; `nil` if it is. A trusted peer may be behind a router of the user's organization:
    /// a host that answers there must show the peer's key, and learns nothing otherwise. No announcement can aim this machine at the
    /// Internet.
    func refusal(of claim: DirectoryRecord.Claim) -> DialPolicy.Refusal? {
        guard claim.refusal == .foreignNetwork, peers[claim.peer]?.trust == .trusted,
            IPAddress(ofHost: claim.endpoint.host)?.isPrivate == true
        else { return claim.refusal }
        return nil
    }

    mutating func setHiding(_ isHiding: Bool) {
        guard isHiding != self.isHiding else { return }
        self.isHiding = isHiding
        touchedRecords.formUnion(ownRecords)
        for (id, peer) in peers where peer.trust == .stranger {
            touchedPeers.insert(id)
            if isHiding {
                leaveAlone(id)
            } else {
                if peer.presence == .away(.hiding) { peers[id]?.presence = .away(.notSeenYet) }
                if !peer.hasSession, !endpoints(of: id).isEmpty { request(.peer(id), at: now, as: .newcomer) }
            }
        }
        for (boot, record) in ownRecords.map({ (records[$0]?.claim?.boot, $0) }) where boot != self.boot {
            guard let boot, let claim = records[record]?.claim else { continue }
            if isHiding { cancel(.start(own, boot)) } else { checkOwnStart(claim) }
        }
    }

    /// Stops asking for a stranger while this machine hides. A session the stranger has stays.
    mutating func leaveAlone(_ id: PeerID) {
        guard let peer = peers[id] else { return }
        for boot in Set(peer.records.compactMap { records[$0]?.claim?.boot }) { cancel(.start(id, boot)) }
        guard !peer.hasSession, !mayProbe(peer) else { return }
        touchedPeers.insert(id)
        cancel(.peer(id))
        if peer.isProven { peers[id]?.presence = .away(.hiding) }
    }
}
