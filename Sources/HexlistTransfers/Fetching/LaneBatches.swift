/// Groups items into batches, in independent lanes. Each lane processes one batch at a time. Items that are added meanwhile are the next
/// batch of the lane.
struct LaneBatches<Lane: Hashable, Item> {
    /// The items that were added to each lane since its batch was started. A lane without a running batch has no entry.
    private var gathered: [Lane: [Item]] = [:]

    /// Adds an item to a lane.
    /// - Returns: `true` if the lane is idle. The caller then starts a batch with this item.
    mutating func begin(_ item: Item, in lane: Lane) -> Bool {
        guard gathered[lane] == nil else {
            gathered[lane]?.append(item)
            return false
        }
        gathered[lane] = []
        return true
    }

    /// Records the end of a lane's batch.
    /// - Returns: the next batch, which the caller starts; empty if no item was added.
    mutating func next(in lane: Lane) -> [Item] {
        let items = gathered[lane] ?? []
        gathered[lane] = items.isEmpty ? nil : []
        return items
    }
}
