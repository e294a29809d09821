import HexlistModel

/// Limits the number of peers to which hexes are sent at the same time. Other peers wait for a slot in a FIFO queue (Docs/Protocol.md,
/// "Delivery").
struct SendSlots: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// Timeouts of a slot, which apply while other peers wait.
    struct Timeouts: Sendable {
        /// Maximum total time, regardless of progress.
        var total = Duration.seconds(60)
        /// Maximum time without a result.
        var idle = Duration.seconds(30)
    }

    private struct Slot: Sendable {
        let grantedAt: Instant
        /// The time of the last result, or of the grant.
        var lastProgress: Instant

        func end(_ timeouts: Timeouts) -> Instant { min(grantedAt + timeouts.total, lastProgress + timeouts.idle) }
    }

    private var granted: [PeerID: Slot] = [:]
    private var waiting: [PeerID] = []
    private let timeouts: Timeouts
    var limit: Int

    init(limit: Int, timeouts: Timeouts = Timeouts()) {
        self.limit = max(1, limit)
        self.timeouts = timeouts
    }

    var active: Set<PeerID> { Set(granted.keys) }

    var othersWait: Bool { !waiting.isEmpty }

    /// The first peer in the queue, which may request the free slot; `nil` if no slot is free.
    var next: PeerID? { granted.count < limit ? waiting.first : nil }

    /// The earliest time at which `overdue` may return a peer; `nil` if no peer waits.
    var deadline: Instant? { othersWait ? granted.values.lazy.map { $0.end(timeouts) }.min() : nil }

    func hasSlot(_ peer: PeerID) -> Bool { granted[peer] != nil }

    func isWaiting(_ peer: PeerID) -> Bool { waiting.contains(peer) }

    /// - Returns: whether the peer has a slot now; otherwise it is in the queue.
    mutating func request(_ peer: PeerID, now: Instant) -> Bool {
        if hasSlot(peer) { return true }
        if granted.count < limit, waiting.isEmpty || waiting.first == peer {
            waiting.removeAll { $0 == peer }
            granted[peer] = Slot(grantedAt: now, lastProgress: now)
            return true
        }
        if !waiting.contains(peer) { waiting.append(peer) }
        return false
    }

    /// Restarts the idle timeout after a result of the peer.
    mutating func progressed(_ peer: PeerID, now: Instant) { granted[peer]?.lastProgress = now }

    /// The peers whose slots have timed out; none if no peer waits.
    func overdue(now: Instant) -> [PeerID] {
        guard othersWait else { return [] }
        return granted.filter { now >= $0.value.end(timeouts) }.map(\.key)
    }

    /// Releases the slot of a peer, or its position in the queue.
    /// - Returns: the peer that may request the free slot.
    mutating func release(_ peer: PeerID) -> PeerID? {
        waiting.removeAll { $0 == peer }
        granted[peer] = nil
        return next
    }
}
