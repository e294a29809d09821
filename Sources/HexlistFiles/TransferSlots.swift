import HexlistModel

/// The slots of a `TransferQueue`, with the attempts that occupy them and their transfer rates.
struct TransferSlots: Sendable {
    typealias Instant = TransferQueue.Instant

    /// A slot that one or several attempts of a peer use.
    private struct OccupiedSlot: Sendable {
        let peer: PeerID
        let isShared: Bool
        let resumes: Bool
        /// The attempt for which the slot was assigned. A greater ID means that the slot was assigned later.
        let since: TransferAttemptID
        var attempts = 1
        /// Number of bytes received by all attempts in this slot.
        var arrived: Int64 = 0
        /// The beginning of the rate measurement, and the number of bytes received before it; `nil` while no other peer waits.
        var window: (began: Instant, arrived: Int64)?
        /// Whether the attempts in this slot were requested to stop.
        var isPreempted = false
    }

    /// The attempts with a slot: the transfer, the slot's number, and the number of bytes received.
    private(set) var attempts: [TransferAttemptID: (id: TransferID, slot: Int, arrived: Int64)] = [:]
    private var occupied = [OccupiedSlot?](repeating: nil, count: TransferQueue.slotCount)

    var areAllOccupied: Bool { occupied.allSatisfy { $0 != nil } }

    /// Whether a peer has the maximum number of slots that is permitted while other peers wait.
    func hasMaximum(_ peer: PeerID) -> Bool { count(of: peer) >= TransferQueue.maximumSlotsPerPeer }

    private func count(of peer: PeerID) -> Int { occupied.count { $0?.peer == peer } }

    /// Assigns a slot to an attempt, a free one or one that is shared; `nil` if the attempt has to wait.
    /// - Parameter othersWait: whether any other peer waits for a slot.
    mutating func assign(
        for id: TransferID, of peer: PeerID, _ attempt: TransferAttemptID, isSmall: Bool, resumes: Bool, othersWait: Bool
    ) -> TransferQueue.Slot? {
        let free = occupied.firstIndex { $0 == nil }
        if isSmall, free != nil || !othersWait,
            let number = occupied.firstIndex(where: {
                $0.map { $0.isShared && $0.peer == peer && $0.attempts < TransferQueue.maximumPerSlot && !$0.isPreempted } ?? false
            })
        {
            occupied[number]?.attempts += 1
            attempts[attempt] = (id, number, 0)
            return TransferQueue.Slot(number: number, isShared: true)
        }
        guard let free, !othersWait || !hasMaximum(peer) else { return nil }
        occupied[free] = OccupiedSlot(peer: peer, isShared: isSmall, resumes: resumes, since: attempt)
        attempts[attempt] = (id, free, 0)
        return TransferQueue.Slot(number: free, isShared: isSmall)
    }

    /// Removes an attempt from its slot. If it is the last attempt, the slot becomes free.
    /// - Returns: the transfer of the attempt; `nil` if the attempt has no slot.
    mutating func leave(_ attempt: TransferAttemptID) -> TransferID? {
        guard let (id, slot, _) = attempts.removeValue(forKey: attempt) else { return nil }
        occupied[slot]?.attempts -= 1
        if occupied[slot]?.attempts == 0 { occupied[slot] = nil }
        return id
    }

    /// Records the progress of an attempt.
    /// - Parameter arrived: total number of bytes that the attempt has received.
    mutating func progressed(_ attempt: TransferAttemptID, arrived: Int64) {
        guard let known = attempts[attempt], arrived > known.arrived else { return }
        occupied[known.slot]?.arrived += arrived - known.arrived
        attempts[attempt]?.arrived = arrived
    }

    /// Measures transfer rates while other peers wait, and chooses the slot to free: the newest slot of a peer with too many slots, or else
    /// the slowest one below `TransferQueue.minimumRate`.
    /// - Parameter waiting: one or two of the peers that wait for a slot; empty if a slot is free or no peer waits.
    /// - Returns: the attempts to preempt, and the end of the earliest rate measurement; `nil` if rates are not measured.
    mutating func preempt(for waiting: [PeerID], now: Instant) -> (preempted: [TransferAttemptID], measured: Instant?) {
        var ends: Instant?
        var slow: (number: Int, rate: Int64)?
        var crowding: (number: Int, since: TransferAttemptID)?
        for number in occupied.indices {
            guard let slot = occupied[number] else { continue }
            guard waiting.contains(where: { $0 != slot.peer }) else {
                occupied[number]?.window = nil
                continue
            }
            guard slot.resumes, !slot.isPreempted else { continue }
            if count(of: slot.peer) > TransferQueue.maximumSlotsPerPeer, slot.since.value > crowding?.since.value ?? 0 {
                crowding = (number, slot.since)
            }
            var window = slot.window ?? (now, slot.arrived)
            let time = window.began.duration(to: now)
            if time >= TransferQueue.rateWindow {
                let rate = (slot.arrived - window.arrived) / max(1, time.components.seconds)
                if rate < TransferQueue.minimumRate, rate < slow?.rate ?? .max { slow = (number, rate) }
                window = (now, slot.arrived)
            }
            occupied[number]?.window = window
            let end = window.began + TransferQueue.rateWindow
            ends = min(ends ?? end, end)
        }
        // Only one slot is freed at a time, because only one transfer may be waiting.
        guard let number = crowding?.number ?? slow?.number, !occupied.contains(where: { $0?.isPreempted ?? false }) else {
            return ([], ends)
        }
        occupied[number]?.isPreempted = true
        return (attempts.filter { $0.value.slot == number }.keys.sorted { $0.value < $1.value }, ends)
    }
}
