internal import HexlistModel

/// Gathers the hexes of one pack while a batch is queued.
struct OutboxPacking {
    let terms: OutboxTerms
    private(set) var hexes: [PreparedHex] = []
    /// The place of each hex's result in the report.
    private(set) var results: [Int] = []
    /// The bytes of their bodies.
    private(set) var bytes = 0
    private var keys: Set<MessageID> = []

    init(_ terms: OutboxTerms) { self.terms = terms }

    /// The number of rows that the hexes will have, for all recipients.
    var rows: Int { hexes.count * terms.recipients.count }

    /// Whether a hex may be added. Hexes with and without a key are not mixed, and one that offers files is alone, as those are noted by its row's id.
    func fits(_ hex: PreparedHex) -> Bool {
        guard let first = hexes.first else { return true }
        return first.hasKey == hex.hasKey && first.offers.isEmpty && hex.offers.isEmpty && hexes.count < OutboxPack.mostHexes
            && bytes + hex.body.count <= OutboxPack.mostBytes && !keys.contains(hex.messageID)
    }

    mutating func add(_ hex: PreparedHex, result: Int) {
        hexes.append(hex)
        results.append(result)
        bytes += hex.body.count
        if hex.hasKey { keys.insert(hex.messageID) }
    }

    mutating func removeAll() {
        hexes.removeAll(keepingCapacity: true)
        results.removeAll(keepingCapacity: true)
        bytes = 0
        keys.removeAll(keepingCapacity: true)
    }

    /// The hexes as a pack has them: one blob of all but their bodies, and one of these.
    static func packed(_ hexes: [PreparedHex]) -> (PackedHexes, bodies: [UInt8]) {
        var packed = PackedHexes()
        packed.reserve(hexes.count)
        var bodies: [UInt8] = []
        bodies.reserveCapacity(hexes.reduce(0) { $0 + $1.body.count })
        for hex in hexes {
            packed.append(messageID: hex.messageID.uuid, digest: hex.digest, bodyBytes: hex.body.count, subject: hex.subject)
            bodies += hex.body
        }
        return (packed, bodies)
    }
}
