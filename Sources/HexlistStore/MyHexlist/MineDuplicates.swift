internal import GRDB
internal import HexlistLists
internal import HexlistModel

/// Duplicates in My Hexlist (`ListDuplicates`).
public struct MineDuplicates: Sendable, Equatable {
    /// Numbers of hexes and links that are merged into another one.
    public var hexes = 0
    public var links = 0
    /// Number of further ones with the same title or URL that stay as they are, because another value differs or the hex would be too large.
    public var different = 0
    /// The hexes with duplicates, at most `maximumItems`.
    public var items: [Item] = []
    /// The numbers of the changes in the change log: one for each list with duplicates; none if nothing was changed.
    public var changes: [Int64] = []

    public static let maximumItems = 100

    public struct Item: Sendable, Equatable {
        public var hex: Int64
        public var subject: String
        /// The hexes that become one with this one.
        public var others: [Int64]
        /// The number of links that are deleted in it.
        public var links: Int
    }

    public init() {}
}

extension HexStore {
    /// Makes one of each group of duplicates, in all lists that the user may change.
    /// - Parameters:
    ///   - hex: only in this hex, at all levels; `nil` for all of My Hexlist.
    ///   - includesHexes: whether hexes with the same title become one.
    ///   - now: milliseconds since 1970.
    /// - Throws: `.notFound`; `.badRequest` if the hex is not in My Hexlist or cannot be changed.
    public func mergeMineDuplicates(in hex: Int64?, includingHexes includesHexes: Bool, at now: Int64) async throws -> MineDuplicates {
        try await write { writer in
            try writer.change {
                var result = MineDuplicates()
                for (list, duplicates) in try writer.duplicates(in: hex, includingHexes: includesHexes) {
                    try writer.add(duplicates, in: list, to: &result)
                    guard !duplicates.isEmpty else { continue }
                    try writer.changeMine(at: now, in: list) { try $0.merge(duplicates) }
                    result.changes.append(try ListRecord(on: writer).changes)
                }
                return result
            }
        }
    }
}

extension StoreReader {
    /// Returns the duplicates that `mergeMineDuplicates` would merge.
    public func mineDuplicates(in hex: Int64?, includingHexes includesHexes: Bool) throws -> MineDuplicates {
        var result = MineDuplicates()
        for (list, duplicates) in try duplicates(in: hex, includingHexes: includesHexes) { try add(duplicates, in: list, to: &result) }
        return result
    }

    /// Returns the duplicates of each list (`ListRecord.row`).
    fileprivate func duplicates(in hex: Int64?, includingHexes includesHexes: Bool) throws -> [(list: Int64, ListDuplicates)] {
        if let hex { try checkIsMine(hex) }
        let root = try hex.flatMap { try node(ofHex: $0) }
        let lists =
            try root.map { [$0.list] }
            ?? all("SELECT id FROM list WHERE id = ? OR entry IS NOT NULL ORDER BY id", ListRecord.mine) { $0.int64(0) }.filter(isWritable)
        return try lists.map { list in
            let record = try ListRecord(on: self, row: list)
            if root != nil { try checkIsWritable(record) }
            let duplicates = try ListDuplicates(
                in: root?.id ?? record.id, of: SQLListStorage(record, on: self), includingHexes: includesHexes,
                fits: { try fitInOneHex([$0.kept] + $0.others, in: list) })
            return (list, duplicates)
        }
    }

    /// Whether hexes with their contents together are within the bounds of a hex. Duplicates inside count, too.
    private func fitInOneHex(_ hexes: [ListNode.ID], in list: Int64) throws -> Bool {
        var size = ListSize()
        for id in hexes {
            guard let hex = try hex(ofNode: id, in: list) else { return false }
            let contents = try sizeOfContents(ofHex: hex)
            size.hexes += contents.hexes
            size.links += contents.links
        }
        return size.hexes <= ProtocolLimits.children && size.links <= ProtocolLimits.links
    }

    fileprivate func add(_ duplicates: ListDuplicates, in list: Int64, to result: inout MineDuplicates) throws {
        result.hexes += duplicates.hexes.reduce(0) { $0 + $1.others.count }
        result.links += duplicates.links.reduce(0) { $0 + $1.others.count }
        result.different += duplicates.different
        let kept = Dictionary(duplicates.hexes.flatMap { group in group.others.map { ($0, group.kept) } }) { first, _ in first }
        var items: [Int64: MineDuplicates.Item] = [:]
        func add(_ id: ListNode.ID, links: Int, others: [ListNode.ID]) throws {
            guard let hex = try hex(ofNode: id, in: list),
                items[hex] != nil || result.items.count + items.count < MineDuplicates.maximumItems
            else { return }
            var item = try items[hex] ?? MineDuplicates.Item(hex: hex, subject: subject(of: id, in: list), others: [], links: 0)
            item.links += links
            item.others += try others.compactMap { try self.hex(ofNode: $0, in: list) }
            items[hex] = item
        }
        for group in duplicates.hexes { try add(group.kept, links: 0, others: group.others) }
        for group in duplicates.links {
            let container = try first("SELECT container FROM node WHERE uuid = ? AND list = ?", group.kept.uuid, list) { $0.nodeID(0) }
            if let container = container ?? nil { try add(kept[container] ?? container, links: group.others.count, others: []) }
        }
        result.items += items.values.sorted { $0.hex < $1.hex }
    }
}
