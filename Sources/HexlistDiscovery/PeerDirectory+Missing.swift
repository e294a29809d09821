import HexlistModel

// Extra probes of trusted peers that stopped answering. A network can fail silently: no interface loses its carrier, mDNS still has all
// records, and every peer there seems to be offline. Nothing reports that it works again. So a few missing peers are probed at random
// times; as soon as one answers, all of them are probed.
extension PeerDirectory {
    /// The earliest time for an extra probe of a missing peer; `nil` if its regular probes are as frequent, or if it has none.
    private func missingProbeTime(_ id: PeerID) -> Instant? {
        guard let lastSeen = peers[id]?.lastSeen, let schedule = schedules[.peer(id)], let askedAt = schedule.askedAt,
            schedule.nextAt != nil || schedule.running != nil || queue.contains(.peer(id))
        else { return nil }
        let pause = max(DirectoryTimes.missingProbe.lowerBound, (askedAt - lastSeen) / DirectoryTimes.missingProbeShare)
        return pause < DirectoryTimes.backoff.longest ? askedAt + pause : nil
    }

    private func nextMissingPeer(among isCurrent: (PeerID) -> Bool = { _ in true }) -> (at: Instant, peer: PeerID)? {
        var next: (at: Instant, peer: PeerID)?
        for id in missing where isCurrent(id) {
            guard let at = missingProbeTime(id), next.map({ (at, id) < ($0.at, $0.peer) }) ?? true else { continue }
            next = (at, id)
        }
        return next
    }

    /// Schedules one timer for all missing peers. A timer that fires soon is kept.
    mutating func scheduleMissingProbe() {
        let bounds = DirectoryTimes.missingProbe
        if let planned = nextMissingProbeAt, planned <= now + bounds.upperBound { return }
        nextMissingProbeAt = nil
        guard let next = nextMissingPeer() else { return }
        // Random, because many machines may have lost the same network.
        let pause = bounds.lowerBound + (bounds.upperBound - bounds.lowerBound) / 1_000 * randomNumber(below: 1_000)
        let at = max(next.at, now + pause)
        nextMissingProbeAt = at
        timers.insert(Deadline(at: at, timer: .missing))
    }

    mutating func probeMissing() {
        nextMissingProbeAt = nil
        let next = nextMissingPeer { schedules[.peer($0)]?.running == nil }
        if let next, next.at <= now {
            // If the regular probe is due, the peer only moves to the front.
            if let regularAt = schedules[.peer(next.peer)]?.nextAt {
                schedules[.peer(next.peer)]?.nextAt = nil
                schedules[.peer(next.peer)]?.regularAt = regularAt
            }
            queue.enqueue(.peer(next.peer), as: .trusted)
        }
        scheduleMissingProbe()
    }

    /// Probes all silent peers when a missing one answers: its network is back, perhaps with others on it.
    mutating func missingPeerReturned(_ id: PeerID) {
        guard missing.contains(id) else { return }
        for (other, peer) in peers where other != id && peer.presence == .away(.noAnswer) && mayProbe(peer) {
            // Queued peers stay queued, and peers without a schedule have no endpoint. A running probe may have started too early and is
            // repeated.
            guard let schedule = schedules[.peer(other)], schedule.nextAt != nil || schedule.running != nil else { continue }
            schedules[.peer(other)]?.failures = 0
            request(.peer(other), at: now, as: peer.trust == .trusted ? .trusted : .retry)
        }
    }
}
