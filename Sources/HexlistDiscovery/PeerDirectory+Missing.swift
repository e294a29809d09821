import HexlistModel

// Networks that fail without a sign: no interface loses its carrier, mDNS still has every record, and each peer there seems to have fallen
// silent by itself. Nothing tells when such a network works again. So missing trusted peers are also asked out of turn, few and seldom;
// the first one that answers has all of them asked at once.
extension PeerDirectory {
    /// The instant from which a missing peer is worth asking out of turn; `nil` if its turns come as often, or if it has none.
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

    /// Keeps one timer for all missing peers. A timer that fires soon is not replaced.
    mutating func planLookout() {
        let bounds = DirectoryTimes.lookout
        if let planned = nextLookoutAt, planned <= now + bounds.upperBound { return }
        nextLookoutAt = nil
        guard let next = nextLookout() else { return }
        // The moment is random: many machines may have lost one network together.
        let pause = bounds.lowerBound + (bounds.upperBound - bounds.lowerBound) / 1_000 * randomNumber(below: 1_000)
        let at = max(next.at, now + pause)
        nextLookoutAt = at
        timers.insert(Deadline(at: at, timer: .lookout))
    }

    mutating func lookOut() {
        nextLookoutAt = nil
        let next = nextLookout { schedules[.peer($0)]?.running == nil }
        if let next, next.at <= now {
            // A peer whose regular turn has come already moves to the front.
            if let turnAt = schedules[.peer(next.peer)]?.nextAt {
                schedules[.peer(next.peer)]?.nextAt = nil
                schedules[.peer(next.peer)]?.turnAt = turnAt
            }
            queue.enqueue(.peer(next.peer), as: .trusted)
        }
        planLookout()
    }

    /// Asks all silent peers when a missing one is heard again: its network is back, perhaps with others on it.
    mutating func heardAgain(_ id: PeerID) {
        guard missing.contains(id) else { return }
        for (other, peer) in peers where other != id && peer.presence == .away(.noAnswer) && mayProbe(peer) {
            // A peer in the queue stays there, and one without a schedule has no endpoint. A probe under way may have been too early.
            guard let schedule = schedules[.peer(other)], schedule.nextAt != nil || schedule.running != nil else { continue }
            schedules[.peer(other)]?.failures = 0
            request(.peer(other), at: now, as: peer.trust == .trusted ? .trusted : .retry)
        }
    }
}
