import HexlistModel

// Which peers and which announced places this side dials by itself (Docs/Protocol.md, "Discovery").
extension PeerDirectory {
    /// Whether a peer is asked, where it has an endpoint: none with a session, none that is blocked, and while this machine hides no
    /// stranger, but for one that answered at a configured address.
    func mayProbe(_ peer: DirectoryPeer) -> Bool {
        !peer.hasSession && peer.trust != .blocked && (asksStrangers(peer) || peer.hasStaticEndpoint)
    }

    /// Whether an announcement of this peer may cause a dial.
    func asksStrangers(_ peer: DirectoryPeer) -> Bool { !isHiding || peer.trust == .trusted }

    /// Why what an announcement says is not dialled. A trusted peer may be behind a router of one's own organization: who answers there
    /// has to show its key, and is shown nothing otherwise. What is on the Internet nobody aims this machine at.
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

    /// A stranger, while this machine hides. What it has a session for, it says by itself.
    mutating func leaveAlone(_ id: PeerID) {
        guard let peer = peers[id] else { return }
        for boot in Set(peer.records.compactMap { records[$0]?.claim?.boot }) { cancel(.start(id, boot)) }
        guard !peer.hasSession, !mayProbe(peer) else { return }
        touchedPeers.insert(id)
        cancel(.peer(id))
        if peer.isProven { peers[id]?.presence = .away(.hiding) }
    }
}
