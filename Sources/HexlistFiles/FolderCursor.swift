public import HexlistModel

/// The place of an entry of a folder in an order, behind which a page goes on.
///
///     a name                    in the order of names
///     <size or time>:<name>     in the others; -1 for a folder's size
public struct FolderCursor: Comparable {
    /// Bytes, or milliseconds since 1970: the greater come first. 0 in the order of names.
    let number: Int64
    let name: [UInt8]

    init(number: Int64 = 0, name: [UInt8]) {
        self.number = number
        self.name = name
    }

    /// Reads a cursor; `nil` for what is none of this order.
    init?(_ cursor: String, _ order: FileOrder) {
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

    /// Whether a text is the `next` of a list in this order.
    public static func isCursor(_ text: String, _ order: FileOrder) -> Bool { FolderCursor(text, order) != nil }

    func cursor(_ order: FileOrder) -> String {
        let name = String(decoding: name, as: UTF8.self)
        return order == .name ? name : "\(number):\(name)"
    }

    public static func < (left: FolderCursor, right: FolderCursor) -> Bool {
        left.number != right.number ? left.number > right.number : left.name.lexicographicallyPrecedes(right.name)
    }
}

/// The first places of as many as come, in the memory of twice as many as are wanted.
struct SmallestEntries {
    private let limit: Int
    private let after: FolderCursor?
    private var places: [FolderCursor] = []
    /// The last place that can still be among the first ones.
    private var last: FolderCursor?

    /// The places that are kept.
    var count: Int { places.count }

    init(limit: Int, after: FolderCursor?) {
        self.limit = limit
        self.after = after
    }

    mutating func insert(_ number: Int64, _ name: UnsafeBufferPointer<UInt8>) {
        guard mayTake(number, name) else { return }
        places.append(FolderCursor(number: number, name: Array(name)))
        if places.count >= 2 * limit { cut() }
    }

    /// Whether a place could be among them; compared without a copy of the name.
    func mayTake(_ number: Int64, _ name: UnsafeBufferPointer<UInt8>) -> Bool {
        if let after, after.number != number ? after.number < number : !after.name.lexicographicallyPrecedes(name) { return false }
        if let last, last.number != number ? last.number > number : last.name.lexicographicallyPrecedes(name) { return false }
        return true
    }

    private mutating func cut() {
        places.sort()
        places.removeSubrange(min(limit, places.count)...)
        if places.count == limit { last = places.last }
    }

    func sorted() -> [FolderCursor] {
        var copy = self
        copy.cut()
        return copy.places
    }
}
