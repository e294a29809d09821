import HexlistModel

// Extra probes of missing peers, which are trusted peers that stopped answering. A network can fail silently: no interface loses its
// carrier, mDNS still has all records, and every peer in the network seems to be offline. No event reports that the network works again.
// Therefore a few missing peers are probed at random times; as soon as one answers, all of them are probed.
extension PeerDirectory {
    /// The earliest time for an extra probe of a missing peer; `nil` if the peer's regular probes are as frequent, or if no probe of it is
    /// planned.
    private func missingProbeTime(_ id: PeerID) -> Instant? {
        guard let lastSeen = peers[id]?.lastSeen, let schedule = schedules[.peer(id)], let askedAt = schedule.askedAt,
            schedule.nextAt != nil || schedule.running != nil || queue.contains(.peer(id))
        else { return nil }
        let pause = max(DirectoryIntervals.missingProbe.lowerBound, (askedAt - lastSeen) / DirectoryIntervals.missingProbeShare)
        return pause < DirectoryIntervals.backoff.longest ? askedAt + pause : nil
    }

    private func nextMissingPeer(among isCurrent: (PeerID) -> Bool = { _ in true }) -> (at: Instant, peer: PeerID)? {
        var next: (at: Instant, peer: PeerID)?
        for id in missing where isCurrent(id) {
            guard let at = missingProbeTime(id), next.map({ (at, id) < ($0.at, $0.peer) }) ?? true else { continue }
            next = (at, id)
        }
        return next
    }

    /// Schedules the timer for the next extra probe, which all missing peers share. A timer that already fires within the longest interval
    /// is kept.
    mutating func scheduleMissingProbe() {
        let bounds = DirectoryIntervals.missingProbe
        if let planned = nextMissingProbeAt, planned <= now + bounds.upperBound { return }
        nextMissingProbeAt = nil
        guard let next = nextMissingPeer() else { return }
        // The delay is random, so that machines that lost the same network do not all probe at the same time.
        let pause = bounds.lowerBound + (bounds.upperBound - bounds.lowerBound) / 1_000 * randomNumber(below: 1_000)
        let at = max(next.at, now + pause)
        nextMissingProbeAt = at
        timers.insert(Deadline(at: at, timer: .missing))
    }

    mutating func probeMissing() {
        nextMissingProbeAt = nil
        let next = nextMissingPeer { schedules[.peer($0)]?.running == nil }
        if let next, next.at <= now {
            // Saves the planned time of the regular probe. If the regular probe is already in the queue, this only raises its urgency.
            if let regularAt = schedules[.peer(next.peer)]?.nextAt {
                schedules[.peer(next.peer)]?.nextAt = nil
                schedules[.peer(next.peer)]?.regularAt = regularAt
            }
            queue.enqueue(.peer(next.peer), as: .trusted)
        }
        scheduleMissingProbe()
    }

    /// Probes all peers that did not answer, after one missing peer answered: its network works again, and other peers may be in that
    /// network.
    mutating func missingPeerReturned(_ id: PeerID) {
        guard missing.contains(id) else { return }
        for (other, peer) in peers where other != id && peer.presence == .away(.noAnswer) && mayProbe(peer) {
            // Skips peers that are already in the probe queue, and peers without a planned probe, which have no endpoint. A running probe
            // is repeated if it fails, because it may have begun before the network worked again.
            guard let schedule = schedules[.peer(other)], schedule.nextAt != nil || schedule.running != nil else { continue }
            schedules[.peer(other)]?.failures = 0
            request(.peer(other), at: now, as: peer.trust == .trusted ? .trusted : .retry)
        }
    }
}
