internal import HexlistModel

/// The room there is for hexes of one stranger, as one batch of it finds it and uses it up.
///
/// A held hex was acknowledged, so nothing that comes later takes its place: what is full refuses newcomers. So that one host cannot
/// fill it with as many keys as it likes, peers without an alias have at most a quarter for each source (`HeldSource`), and all of them
/// together leave a quarter to those with one.
struct HeldRoom {
    struct Amount: Equatable {
        var hexes: Int64 = 0
        var bytes: Int64 = 0
    }

    let quotas: HeldQuotas
    /// A name of the user's own for the sender: it is not counted by where it comes from.
    let hasAlias: Bool
    /// Of this sender.
    var own: Amount
    /// Of all.
    var all: Amount
    /// Of peers without an alias: all of them, and those of the sender's source.
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
        // A tray of one to three hexes has a quarter of one.
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
    ///   - sender: its row, where it has one. Nothing of it is counted yet in this operation.
    ///   - source: as `HeldSource` names it.
    func heldRoom(of sender: PeerRow?, from source: String, quotas: HeldQuotas) throws -> HeldRoom {
        let hasAlias = sender?.alias != nil
        var room = HeldRoom(
            quotas: quotas, hasAlias: hasAlias, own: .init(hexes: sender?.held ?? 0, bytes: sender?.heldBytes ?? 0),
            all: .init(hexes: tally.held, bytes: tally.heldBytes))
        guard !hasAlias else { return room }
        let named = try amount("SELECT coalesce(sum(held), 0), coalesce(sum(heldBytes), 0) FROM peer WHERE alias IS NOT NULL")
        room.unnamed = .init(hexes: room.all.hexes &- named.hexes, bytes: room.all.bytes &- named.bytes)
        // At most `quotas.hexes` rows. The second condition lets SQLite use the index of what is not in the inbox.
        room.source = try amount(
            """
            SELECT count(*), coalesce(sum(hex.byteCount), 0) FROM hex JOIN peer ON peer.id = hex.peer
            WHERE hex.location = 'held' AND hex.location <> 'inbox' AND hex.heldFrom = ? AND peer.alias IS NULL
            """, source)
        return room
    }

    private func amount(_ sql: String, _ values: any SQLValue...) throws -> HeldRoom.Amount {
        let statement = try SQLStatement(sql, on: db)
        defer { statement.reset() }
        try statement.bind(values)
        guard try statement.step() else { throw StoreFault.lost }
        return HeldRoom.Amount(hexes: statement.int64(0), bytes: statement.int64(1))
    }
}
