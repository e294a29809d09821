public import HexlistModel

// Identity conflicts: two live machines with one identity. Detected when two starts prove it, resolved when only one still does.
extension PeerDirectory {
    /// Whether two machines currently prove this UUID; for this node's UUID, whether another machine does. Nothing is delivered to a peer
    /// in conflict, and nothing at all while this node is.
    public func isInConflict(_ id: PeerID) -> Bool { id == own ? ownConflict != nil : peers[id]?.conflict != nil }

    /// - Parameter boots: the starts that just proved themselves.
    mutating func conflictDetected(_ id: PeerID, by boots: [BootNonce]) {
        guard let peer = peers[id] else { return }
        var conflict = peer.conflict ?? IdentityConflict(checkAt: now + DirectoryTimes.conflictCheck)
        for boot in boots { conflict.recordProof(boot, at: now) }
        peers[id]?.conflict = conflict
        touchedPeers.insert(id)
        guard peer.conflict == nil else { return }
        timers.insert(Deadline(at: conflict.checkAt, timer: .conflict(id)))
        outputs.append(.changed(.conflict(id)))
    }

    /// Probes all candidates again. The conflict ends when all starts but one have been silent for long enough.
    mutating func checkConflict(of id: PeerID) {
        guard var conflict = peers[id]?.conflict else { return }
        conflict.forget(before: now - DirectoryTimes.conflict)
        guard conflict.starts.count > 1 else { return conflictEnded(id) }
        conflict.checkAt = now + DirectoryTimes.conflictCheck
        peers[id]?.conflict = conflict
        timers.insert(Deadline(at: conflict.checkAt, timer: .conflict(id)))
        checkStartsAnew(of: id)
        if let peer = peers[id], mayProbe(peer) { request(.peer(id), at: now, as: retryUrgency(peer)) }
    }

    private mutating func conflictEnded(_ id: PeerID) {
        peers[id]?.conflict = nil
        peers[id]?.formerBoots = []
        touchedPeers.insert(id)
        checkStartsAnew(of: id)
        if let peer = peers[id], mayProbe(peer), !endpoints(of: id).isEmpty { request(.peer(id), at: now, as: retryUrgency(peer)) }
        outputs.append(.changed(.conflictEnded(id)))
    }

    // MARK: - The identity of this node

    /// Records that another start proved this node's UUID, so that a copy of its identity exists elsewhere.
    /// - Parameter boot: the other start; `nil` if unknown.
    mutating func ownConflictDetected(by boot: BootNonce?) {
        guard boot != self.boot else { return }
        let isNew = ownConflict == nil
        var conflict = ownConflict ?? IdentityConflict(checkAt: now + DirectoryTimes.conflictCheck)
        conflict.recordProof(boot ?? Self.unknownStart, at: now)
        ownConflict = conflict
        touchedRecords.formUnion(ownRecords)
        guard isNew else { return }
        timers.insert(Deadline(at: conflict.checkAt, timer: .ownConflict))
        outputs.append(.changed(.conflict(own)))
    }

    mutating func checkOwnConflict() {
        guard var conflict = ownConflict else { return }
        touchedRecords.formUnion(ownRecords)
        conflict.forget(before: now - DirectoryTimes.conflict)
        guard !conflict.starts.isEmpty else {
            ownConflict = nil
            outputs.append(.changed(.conflictEnded(own)))
            return
        }
        conflict.checkAt = now + DirectoryTimes.conflictCheck
        ownConflict = conflict
        timers.insert(Deadline(at: conflict.checkAt, timer: .ownConflict))
        for boot in Set(ownRecords.compactMap { records[$0]?.claim?.boot }) where boot != self.boot {
            ownDisproved.remove(boot)
            request(.start(own, boot), at: now, as: .routine)
        }
    }

    /// A nonce that no process has, for an unknown start.
    private static let unknownStart = BootNonce(0)
}
