internal import HexlistModel

/// The capacity for held hexes of one stranger during one batch.
///
/// A held hex was acknowledged, so it is never displaced: if the quota is used up, new hexes are refused. Peers without an alias have at
/// most a quarter per source (`HeldSource`), because one host can make any number of keys, and three quarters together, so that a quarter
/// is left to peers with an alias.
struct HeldCapacity {
    struct Amount: Equatable {
        var hexes: Int64 = 0
        var bytes: Int64 = 0
    }

    let quotas: HeldQuotas
    /// Whether the user gave the sender an alias. If so, its source has no quota.
    let hasAlias: Bool
    /// The sender's own held hexes.
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
        // A quarter of one to three hexes is one hex.
        return fits(source, hexes: max(min(quotas.hexes, 1), quotas.hexes / 4), bytes: quotas.bytes / 4)
            && fits(unnamed, hexes: quotas.hexes - quotas.hexes / 4, bytes: quotas.bytes - quotas.bytes / 4)
    }

    mutating func add(bytes: Int64) {
        func more(_ amount: Amount) -> Amount { Amount(hexes: amount.hexes &+ 1, bytes: amount.bytes &+ bytes) }
        (own, all, unnamed, source) = (more(own), more(all), more(unnamed), more(source))
    }
}

extension StoreWriter {
    /// - Parameters:
    ///   - sender: the sender's row, if it has one. Its counters must not have changed in this operation.
    ///   - source: a name from `HeldSource`.
    func heldCapacity(of sender: PeerRow?, from source: String, quotas: HeldQuotas) throws -> HeldCapacity {
        let hasAlias = sender?.alias != nil
        var capacity = HeldCapacity(
            quotas: quotas, hasAlias: hasAlias, own: .init(hexes: sender?.held ?? 0, bytes: sender?.heldBytes ?? 0),
            all: .init(hexes: counters.held, bytes: counters.heldBytes))
        guard !hasAlias else { return capacity }
        let named = try amount("SELECT coalesce(sum(held), 0), coalesce(sum(heldBytes), 0) FROM peer WHERE alias IS NOT NULL")
        capacity.unnamed = .init(hexes: capacity.all.hexes &- named.hexes, bytes: capacity.all.bytes &- named.bytes)
        // Reads at most `quotas.hexes` rows. The second condition lets SQLite use the index of hexes outside the inbox.
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
