import HexlistModel

/// Limits the number of peers to which hexes are sent at the same time. Further peers wait for a slot in a FIFO queue (Docs/Protocol.md,
/// "Delivery").
struct SendSlots: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// Timeouts of a slot. They apply only while other peers wait for one.
    struct Timeouts: Sendable {
        /// Maximum time for which a peer has the slot, regardless of progress.
        var total = Duration.seconds(60)
        /// Maximum time without a result of the peer.
        var idle = Duration.seconds(30)
    }

    private struct Slot: Sendable {
        let grantedAt: Instant
        /// The instant of the last result; at first the instant at which the slot was granted.
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

    /// The peers with a slot.
    var active: Set<PeerID> { Set(granted.keys) }

    /// Whether any peer waits for a slot.
    var othersWait: Bool { !waiting.isEmpty }

    /// The first peer in the queue, if a slot is free for it; otherwise `nil`.
    var next: PeerID? { granted.count < limit ? waiting.first : nil }

    /// The earliest time at which a slot may time out; `nil` if no peer waits.
    var deadline: Instant? { othersWait ? granted.values.lazy.map { $0.end(timeouts) }.min() : nil }

    func hasSlot(_ peer: PeerID) -> Bool { granted[peer] != nil }

    func isWaiting(_ peer: PeerID) -> Bool { waiting.contains(peer) }

    /// Requests a slot. If none is free, or other peers wait for it, the peer is added to the queue.
    /// - Returns: whether the peer has a slot now.
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

    /// Restarts the idle timeout of the peer's slot after a result.
    mutating func progressed(_ peer: PeerID, now: Instant) { granted[peer]?.lastProgress = now }

    /// Returns the peers whose slots have timed out; none if no peer waits.
    func overdue(now: Instant) -> [PeerID] {
        guard othersWait else { return [] }
        return granted.filter { now >= $0.value.end(timeouts) }.map(\.key)
    }

    /// Releases the slot of a peer, or its position in the queue.
    /// - Returns: the first peer in the queue, if a slot is free for it; otherwise `nil`.
    mutating func release(_ peer: PeerID) -> PeerID? {
        waiting.removeAll { $0 == peer }
        granted[peer] = nil
        return next
    }
}
