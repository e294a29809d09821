/// Turns of work that takes several small files at once: while some of a lane are being done others gather, and are the next. Lanes do not wait
/// for each other.
struct FileTurns<Lane: Hashable, Item> {
    /// The lanes in which something is being done, with the items that have gathered meanwhile.
    private var gathered: [Lane: [Item]] = [:]

    /// - Returns: whether it is to be done now; otherwise it is among the `next`.
    mutating func begin(_ item: Item, in lane: Lane) -> Bool {
        guard gathered[lane] == nil else {
            gathered[lane]?.append(item)
            return false
        }
        gathered[lane] = []
        return true
    }

    /// Ends what was being done in a lane.
    /// - Returns: what is to be done now; nothing where nothing has gathered.
    mutating func next(in lane: Lane) -> [Item] {
        let items = gathered[lane] ?? []
        gathered[lane] = items.isEmpty ? nil : []
        return items
    }
}
