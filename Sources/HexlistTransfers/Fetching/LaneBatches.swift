/// Batches of small files, one in flight per lane. Items that arrive meanwhile are the lane's next batch. Lanes do not wait for each other.
struct LaneBatches<Lane: Hashable, Item> {
    /// The lanes with a batch in flight, with the items that have arrived meanwhile.
    private var gathered: [Lane: [Item]] = [:]

    /// Adds an item to a lane.
    /// - Returns: whether the caller must start a batch with this item now; otherwise the item is in the lane's `next` batch.
    mutating func begin(_ item: Item, in lane: Lane) -> Bool {
        guard gathered[lane] == nil else {
            gathered[lane]?.append(item)
            return false
        }
        gathered[lane] = []
        return true
    }

    /// Ends the batch of a lane.
    /// - Returns: the batch to start now; empty if no item has arrived.
    mutating func next(in lane: Lane) -> [Item] {
        let items = gathered[lane] ?? []
        gathered[lane] = items.isEmpty ? nil : []
        return items
    }
}
