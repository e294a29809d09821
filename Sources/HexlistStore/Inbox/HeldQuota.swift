internal import HexlistModel

/// The room for hexes of one stranger during one batch.
///
/// A held hex was acknowledged, so later ones never displace it: a full tray refuses new ones. So that one host cannot fill it with any
/// number of keys, peers without an alias have at most a quarter per source (`HeldSource`), and all of them together leave a quarter to
/// those with one.
struct HeldCapacity {
    struct Amount: Equatable {
        var hexes: Int64 = 0
        var bytes: Int64 = 0
    }

    let quotas: HeldQuotas
    /// Whether the user has given the sender an alias. Such a sender is not counted by its source.
    let hasAlias: Bool
    /// The sender's own held hexes.
    var own: Amount
    /// The held hexes of all peers.
    var all: Amount
    /// The held hexes of peers without an alias: of all of them, and of the sender's source.
    var unnamed = Amount()
    var source = Amount()

    func fits(bytes: Int64) -> Bool {
        func fits(_ amount: Amount, hexes: Int, bytes most: Int) -> Bool {
            let (size, overflow) = amount.bytes.addingReportingOverflow(bytes)
            return amount.hexes < Int64(hexes) && !overflow && size <= Int64(most)
        }
        guard fits(own, hexes: quotas.hexesPerPeer, bytes: quotas.bytesPerPeer), fits(all, hexes: quotas.hexes, bytes: quotas.bytes)
        else { return false }
        guard !hasAlias else { return true }
        // A quarter of a tray for one to three hexes is one hex.
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
    ///   - sender: the sender's row, if it has one. Nothing of it is counted yet in this operation.
    ///   - source: a name given by `HeldSource`.
    func heldRoom(of sender: PeerRow?, from source: String, quotas: HeldQuotas) throws -> HeldCapacity {
        let hasAlias = sender?.alias != nil
        var room = HeldCapacity(
            quotas: quotas, hasAlias: hasAlias, own: .init(hexes: sender?.held ?? 0, bytes: sender?.heldBytes ?? 0),
            all: .init(hexes: tally.held, bytes: tally.heldBytes))
        guard !hasAlias else { return room }
        let named = try amount("SELECT coalesce(sum(held), 0), coalesce(sum(heldBytes), 0) FROM peer WHERE alias IS NOT NULL")
        room.unnamed = .init(hexes: room.all.hexes &- named.hexes, bytes: room.all.bytes &- named.bytes)
        // Reads at most `quotas.hexes` rows. The second condition lets SQLite use the index of hexes outside the inbox.
        room.source = try amount(
            """
            SELECT count(*), coalesce(sum(hex.byteCount), 0) FROM hex JOIN peer ON peer.id = hex.peer
            WHERE hex.location = 'held' AND hex.location <> 'inbox' AND hex.heldFrom = ? AND peer.alias IS NULL
            """, source)
        return room
    }

    private func amount(_ sql: String, _ values: any SQLValue...) throws -> HeldCapacity.Amount {
        let statement = try SQLStatement(sql, on: db)
        defer { statement.reset() }
        try statement.bind(values)
        guard try statement.step() else { throw StoreFault.lost }
        return HeldCapacity.Amount(hexes: statement.int64(0), bytes: statement.int64(1))
    }
}
