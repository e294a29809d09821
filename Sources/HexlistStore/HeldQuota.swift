internal import HexlistModel

extension StoreWriter {
    /// Makes room for one more held hex within the bounds of all strangers together.
    ///
    /// Where there is none, the oldest held hex goes of the address that has most (hexes or bytes, whichever are full).
    /// Where none has more than the newcomer's own, nothing goes and the newcomer is refused: filling the room from one
    /// address costs nobody else anything. The sender of what went is not told; its id is forgotten, and so is the sender
    /// where nothing else is known of it: a key costs nothing, and rows of keys would be what grows.
    ///
    /// - Parameter sender: the newcomer's row, which stays.
    /// - Returns: whether there is room now. Inside `change`.
    func makeRoom(bytes: Int64, from newcomer: String, sender: Int64?, quotas: HeldQuotas) throws -> Bool {
        guard bytes <= Int64(quotas.bytes), quotas.hexes > 0 else { return false }
        let isFull = { (hexes: Int64, size: Int64) in hexes &+ 1 > Int64(quotas.hexes) || size &+ bytes > Int64(quotas.bytes) }
        guard isFull(tally.held, tally.heldBytes) else { return true }

        // At most `quotas.hexes` rows, oldest first; decided in full before anything goes.
        var shares: [String: Share] = [:]
        let held = try all("SELECT id, heldFrom, byteCount, peer FROM hex WHERE location = 'held' AND location <> 'inbox' ORDER BY id") {
            (id: $0.int64(0), from: $0.text(1), bytes: $0.int64(2), peer: $0.int64(3))
        }
        for hex in held { shares[hex.from, default: Share()].add(id: hex.id, bytes: hex.bytes) }
        var (hexes, size) = (tally.held, tally.heldBytes)
        var leaving: Set<Int64> = []
        while isFull(hexes, size) {
            let countsHexes = hexes &+ 1 > Int64(quotas.hexes)
            let amount = { (share: Share) in countsHexes ? Int64(share.waiting.count) : share.bytes }
            let own = shares[newcomer].map(amount) ?? 0
            let most = shares.filter { $0.key != newcomer && !$0.value.waiting.isEmpty }.max { left, right in
                let (less, more) = (amount(left.value), amount(right.value))
                return less == more ? left.value.oldest > right.value.oldest : less < more
            }
            guard let most, amount(most.value) > own, let gone = shares[most.key]?.removeOldest() else { return false }
            leaving.insert(gone.id)
            hexes &-= 1
            size &-= gone.bytes
        }
        try remove(leaving.sorted(), remembering: nil)
        try saveCounters()
        let senders = Set(held.lazy.filter { leaving.contains($0.id) }.map(\.peer))
        for peer in senders where peer != sender { _ = try dropPeers("AND id = ?", peer) }
        return true
    }
}

/// What one address has among the held hexes.
private struct Share {
    private(set) var waiting: ArraySlice<(id: Int64, bytes: Int64)> = []
    private(set) var bytes: Int64 = 0

    var oldest: Int64 { waiting.first?.id ?? .max }

    mutating func add(id: Int64, bytes: Int64) {
        waiting.append((id, bytes))
        self.bytes &+= bytes
    }

    mutating func removeOldest() -> (id: Int64, bytes: Int64)? {
        guard let oldest = waiting.popFirst() else { return nil }
        bytes &-= oldest.bytes
        return oldest
    }
}
