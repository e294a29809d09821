import HexlistModel

/// Who may send: at most so many peers at once, the rest in the order in which they asked (SURFACE "Sending").
struct TransferTurns: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// Without progress a turn is kept no longer than this where others wait.
    static let patience = Duration.seconds(30)

    /// Who has a turn, and when it was given or last came forward.
    private var granted: [PeerID: Instant] = [:]
    private var waiting: [PeerID] = []
    var limit: Int

    init(limit: Int) { self.limit = max(1, limit) }

    var active: Set<PeerID> { Set(granted.keys) }

    var othersWait: Bool { !waiting.isEmpty }

    /// Who may ask: the first in line, while a turn is free.
    var next: PeerID? { granted.count < limit ? waiting.first : nil }

    /// When `overdue` may name somebody; `nil` where nobody waits.
    var deadline: Instant? { othersWait ? granted.values.min().map { $0 + Self.patience } : nil }

    func hasTurn(_ peer: PeerID) -> Bool { granted[peer] != nil }

    func isWaiting(_ peer: PeerID) -> Bool { waiting.contains(peer) }

    /// - Returns: whether the peer has a turn now; otherwise it stands in the queue.
    mutating func request(_ peer: PeerID, now: Instant) -> Bool {
        if hasTurn(peer) { return true }
        if granted.count < limit, waiting.isEmpty || waiting.first == peer {
            waiting.removeAll { $0 == peer }
            granted[peer] = now
            return true
        }
        if !waiting.contains(peer) { waiting.append(peer) }
        return false
    }

    /// The peer answered for something that was sent to it.
    mutating func progressed(_ peer: PeerID, now: Instant) {
        if hasTurn(peer) { granted[peer] = now }
    }

    /// Who keeps others waiting and has not come forward for 30 s.
    func overdue(now: Instant) -> [PeerID] {
        guard othersWait else { return [] }
        return granted.filter { now - $0.value >= Self.patience }.map(\.key)
    }

    /// Gives the turn, or the place in the queue, back.
    /// - Returns: who may ask again.
    mutating func release(_ peer: PeerID) -> PeerID? {
        waiting.removeAll { $0 == peer }
        granted[peer] = nil
        return next
    }
}
