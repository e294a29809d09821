public import HexlistModel

// Conflicts: two machines with one identity. Shown by two starts that each proved it; ended when only one still does.
extension PeerDirectory {
    /// Whether two machines prove this UUID at present; for the own UUID, whether another machine proves it. Nothing is delivered to such a
    /// peer, and nothing to anybody under such an own identity.
    public func isInConflict(_ id: PeerID) -> Bool { id == own ? ownConflict != nil : peers[id]?.conflict != nil }

    /// - Parameter boots: the starts that proved themselves just now.
    mutating func conflictShown(_ id: PeerID, by boots: [BootNonce]) {
        guard let peer = peers[id] else { return }
        var conflict = peer.conflict ?? IdentityConflict(checkAt: now + DirectoryTimes.conflictCheck)
        for boot in boots { conflict.shown(boot, at: now) }
        peers[id]?.conflict = conflict
        touchedPeers.insert(id)
        guard peer.conflict == nil else { return }
        timers.insert(Deadline(at: conflict.checkAt, timer: .conflict(id)))
        outputs.append(.changed(.conflict(id)))
    }

    /// Asks all places that may have the identity again. The conflict ends once all starts but one have been silent for long enough.
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

    // MARK: - The own identity

    /// Notes that another start proved the own UUID: a copy of this machine's identity lives elsewhere.
    /// - Parameter boot: the other start; `nil` if it is not known.
    mutating func ownConflictShown(by boot: BootNonce?) {
        guard boot != self.boot else { return }
        let isNew = ownConflict == nil
        var conflict = ownConflict ?? IdentityConflict(checkAt: now + DirectoryTimes.conflictCheck)
        conflict.shown(boot ?? Self.unknownStart, at: now)
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

    /// A nonce that no process has, for a start that is not known.
    private static let unknownStart = BootNonce(0)
}
