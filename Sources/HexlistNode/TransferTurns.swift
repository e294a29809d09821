import HexlistModel

/// The peers that are sent to: so many at once at most, the others in the order in which they asked (Docs/Protocol.md, "Delivery").
struct TransferTurns: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// How long a turn is kept where others wait.
    struct Patience: Sendable {
        /// However the peer answers.
        var inAll = Duration.seconds(60)
        /// Without an answer.
        var withoutProgress = Duration.seconds(30)
    }

    private struct Turn: Sendable {
        let began: Instant
        /// When it was given, or something was last answered.
        var progressed: Instant

        func end(_ patience: Patience) -> Instant { min(began + patience.inAll, progressed + patience.withoutProgress) }
    }

    private var granted: [PeerID: Turn] = [:]
    private var waiting: [PeerID] = []
    private let patience: Patience
    var limit: Int

    init(limit: Int, patience: Patience = Patience()) {
        self.limit = max(1, limit)
        self.patience = patience
    }

    var active: Set<PeerID> { Set(granted.keys) }

    var othersWait: Bool { !waiting.isEmpty }

    /// The first in line, which may ask again; `nil` while no turn is free.
    var next: PeerID? { granted.count < limit ? waiting.first : nil }

    /// When `overdue` may name somebody; `nil` where nobody waits.
    var deadline: Instant? { othersWait ? granted.values.lazy.map { $0.end(patience) }.min() : nil }

    func hasTurn(_ peer: PeerID) -> Bool { granted[peer] != nil }

    func isWaiting(_ peer: PeerID) -> Bool { waiting.contains(peer) }

    /// - Returns: whether the peer has a turn now; otherwise it stands in the queue.
    mutating func request(_ peer: PeerID, now: Instant) -> Bool {
        if hasTurn(peer) { return true }
        if granted.count < limit, waiting.isEmpty || waiting.first == peer {
            waiting.removeAll { $0 == peer }
            granted[peer] = Turn(began: now, progressed: now)
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

    /// Gives the turn, or the place in the queue, back.
    /// - Returns: the peer that may ask again.
    mutating func release(_ peer: PeerID) -> PeerID? {
        waiting.removeAll { $0 == peer }
        granted[peer] = nil
        return next
    }
}
