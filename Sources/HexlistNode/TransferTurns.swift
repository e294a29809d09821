import HexlistModel

/// Turns of peers to be sent to: a limited number at once, the others wait in the order in which they asked.
struct TransferTurns: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// The time a turn is kept while others wait.
    struct Patience: Sendable {
        /// The time in all, however the peer answers.
        var inAll = Duration.seconds(60)
        /// The time without an answer.
        var withoutProgress = Duration.seconds(30)
    }

    private struct Turn: Sendable {
        let began: Instant
        /// The instant at which the turn was given, or the peer last answered.
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

    /// The peer that may request a turn: the first in line, while a turn is free.
    var next: PeerID? { granted.count < limit ? waiting.first : nil }

    /// The instant at which `overdue` may return a peer; `nil` if no peer waits.
    var deadline: Instant? { othersWait ? granted.values.lazy.map { $0.end(patience) }.min() : nil }

    func hasTurn(_ peer: PeerID) -> Bool { granted[peer] != nil }

    func isWaiting(_ peer: PeerID) -> Bool { waiting.contains(peer) }

    /// - Returns: whether the peer has a turn now; otherwise it is in line.
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

    /// The peers that keep others waiting and whose time is over.
    func overdue(now: Instant) -> [PeerID] {
        guard othersWait else { return [] }
        return granted.filter { now >= $0.value.end(patience) }.map(\.key)
    }

    /// Gives back a turn, or a place in line.
    /// - Returns: the peer that may request a turn now.
    mutating func release(_ peer: PeerID) -> PeerID? {
        waiting.removeAll { $0 == peer }
        granted[peer] = nil
        return next
    }
}
