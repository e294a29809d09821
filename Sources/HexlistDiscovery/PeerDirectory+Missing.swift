import HexlistModel

// A network that fell apart without a word: no interface lost its carrier, mDNS still knows every record, and each peer there seems to
// have fallen silent by itself. Nothing tells when it is whole again. So trusted peers that are missing are also asked out of their turn,
// few of them and seldom, and the first that is heard again has all of them asked at once.
extension PeerDirectory {
    /// When a missing peer is worth asking out of its turn; `nil` once its turns come as often, or where it has none.
    private func lookoutAt(_ id: PeerID) -> Instant? {
        guard let lastSeen = peers[id]?.lastSeen, let schedule = schedules[.peer(id)], let askedAt = schedule.askedAt,
            schedule.nextAt != nil || schedule.running != nil || queue.holds(.peer(id))
        else { return nil }
        let pause = max(DirectoryTimes.lookout.lowerBound, (askedAt - lastSeen) / DirectoryTimes.lookoutShare)
        return pause < DirectoryTimes.backoff.longest ? askedAt + pause : nil
    }

    private func nextLookout(among isMeant: (PeerID) -> Bool = { _ in true }) -> (at: Instant, peer: PeerID)? {
        var next: (at: Instant, peer: PeerID)?
        for id in missing where isMeant(id) {
            guard let at = lookoutAt(id), next.map({ (at, id) < ($0.at, $0.peer) }) ?? true else { continue }
            next = (at, id)
        }
        return next
    }

    /// Keeps one timer for all that are missing, however many those are. One that comes soon stays.
    mutating func planLookout() {
        let bounds = DirectoryTimes.lookout
        if let planned = nextLookoutAt, planned <= now + bounds.upperBound { return }
        nextLookoutAt = nil
        guard let next = nextLookout() else { return }
        // At a moment of its own: many machines may have lost one network together.
        let pause = bounds.lowerBound + (bounds.upperBound - bounds.lowerBound) / 1_000 * randomNumber(below: 1_000)
        let at = max(next.at, now + pause)
        nextLookoutAt = at
        timers.push(.lookout, at: at)
    }

    mutating func lookOut() {
        nextLookoutAt = nil
        let next = nextLookout { schedules[.peer($0)]?.running == nil }
        if let next, next.at <= now {
            // One whose turn has come already goes to the front.
            if let turnAt = schedules[.peer(next.peer)]?.nextAt {
                schedules[.peer(next.peer)]?.nextAt = nil
                schedules[.peer(next.peer)]?.turnAt = turnAt
            }
            queue.enqueue(.peer(next.peer), as: .trusted)
        }
        planLookout()
    }

    /// One that was missing is heard again, so its network is back, perhaps with others on it.
    mutating func heardAgain(_ id: PeerID) {
        guard missing.contains(id) else { return }
        for (other, peer) in peers where other != id && peer.presence == .away(.noAnswer) && mayProbe(peer) {
            // What is in line already stays there, and what is not going to be asked has no endpoint. What is being asked may have been
            // asked too early.
            guard let schedule = schedules[.peer(other)], schedule.nextAt != nil || schedule.running != nil else { continue }
            schedules[.peer(other)]?.failures = 0
            request(.peer(other), at: now, as: peer.trust == .trusted ? .trusted : .retry)
        }
    }
}
