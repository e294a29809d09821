/// A text of a hex, as a range of bytes in `HexContent.frame` or in `HexContent.arena`.
///
/// A text without escapes is a slice of the received frame. Only a text that had to be changed (unescaped or repaired) is copied to the
/// arena. An offset has 31 bits, because frames are shorter than 16 MiB.
public struct TextSlice: Hashable, Sendable {
    /// The offset in the lower 32 bits and the length in UTF-8 bytes in the upper ones. One integer is faster to copy than two.
    @usableFromInline var bits: UInt64

    @inlinable
    public init(frame range: Range<Int>) {
        self.init(offset: UInt32(truncatingIfNeeded: range.lowerBound) & 0x7FFF_FFFF, count: UInt32(truncatingIfNeeded: range.count))
    }

    @inlinable
    public init(arena range: Range<Int>) {
        self.init(offset: UInt32(truncatingIfNeeded: range.lowerBound) | 0x8000_0000, count: UInt32(truncatingIfNeeded: range.count))
    }

    /// - Parameters:
    ///   - offset: the offset in bytes: in the arena if the top bit is set, otherwise in the bytes of the frame.
    ///   - count: the length in bytes.
    @inlinable
    public init(offset: UInt32, count: UInt32) {
        bits = UInt64(count) << 32 | UInt64(offset)
    }

    @inlinable public static var empty: TextSlice { TextSlice(frame: 0..<0) }
    @inlinable public var count: Int { Int(bits >> 32) }
    @inlinable public var isEmpty: Bool { count == 0 }
    @inlinable public var isInArena: Bool { bits & 0x8000_0000 != 0 }
    @inlinable public var offset: Int { Int(bits & 0x7FFF_FFFF) }
}

/// A link of a `HexContent`.
public struct LinkContent: Hashable, Sendable {
    public var url: TextSlice
    public var linkDescription: TextSlice
    /// The service's name: the canonical spelling of a known `Service`, the received text of any other, or `Unknown` if the link has none.
    public var service: TextSlice
    /// Unknown members as a JSON object, `{"a":1}`; empty if there are none.
    public var extra: TextSlice

    @inlinable
    public init(url: TextSlice, linkDescription: TextSlice, service: TextSlice, extra: TextSlice = .empty) {
        self.url = url
        self.linkDescription = linkDescription
        self.service = service
        self.extra = extra
    }

    public var byteCount: Int { url.count + linkDescription.count + service.count + extra.count }
}

/// An inner hex of a `HexContent`, at any level.
public struct ChildContent: Hashable, Sendable {
    /// The index of the parent in `HexContent.children`; `nil` if the parent is the top hex.
    public var parent: Int?
    public var senderUUID: TextSlice = .empty
    public var senderName: TextSlice = .empty
    public var hexDescription: TextSlice = .empty
    public var hexColor: TextSlice = .empty
    /// The links of this hex, as a range of `HexContent.childLinks`.
    public var links: Range<Int> = 0..<0
    /// The direct children of this hex, as a range of `HexContent.children`.
    public var children: Range<Int> = 0..<0
    /// Unknown members as a JSON object; empty if there are none.
    public var extra: TextSlice = .empty

    public init(parent: Int?) { self.parent = parent }

    public var byteCount: Int { senderUUID.count + senderName.count + hexDescription.count + hexColor.count + extra.count }
}

/// The content of a hex and its inner hexes in memory. Texts are slices of the received bytes.
///
/// All inner hexes are in one array, level by level: each hex follows its parent, and the children of one hex are consecutive and in order.
/// Trees of any depth are therefore read and written without recursion.
///
/// Every slice must be valid UTF-8 and inside its buffer. All code that creates a `HexContent` guarantees this. For slices out of bounds,
/// `withBytes` returns an empty text instead of trapping.
public struct HexContent: Sendable {
    /// The received JSON, of which texts without escapes are slices; empty if the hex was not read from JSON.
    public var frame: [UInt8]
    public var arena: [UInt8]
    public var senderUUID: TextSlice = .empty
    public var senderName: TextSlice = .empty
    public var hexDescription: TextSlice = .empty
    public var hexColor: TextSlice = .empty
    /// The links of the top hex.
    public var links: [LinkContent]
    /// Unknown members of the top hex as a JSON object; empty if there are none.
    public var extra: TextSlice = .empty
    /// The inner hexes of all levels, beginning with the direct children of the top hex.
    public var children: [ChildContent]
    /// The links of all inner hexes.
    public var childLinks: [LinkContent]

    @inlinable
    public init(frame: [UInt8] = [], arena: [UInt8] = []) {
        self.frame = frame
        self.arena = arena
        // Assigned in the initializer, which is inlinable. A default value in each declaration would cost other modules a function call.
        links = []
        children = []
        childLinks = []
    }

    /// Calls `body` with the bytes of a slice, or with an empty buffer if the slice is out of bounds.
    @inlinable
    public func withBytes<Result>(of slice: TextSlice, _ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try (slice.isInArena ? arena : frame).withUnsafeBytes { bytes in
            guard slice.offset + slice.count <= bytes.count else { return try body(UnsafeRawBufferPointer(start: nil, count: 0)) }
            return try body(UnsafeRawBufferPointer(rebasing: bytes[slice.offset..<slice.offset + slice.count]))
        }
    }

    public func string(_ slice: TextSlice) -> String {
        withBytes(of: slice) { String(decoding: $0, as: UTF8.self) }
    }

    /// Appends a text to the arena.
    public mutating func add(_ text: some StringProtocol) -> TextSlice { add(bytes: text.utf8) }

    /// Appends UTF-8 bytes to the arena.
    public mutating func add(bytes: some Collection<UInt8>) -> TextSlice {
        let start = arena.count
        arena.append(contentsOf: bytes)
        return TextSlice(arena: start..<arena.count)
    }

    /// Appends an inner hex. Its parent must be added before it, and all children of a hex must be added consecutively.
    /// - Returns: the index of the hex in `children`.
    @discardableResult
    public mutating func add(child: ChildContent) -> Int {
        let index = children.count
        if let parent = child.parent, children.indices.contains(parent) {
            let siblings = children[parent].children
            children[parent].children = (siblings.isEmpty ? index : siblings.lowerBound)..<index + 1
        }
        children.append(child)
        return index
    }

    /// Returns the direct children of an inner hex, or of the top hex if `parent` is `nil`, as a range of `children`.
    public func children(of parent: Int?) -> Range<Int> {
        guard let parent else { return 0..<(children.firstIndex { $0.parent != nil } ?? children.count) }
        return children[parent].children
    }

    /// Returns the links of an inner hex, or of the top hex if `child` is `nil`.
    public func links(of child: Int?) -> ArraySlice<LinkContent> {
        guard let child else { return links[...] }
        return childLinks[children[child].links]
    }

    /// Returns an inner hex and its descendants as a content of their own. Both contents share the buffers of the texts.
    public func subtree(_ index: Int) -> HexContent {
        let top = children[index]
        var tree = HexContent(frame: frame, arena: arena)
        tree.senderUUID = top.senderUUID
        tree.senderName = top.senderName
        tree.hexDescription = top.hexDescription
        tree.hexColor = top.hexColor
        tree.extra = top.extra
        tree.links = Array(links(of: index))
        var waiting = top.children.map { (index: $0, parent: Int?.none) }
        var next = 0
        while next < waiting.count {
            let (index, parent) = waiting[next]
            next += 1
            var child = children[index]
            child.parent = parent
            child.children = 0..<0
            let first = tree.childLinks.count
            tree.childLinks += links(of: index)
            child.links = first..<tree.childLinks.count
            let copy = tree.add(child: child)
            waiting += children[index].children.map { ($0, copy) }
        }
        return tree
    }

    /// The number of hexes, including the top one.
    public var hexCount: Int { 1 + children.count }
    /// The number of links of all hexes.
    public var allLinkCount: Int { links.count + childLinks.count }
    /// Whether the numbers of links and inner hexes are within the protocol's limits. Does not check the number of levels.
    public var fitsBounds: Bool { allLinkCount <= ProtocolLimits.links && children.count <= ProtocolLimits.children }

    /// The number of levels. 1 if there are no inner hexes.
    public var levels: Int {
        // Each parent precedes its children in the array, so its level is already known.
        var levels: [Int] = []
        levels.reserveCapacity(children.count)
        for child in children { levels.append(1 + (child.parent.map { levels[$0] } ?? 1)) }
        return levels.max() ?? 1
    }

    /// Bytes that each hex and each link need in memory or in the store, in addition to their texts.
    private static let hexBytes = 512
    private static let linkBytes = 64

    /// Returns an upper bound, in bytes, of the memory and storage for the hex: its frame, the texts in the arena, and the overhead of all
    /// links and hexes.
    /// - Parameter bytes: the length of the frame.
    public func weight(frame bytes: Int) -> Int { bytes + arena.count + allLinkCount * Self.linkBytes + hexCount * Self.hexBytes }

    /// Total length of all texts in bytes.
    public var byteCount: Int {
        let own = links.reduce(senderUUID.count + senderName.count + hexDescription.count + hexColor.count + extra.count) {
            $0 + $1.byteCount
        }
        guard !children.isEmpty else { return own }
        return childLinks.reduce(children.reduce(own) { $0 + $1.byteCount }) { $0 + $1.byteCount }
    }
}
