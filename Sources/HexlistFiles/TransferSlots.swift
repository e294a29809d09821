import HexlistModel

/// The slots of a `TransferQueue`: which attempts occupy them, and their transfer rates.
struct TransferSlots: Sendable {
    typealias Instant = TransferQueue.Instant

    /// A slot occupied by one or several attempts of one peer.
    private struct Taken: Sendable {
        let peer: PeerID
        let isShared: Bool
        let resumes: Bool
        /// The first attempt in the slot.
        let since: TransferAttemptID
        var runs = 1
        /// Bytes received in this slot.
        var arrived: Int64 = 0
        /// Start of the current rate measurement, and the bytes received before it; `nil` while no other peer waits.
        var window: (began: Instant, arrived: Int64)?
        /// Whether its attempts were asked to stop.
        var isLeaving = false
    }

    /// The attempts that occupy a slot, with the slot's number and their bytes received.
    private(set) var runs: [TransferAttemptID: (id: TransferID, place: Int, arrived: Int64)] = [:]
    private var taken = [Taken?](repeating: nil, count: TransferQueue.places)

    var areAllTaken: Bool { taken.allSatisfy { $0 != nil } }

    /// Whether a peer has the maximum number of slots allowed while other peers wait.
    func hasMost(_ peer: PeerID) -> Bool { count(of: peer) >= TransferQueue.mostOfPeer }

    private func count(of peer: PeerID) -> Int { taken.count { $0?.peer == peer } }

    /// Assigns a slot to an attempt, a free one or one it can share; `nil` if it has to wait.
    /// - Parameter othersWait: whether another peer waits for a slot.
    mutating func take(
        for id: TransferID, of peer: PeerID, _ run: TransferAttemptID, isSmall: Bool, resumes: Bool, othersWait: Bool
    ) -> TransferQueue.Place? {
        let free = taken.firstIndex { $0 == nil }
        if isSmall, free != nil || !othersWait,
            let number = taken.firstIndex(where: {
                $0.map { $0.isShared && $0.peer == peer && $0.runs < TransferQueue.sharing && !$0.isLeaving } ?? false
            })
        {
            taken[number]?.runs += 1
            runs[run] = (id, number, 0)
            return TransferQueue.Place(number: number, isShared: true)
        }
        guard let free, !othersWait || !hasMost(peer) else { return nil }
        taken[free] = Taken(peer: peer, isShared: isSmall, resumes: resumes, since: run)
        runs[run] = (id, free, 0)
        return TransferQueue.Place(number: free, isShared: isSmall)
    }

    /// Removes an attempt from its slot, which becomes free with the last one.
    mutating func leave(_ run: TransferAttemptID) -> TransferID? {
        guard let (id, place, _) = runs.removeValue(forKey: run) else { return nil }
        taken[place]?.runs -= 1
        if taken[place]?.runs == 0 { taken[place] = nil }
        return id
    }

    /// - Parameter arrived: total bytes of the attempt.
    mutating func progressed(_ run: TransferAttemptID, arrived: Int64) {
        guard let known = runs[run], arrived > known.arrived else { return }
        taken[known.place]?.arrived += arrived - known.arrived
        runs[run]?.arrived = arrived
    }

    /// Measures transfer rates while other peers wait, and selects a slot to free: the newest slot of a peer that has too many, else the
    /// slowest below `TransferQueue.minimumRate`.
    /// - Parameter waiting: up to two of the peers that wait for a slot; empty unless all slots are occupied.
    /// - Returns: the attempts to preempt, and the end of the earliest rate measurement; `nil` if no peer waits.
    mutating func makeWay(for waiting: [PeerID], now: Instant) -> (leaving: [TransferAttemptID], measured: Instant?) {
        var ends: Instant?
        var slow: (number: Int, rate: Int64)?
        var crowding: (number: Int, since: TransferAttemptID)?
        for number in taken.indices {
            guard let place = taken[number] else { continue }
            guard waiting.contains(where: { $0 != place.peer }) else {
                taken[number]?.window = nil
                continue
            }
            guard place.resumes, !place.isLeaving else { continue }
            if count(of: place.peer) > TransferQueue.mostOfPeer, place.since.value > crowding?.since.value ?? 0 {
                crowding = (number, place.since)
            }
            var window = place.window ?? (now, place.arrived)
            let time = window.began.duration(to: now)
            if time >= TransferQueue.window {
                let rate = (place.arrived - window.arrived) / max(1, time.components.seconds)
                if rate < TransferQueue.slowest, rate < slow?.rate ?? .max { slow = (number, rate) }
                window = (now, place.arrived)
            }
            taken[number]?.window = window
            let end = window.began + TransferQueue.window
            ends = min(ends ?? end, end)
        }
        // One slot at a time, because few transfers may be waiting.
        guard let number = crowding?.number ?? slow?.number, !taken.contains(where: { $0?.isLeaving ?? false }) else { return ([], ends) }
        taken[number]?.isLeaving = true
        return (runs.filter { $0.value.place == number }.keys.sorted { $0.value < $1.value }, ends)
    }
}
