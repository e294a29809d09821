internal import HexlistModel

/// Collects consecutive hexes of a batch that will be stored as one pack.
struct OutboxPackBuilder {
    let options: EnqueueOptions
    let hexes: PreparedHexes
    /// Indices of the collected hexes in `hexes`.
    private(set) var gathered: Range<Int>
    private var keys: Set<MessageID> = []

    /// - Parameter start: the index of the first hex to collect.
    init(_ hexes: PreparedHexes, from start: Int, _ options: EnqueueOptions) {
        self.hexes = hexes
        self.options = options
        gathered = start..<start
    }

    /// The number of rows that the collected hexes need, for all recipients.
    var rows: Int { gathered.count * options.recipients.count }

    /// The total bytes of the bodies of the collected hexes.
    var bytes: Int { gathered.isEmpty ? 0 : hexes.packed.bodies(of: gathered).count }

    /// Whether a hex can be added to the pack: it must be the next one, and the pack must have capacity. A pack does not mix hexes with and
    /// without keys, and has no two hexes with the same key. A hex that offers files needs a pack of its own, because offers refer to the
    /// first id of a row range.
    func fits(_ index: Int) -> Bool {
        guard let first = gathered.first else { return true }
        return index == gathered.upperBound && hexes.hasKey(first) == hexes.hasKey(index) && hexes.offers(first).isEmpty
            && hexes.offers(index).isEmpty && gathered.count < OutboxPack.maxHexes
            && bytes + hexes.body(index).count <= OutboxPack.maxBytes && !keys.contains(hexes.messageID(index))
    }

    /// Adds the next hex, for which `fits` must be true.
    mutating func add(_ index: Int) {
        gathered = (gathered.first ?? index)..<(index + 1)
        if hexes.hasKey(index) { keys.insert(hexes.messageID(index)) }
    }

    mutating func removeAll() {
        gathered = gathered.upperBound..<gathered.upperBound
        keys.removeAll(keepingCapacity: true)
    }
}
