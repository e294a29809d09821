import HexlistModel

/// Who may send: at most so many peers at once, the rest in the order in which they asked (SURFACE "Sending").
struct TransferTurns: Sendable {
    private(set) var active: Set<PeerID> = []
    private var waiting: [PeerID] = []
    var limit: Int

    init(limit: Int) { self.limit = max(1, limit) }

    var othersWait: Bool { !waiting.isEmpty }

    func isWaiting(_ peer: PeerID) -> Bool { waiting.contains(peer) }

    /// - Returns: whether the peer has a turn now; otherwise it stands in the queue.
    mutating func request(_ peer: PeerID) -> Bool {
        if active.contains(peer) { return true }
        if active.count < limit, waiting.isEmpty || waiting.first == peer {
            waiting.removeAll { $0 == peer }
            active.insert(peer)
            return true
        }
        if !waiting.contains(peer) { waiting.append(peer) }
        return false
    }

    /// Gives the turn, or the place in the queue, back.
    /// - Returns: who may ask again.
    mutating func release(_ peer: PeerID) -> PeerID? {
        waiting.removeAll { $0 == peer }
        active.remove(peer)
        return active.count < limit ? waiting.first : nil
    }
}
