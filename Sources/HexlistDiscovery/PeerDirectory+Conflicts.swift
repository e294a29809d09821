public import HexlistModel

// Identity conflicts: two running machines have one identity. A conflict begins when two processes prove the identity, and ends when only
// one still does.
extension PeerDirectory {
    /// Whether two machines currently prove this UUID; for this node's UUID, whether another machine does. Nothing is delivered to a peer
    /// in conflict. While this node itself is in conflict, nothing is delivered to any peer.
    public func isInConflict(_ id: PeerID) -> Bool { id == own ? ownConflict != nil : peers[id]?.conflict != nil }

    /// - Parameter boots: the boot nonces that were just proved.
    mutating func conflictDetected(_ id: PeerID, by boots: [BootNonce]) {
        guard let peer = peers[id] else { return }
        var conflict = peer.conflict ?? IdentityConflict(checkAt: now + DirectoryIntervals.conflictCheck)
        for boot in boots { conflict.recordProof(boot, at: now) }
        peers[id]?.conflict = conflict
        touchedPeers.insert(id)
        guard peer.conflict == nil else { return }
        timers.insert(Deadline(at: conflict.checkAt, timer: .conflict(id)))
        outputs.append(.changed(.conflict(id)))
    }

    /// Probes all announced processes of an identity in conflict again. Ends the conflict if at most one process has proved the identity
    /// within `DirectoryIntervals.conflict`.
    mutating func checkConflict(of id: PeerID) {
        guard var conflict = peers[id]?.conflict else { return }
        conflict.forget(before: now - DirectoryIntervals.conflict)
        guard conflict.starts.count > 1 else { return conflictEnded(id) }
        conflict.checkAt = now + DirectoryIntervals.conflictCheck
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

    /// Records that another process proved this node's UUID, so that a copy of this node's private key exists elsewhere.
    /// - Parameter boot: the boot nonce of the other process; `nil` if unknown.
    mutating func ownConflictDetected(by boot: BootNonce?) {
        guard boot != self.boot else { return }
        let isNew = ownConflict == nil
        var conflict = ownConflict ?? IdentityConflict(checkAt: now + DirectoryIntervals.conflictCheck)
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
        conflict.forget(before: now - DirectoryIntervals.conflict)
        guard !conflict.starts.isEmpty else {
            ownConflict = nil
            outputs.append(.changed(.conflictEnded(own)))
            return
        }
        conflict.checkAt = now + DirectoryIntervals.conflictCheck
        ownConflict = conflict
        timers.insert(Deadline(at: conflict.checkAt, timer: .ownConflict))
        for boot in Set(ownRecords.compactMap { records[$0]?.claim?.boot }) where boot != self.boot {
            ownDisproved.remove(boot)
            request(.start(own, boot), at: now, as: .routine)
        }
    }

    /// The boot nonce that stands for an unknown process. No real process has this nonce.
    private static let unknownStart = BootNonce(0)
}
