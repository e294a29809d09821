internal import HexlistModel

/// The columns of a peer that write operations need.
struct PeerWriteColumns {
    var id: Int64
    var uuid: UUIDBytes
    var kind: PeerKind
    var fingerprint: [UInt8]?
    var trust: Trust
    var name: String
    var alias: String?
    var receive: PeerReceiveSetting
    var held: Int64
    var heldBytes: Int64
    /// The day for which `dayHexes` and `dayBytes` count, in days since 1970. They count hexes that the peer, as a stranger, sent into the
    /// inbox (`receiveFrom: everyone`).
    var day: Int64
    var dayHexes: Int64
    var dayBytes: Int64
}

extension StoreReader {
    func peerRow(_ peer: PeerID) throws -> PeerWriteColumns? {
        try first(
            "SELECT id, fingerprint, trust, name, alias, held, heldBytes, day, dayHexes, dayBytes, receive, kind FROM peer "
                + "WHERE uuid = ?", peer.uuid
        ) { row in
            PeerWriteColumns(
                id: row.int64(0), uuid: peer.uuid, kind: PeerKind(number: row.int64(11)) ?? .hexlist,
                fingerprint: row.isNull(1) ? nil : row.bytes(1),
                trust: Trust(rawValue: row.text(2)) ?? .stranger, name: row.text(3), alias: row.optionalText(4),
                receive: PeerReceiveSetting(rawValue: row.text(10)) ?? .inbox, held: row.int64(5),
                heldBytes: row.int64(6), day: row.int64(7), dayHexes: row.int64(8), dayBytes: row.int64(9))
        }
    }
}

extension StoreWriter {
    /// Returns the peer's row. Inserts one if there is none. Call inside `change`.
    ///
    /// - Parameter kind: the kind of a new row. An existing row keeps its kind.
    func peerRow(
        making peer: PeerID, kind: PeerKind = .hexlist, fingerprint: Fingerprint? = nil, name: String = ""
    ) throws -> PeerWriteColumns {
        if let row = try peerRow(peer) { return row }
        try run(
            "INSERT INTO peer (uuid, kind, fingerprint, name) VALUES (?, ?, ?, ?)", peer.uuid, kind.number, fingerprint?.bytes, name)
        guard let row = try peerRow(peer) else { throw StoreFault.lost }
        changed(.peers)
        return row
    }

    /// Returns the row id of a recipient. Inserts a row if there is none, and stores the recipient's key if the row has none. Call inside
    /// `change`.
    func peerRow(of recipient: PeerContact) throws -> Int64 {
        if let row = try peerRow(recipient.peer), row.fingerprint != nil || recipient.fingerprint == nil { return row.id }
        try upsertPeer(recipient, creating: true)
        return try peerRow(making: recipient.peer, kind: recipient.kind).id
    }
}
