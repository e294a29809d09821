import HexlistModel

/// The limit on peers that are sent to at once; the others wait in the order in which they asked (Docs/Protocol.md, "Delivery").
struct SendSlots: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// How long a slot is kept while others wait.
    struct Patience: Sendable {
        /// The most time in all, whatever the peer answers.
        var inAll = Duration.seconds(60)
        /// The most time without an answer.
        var withoutProgress = Duration.seconds(30)
    }

    private struct Slot: Sendable {
        let began: Instant
        /// When it was given, or something was last answered.
        var progressed: Instant

        func end(_ patience: Patience) -> Instant { min(began + patience.inAll, progressed + patience.withoutProgress) }
    }

    private var granted: [PeerID: Slot] = [:]
    private var waiting: [PeerID] = []
    private let patience: Patience
    var limit: Int

    init(limit: Int, patience: Patience = Patience()) {
        self.limit = max(1, limit)
        self.patience = patience
    }

    var active: Set<PeerID> { Set(granted.keys) }

    var othersWait: Bool { !waiting.isEmpty }

    /// The first in line, which may ask again; `nil` while no slot is free.
    var next: PeerID? { granted.count < limit ? waiting.first : nil }

    /// When `overdue` may name somebody; `nil` where nobody waits.
    var deadline: Instant? { othersWait ? granted.values.lazy.map { $0.end(patience) }.min() : nil }

    func hasSlot(_ peer: PeerID) -> Bool { granted[peer] != nil }

    func isWaiting(_ peer: PeerID) -> Bool { waiting.contains(peer) }

    /// - Returns: whether the peer has a slot now; otherwise it stands in the queue.
    mutating func request(_ peer: PeerID, now: Instant) -> Bool {
        if hasSlot(peer) { return true }
        if granted.count < limit, waiting.isEmpty || waiting.first == peer {
            waiting.removeAll { $0 == peer }
            granted[peer] = Slot(began: now, progressed: now)
            return true
        }
        if !waiting.contains(peer) { waiting.append(peer) }
        return false
    }

    /// Notes that the peer answered for something that was sent to it.
    mutating func progressed(_ peer: PeerID, now: Instant) { granted[peer]?.progressed = now }

    /// Peers that keep others waiting and have had their time.
    func overdue(now: Instant) -> [PeerID] {
        guard othersWait else { return [] }
        return granted.filter { now >= $0.value.end(patience) }.map(\.key)
    }

    /// Gives the slot, or the place in the queue, back.
    /// - Returns: the peer that may ask again.
    mutating func release(_ peer: PeerID) -> PeerID? {
        waiting.removeAll { $0 == peer }
        granted[peer] = nil
        return next
    }
}
