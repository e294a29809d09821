/// Batches of small files: while a batch of a lane is in flight, items of that lane gather, and are its next batch. Lanes do not wait for
/// each other.
struct LaneBatches<Lane: Hashable, Item> {
    /// The lanes with a batch in flight, and the items that have gathered meanwhile.
    private var gathered: [Lane: [Item]] = [:]

    /// - Returns: whether the item is a batch that begins now; otherwise it is part of the lane's `next` one.
    mutating func begin(_ item: Item, in lane: Lane) -> Bool {
        guard gathered[lane] == nil else {
            gathered[lane]?.append(item)
            return false
        }
        gathered[lane] = []
        return true
    }

    /// Ends the batch of a lane.
    /// - Returns: the batch that begins now; empty if no item has gathered.
    mutating func next(in lane: Lane) -> [Item] {
        let items = gathered[lane] ?? []
        gathered[lane] = items.isEmpty ? nil : []
        return items
    }
}
