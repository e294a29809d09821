internal import HexlistModel

/// The remaining capacity for held hexes of one stranger, used while one batch is stored.
///
/// If a quota is used up, new hexes are refused; held hexes are never removed to make room, because they were acknowledged. Peers without
/// an alias may use at most a quarter of the total quota per source (`HeldSource`), because one host can create any number of keys. All
/// peers without an alias together may use three quarters, so that a quarter is reserved for peers with an alias.
struct HeldCapacity {
    struct Amount: Equatable {
        var hexes: Int64 = 0
        var bytes: Int64 = 0
    }

    let quotas: HeldQuotas
    /// Whether the user gave the sender an alias. If so, the quotas for peers without an alias do not apply.
    let hasAlias: Bool
    /// The held hexes of the sender.
    var own: Amount
    /// The held hexes of all peers.
    var all: Amount
    /// The held hexes of all peers without an alias.
    var unnamed = Amount()
    /// The held hexes of peers without an alias from the sender's source.
    var source = Amount()

    func fits(bytes: Int64) -> Bool {
        func fits(_ amount: Amount, hexes: Int, bytes most: Int) -> Bool {
            let (size, overflow) = amount.bytes.addingReportingOverflow(bytes)
            return amount.hexes < Int64(hexes) && !overflow && size <= Int64(most)
        }
        guard fits(own, hexes: quotas.hexesPerPeer, bytes: quotas.bytesPerPeer), fits(all, hexes: quotas.hexes, bytes: quotas.bytes)
        else { return false }
        guard !hasAlias else { return true }
        // If the quota is less than four hexes, a quarter of it is rounded up to one hex.
        return fits(source, hexes: max(min(quotas.hexes, 1), quotas.hexes / 4), bytes: quotas.bytes / 4)
            && fits(unnamed, hexes: quotas.hexes - quotas.hexes / 4, bytes: quotas.bytes - quotas.bytes / 4)
    }

    mutating func add(bytes: Int64) {
        func more(_ amount: Amount) -> Amount { Amount(hexes: amount.hexes &+ 1, bytes: amount.bytes &+ bytes) }
        (own, all, unnamed, source) = (more(own), more(all), more(unnamed), more(source))
    }
}

extension StoreWriter {
    /// Returns the remaining capacity for held hexes of a sender.
    /// - Parameters:
    ///   - sender: the sender's row; `nil` if it has none. The row must be current: no hex of the sender may have been stored in this
    ///     operation.
    ///   - source: the name of the sender's source, from `HeldSource.of`.
    func heldCapacity(of sender: PeerWriteColumns?, from source: String, quotas: HeldQuotas) throws -> HeldCapacity {
        let hasAlias = sender?.alias != nil
        var capacity = HeldCapacity(
            quotas: quotas, hasAlias: hasAlias, own: .init(hexes: sender?.held ?? 0, bytes: sender?.heldBytes ?? 0),
            all: .init(hexes: counters.held, bytes: counters.heldBytes))
        guard !hasAlias else { return capacity }
        let named = try amount("SELECT coalesce(sum(held), 0), coalesce(sum(heldBytes), 0) FROM peer WHERE alias IS NOT NULL")
        capacity.unnamed = .init(hexes: capacity.all.hexes &- named.hexes, bytes: capacity.all.bytes &- named.bytes)
        // The query reads at most `quotas.hexes` rows. The condition `<> 'inbox'` is redundant, but lets SQLite use the partial index
        // `hexBeside`.
        capacity.source = try amount(
            """
            SELECT count(*), coalesce(sum(hex.byteCount), 0) FROM hex JOIN peer ON peer.id = hex.peer
            WHERE hex.location = 'held' AND hex.location <> 'inbox' AND hex.heldFrom = ? AND peer.alias IS NULL
            """, source)
        return capacity
    }

    private func amount(_ sql: String, _ values: any SQLValue...) throws -> HeldCapacity.Amount {
        let statement = try SQLStatement(sql, on: db)
        defer { statement.reset() }
        try statement.bind(values)
        guard try statement.step() else { throw StoreFault.lost }
        return HeldCapacity.Amount(hexes: statement.int64(0), bytes: statement.int64(1))
    }
}
