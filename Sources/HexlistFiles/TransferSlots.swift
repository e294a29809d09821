import HexlistModel

/// The places of a `TransferQueue`: which runs have them, and how fast these are.
struct TransferSlots: Sendable {
    typealias Instant = TransferQueue.Instant

    /// A place in use, by so many runs of one peer.
    private struct Taken: Sendable {
        let peer: PeerID
        let isShared: Bool
        let resumes: Bool
        /// The first run that took it.
        let since: TransferAttemptID
        var runs = 1
        /// Bytes that arrived since it was taken.
        var arrived: Int64 = 0
        /// The beginning of the measurement of its rate, and the bytes before; `nil` while no other peer waits.
        var window: (began: Instant, arrived: Int64)?
        /// Whether its runs were asked to give way.
        var isLeaving = false
    }

    /// The runs that have a place, with its number and the bytes that arrived in them.
    private(set) var runs: [TransferAttemptID: (id: TransferID, place: Int, arrived: Int64)] = [:]
    private var taken = [Taken?](repeating: nil, count: TransferQueue.places)

    var areAllTaken: Bool { taken.allSatisfy { $0 != nil } }

    /// Whether a peer may have no more places while another waits.
    func hasMost(_ peer: PeerID) -> Bool { count(of: peer) >= TransferQueue.mostOfPeer }

    private func count(of peer: PeerID) -> Int { taken.count { $0?.peer == peer } }

    /// Takes a place for a run, its own or one that it shares; `nil` if it has to wait.
    /// - Parameter othersWait: whether another peer waits for a place.
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

    /// Takes a run out of its place, which is free with the last one.
    mutating func leave(_ run: TransferAttemptID) -> TransferID? {
        guard let (id, place, _) = runs.removeValue(forKey: run) else { return nil }
        taken[place]?.runs -= 1
        if taken[place]?.runs == 0 { taken[place] = nil }
        return id
    }

    /// - Parameter arrived: all bytes of the run.
    mutating func progressed(_ run: TransferAttemptID, arrived: Int64) {
        guard let known = runs[run], arrived > known.arrived else { return }
        taken[known.place]?.arrived += arrived - known.arrived
        runs[run]?.arrived = arrived
    }

    /// Measures the rates of places while peers wait for one, and chooses the place whose runs give way: the newest one of a peer with too
    /// many, else the slowest of those below `TransferQueue.slowest`.
    /// - Parameter waiting: up to two of the peers that wait for a place; empty unless all places are taken.
    /// - Returns: the runs that give way, and the end of the first measurement of a rate; `nil` if no peer waits.
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
        // One at a time: few transfers may be waiting.
        guard let number = crowding?.number ?? slow?.number, !taken.contains(where: { $0?.isLeaving ?? false }) else { return ([], ends) }
        taken[number]?.isLeaving = true
        return (runs.filter { $0.value.place == number }.keys.sorted { $0.value < $1.value }, ends)
    }
}
