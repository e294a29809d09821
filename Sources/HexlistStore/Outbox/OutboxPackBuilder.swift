internal import HexlistModel

/// Gathers the hexes of one pack while a batch is queued: some that follow one another in it.
struct OutboxPackBuilder {
    let terms: EnqueueOptions
    let hexes: PreparedHexes
    /// The hexes that were gathered, by their indices.
    private(set) var gathered: Range<Int>
    private var keys: Set<MessageID> = []

    /// - Parameter start: the index of the first hex that is looked at.
    init(_ hexes: PreparedHexes, from start: Int, _ terms: EnqueueOptions) {
        self.hexes = hexes
        self.terms = terms
        gathered = start..<start
    }

    /// The number of rows that the hexes will have, for all recipients.
    var rows: Int { gathered.count * terms.recipients.count }

    /// The bytes of their bodies.
    var bytes: Int { gathered.isEmpty ? 0 : hexes.packed.bodies(of: gathered).count }

    /// Whether the next hex may be added. Hexes with and without a key are not mixed, and one that offers files is alone, as those are noted by its row's id.
    func fits(_ index: Int) -> Bool {
        guard let first = gathered.first else { return true }
        return index == gathered.upperBound && hexes.hasKey(first) == hexes.hasKey(index) && hexes.offers(first).isEmpty
            && hexes.offers(index).isEmpty && gathered.count < OutboxPack.mostHexes
            && bytes + hexes.body(index).count <= OutboxPack.mostBytes && !keys.contains(hexes.messageID(index))
    }

    /// Adds the next hex, which fits.
    mutating func add(_ index: Int) {
        gathered = (gathered.first ?? index)..<(index + 1)
        if hexes.hasKey(index) { keys.insert(hexes.messageID(index)) }
    }

    mutating func removeAll() {
        gathered = gathered.upperBound..<gathered.upperBound
        keys.removeAll(keepingCapacity: true)
    }
}
