import HexlistModel

// Rules about which peers and announced addresses this node may dial (Docs/Protocol.md, "Discovery").
extension PeerDirectory {
    /// Whether a peer may be probed. False if it has a session or is blocked. While this machine is hidden, also false for a stranger
    /// without a configured address.
    func mayProbe(_ peer: DirectoryPeer) -> Bool {
        !peer.hasSession && peer.trust != .blocked && (mayDialOnAnnouncement(peer) || peer.hasStaticEndpoint)
    }

    /// Whether an announcement of this peer may cause a dial.
    func mayDialOnAnnouncement(_ peer: DirectoryPeer) -> Bool { !isHiding || peer.trust == .trusted }

    /// The reason why an announced endpoint must not be dialled; `nil` if it may. A trusted peer may also be dialled at a private address
    /// behind a router: a host that answers must prove the peer's key, and otherwise learns nothing. Announcements cannot make this machine
    /// dial addresses on the Internet.
    func refusal(of claim: DirectoryRecord.AnnouncedPeer) -> DialPolicy.Refusal? {
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
                stopProbing(id)
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

    /// Stops probing a stranger while this machine is hidden. An open session is kept.
    mutating func stopProbing(_ id: PeerID) {
        guard let peer = peers[id] else { return }
        for boot in Set(peer.records.compactMap { records[$0]?.claim?.boot }) { cancel(.start(id, boot)) }
        guard !peer.hasSession, !mayProbe(peer) else { return }
        touchedPeers.insert(id)
        cancel(.peer(id))
        if peer.isProven { peers[id]?.presence = .away(.hiding) }
    }
}
