public import HexlistModel

/// The sort key of an entry of a folder. It is also the cursor of a page of the listing: the next page begins after this entry.
///
///     <name>                    sorted by name
///     <size or time>:<name>     sorted by size or time; -1 for the size of a folder
public struct FolderCursor: Comparable {
    /// The size in bytes, or the modification time in milliseconds since 1970; 0 if sorted by name. Larger numbers come first.
    let number: Int64
    let name: [UInt8]

    init(number: Int64 = 0, name: [UInt8]) {
        self.number = number
        self.name = name
    }

    /// Parses a cursor; `nil` if it is invalid for the order.
    init?(_ cursor: String, _ order: FolderSortOrder) {
        guard order != .name else {
            guard SharePath.isName(cursor) else { return nil }
            self.init(name: Array(cursor.utf8))
            return
        }
        let parts = cursor.utf8.split(separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
        let texts = parts.map { String(decoding: $0, as: UTF8.self) }
        guard texts.count == 2, let number = Int64(texts[0]), "\(number)".utf8.elementsEqual(texts[0].utf8), SharePath.isName(texts[1])
        else {
            return nil
        }
        self.init(number: number, name: Array(texts[1].utf8))
    }

    /// Whether a text is a valid cursor for the order.
    public static func isCursor(_ text: String, _ order: FolderSortOrder) -> Bool { FolderCursor(text, order) != nil }

    func text(_ order: FolderSortOrder) -> String {
        let name = String(decoding: name, as: UTF8.self)
        return order == .name ? name : "\(number):\(name)"
    }

    public static func < (left: FolderCursor, right: FolderCursor) -> Bool {
        left.number != right.number ? left.number > right.number : left.name.lexicographicallyPrecedes(right.name)
    }
}

/// Finds the first `limit` entries after a cursor in a sequence of any length. Memory is O(2·limit).
struct FirstEntries {
    private let limit: Int
    private let after: FolderCursor?
    private var entries: [FolderCursor] = []
    /// The last of the first `limit` entries, as of the last call of `cut`. An entry after it cannot be among the first `limit`. `nil`
    /// until `cut` has found `limit` entries.
    private var last: FolderCursor?

    /// Number of entries in memory.
    var count: Int { entries.count }

    init(limit: Int, after: FolderCursor?) {
        self.limit = limit
        self.after = after
    }

    mutating func insert(_ number: Int64, _ name: UnsafeBufferPointer<UInt8>) {
        guard mayTake(number, name) else { return }
        entries.append(FolderCursor(number: number, name: Array(name)))
        if entries.count >= 2 * limit { cut() }
    }

    /// Whether an entry may be among the first `limit`. Does not copy the name.
    func mayTake(_ number: Int64, _ name: UnsafeBufferPointer<UInt8>) -> Bool {
        if let after, after.number != number ? after.number < number : !after.name.lexicographicallyPrecedes(name) { return false }
        if let last, last.number != number ? last.number > number : last.name.lexicographicallyPrecedes(name) { return false }
        return true
    }

    private mutating func cut() {
        entries.sort()
        entries.removeSubrange(min(limit, entries.count)...)
        if entries.count == limit { last = entries.last }
    }

    func sorted() -> [FolderCursor] {
        var copy = self
        copy.cut()
        return copy.entries
    }
}
