internal import HexlistModel

/// Collects consecutive hexes of a batch for one pack.
struct OutboxPackBuilder {
    let options: EnqueueOptions
    let hexes: PreparedHexes
    /// Indices of the collected hexes.
    private(set) var gathered: Range<Int>
    private var keys: Set<MessageID> = []

    /// - Parameter start: the index of the first hex.
    init(_ hexes: PreparedHexes, from start: Int, _ options: EnqueueOptions) {
        self.hexes = hexes
        self.options = options
        gathered = start..<start
    }

    /// The number of rows of the collected hexes, for all recipients.
    var rows: Int { gathered.count * options.recipients.count }

    /// The bytes of the bodies of the collected hexes.
    var bytes: Int { gathered.isEmpty ? 0 : hexes.packed.bodies(of: gathered).count }

    /// Whether the next hex may be added. Hexes with and without a key are not mixed. A hex that offers files is alone, because offers
    /// refer to the id of its row range.
    func fits(_ index: Int) -> Bool {
        guard let first = gathered.first else { return true }
        return index == gathered.upperBound && hexes.hasKey(first) == hexes.hasKey(index) && hexes.offers(first).isEmpty
            && hexes.offers(index).isEmpty && gathered.count < OutboxPack.maxHexes
            && bytes + hexes.body(index).count <= OutboxPack.maxBytes && !keys.contains(hexes.messageID(index))
    }

    /// Adds the next hex. `fits` must be true for it.
    mutating func add(_ index: Int) {
        gathered = (gathered.first ?? index)..<(index + 1)
        if hexes.hasKey(index) { keys.insert(hexes.messageID(index)) }
    }

    mutating func removeAll() {
        gathered = gathered.upperBound..<gathered.upperBound
        keys.removeAll(keepingCapacity: true)
    }
}
