/// The parts of the tree of a list that a transaction changed.
public struct ListTreeChanges: Equatable, Sendable {
    /// Hexes whose values, container or state changed, and the list's id if the values of the root changed.
    public var hexes: Set<ListNode.ID> = []
    /// The changes of the shown leaves by hex; those of the root have the list's id.
    public var contents: [ListNode.ID: LeafChanges] = [:]
    /// Entries of shared lists that changed.
    public var entries: Set<ListNode.ID> = []

    public init(hexes: Set<ListNode.ID> = []) { self.hexes = hexes }

    /// All values and leaves of some hexes.
    public init(allOf hexes: some Sequence<ListNode.ID>) {
        self.hexes = Set(hexes)
        contents = Dictionary(self.hexes.map { ($0, .all) }) { first, _ in first }
    }

    /// Adds that leaves of a hex were added, removed or moved at a position or after it.
    public mutating func addLeaves(of hex: ListNode.ID, from position: LeafPosition) {
        contents[hex, default: LeafChanges()].add(from: position)
    }

    public mutating func formUnion(_ other: ListTreeChanges) {
        hexes.formUnion(other.hexes)
        for (hex, changes) in other.contents { contents[hex, default: LeafChanges()].formUnion(changes) }
        entries.formUnion(other.entries)
    }
}

/// Changes of the shown leaves of one hex.
public struct LeafChanges: Equatable, Sendable {
    /// Leaves may have been added, removed or moved at this position and after it, but not before it; `nil` if none was.
    public private(set) var start: LeafPosition?
    /// The first and the last position of leaves that have other values at the same position; `nil` if there are none.
    public private(set) var values: ClosedRange<LeafPosition>?

    init() {}

    /// Any leaf from a position on may have changed.
    private init(from start: LeafPosition) { self.start = start }

    /// Any leaf may have changed.
    public static let all = LeafChanges(from: .first)

    mutating func add(from position: LeafPosition) { start = min(start ?? position, position) }

    mutating func addValues(at position: LeafPosition) { addValues(at: position...position) }

    private mutating func addValues(at range: ClosedRange<LeafPosition>) {
        guard let values else { return values = range }
        self.values = min(values.lowerBound, range.lowerBound)...max(values.upperBound, range.upperBound)
    }

    mutating func formUnion(_ other: LeafChanges) {
        if let start = other.start { add(from: start) }
        if let values = other.values { addValues(at: values) }
    }
}

/// The position of a leaf in a hex: leaves are in the order of their keys, then of their ids.
public struct LeafPosition: Comparable, Sendable {
    /// The bytes of the order key.
    public var key: [UInt8]
    /// `nil` is less than any id.
    public var id: ListNode.ID?

    /// Not after any leaf.
    public static let first = LeafPosition(key: [])

    /// The first position with a key.
    public init(key: [UInt8]) { self.key = key }

    init(_ node: ListNode) { (key, id) = (node.place?.key.bytes ?? [], node.id) }

    public static func < (left: LeafPosition, right: LeafPosition) -> Bool {
        guard left.key == right.key else { return left.key.lexicographicallyPrecedes(right.key) }
        guard let id = right.id else { return false }
        return left.id.map { $0 < id } ?? true
    }
}
