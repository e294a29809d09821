/// The position of one text of a hex: a range of `HexContent.frame` or of `HexContent.arena`.
///
/// A text without escapes is a slice of the bytes it came in; only what had to be rewritten (escapes, repairs) is copied
/// into the arena. Frames stay under 16 MiB, so 31 bits of offset are enough.
public struct TextSlice: Hashable, Sendable {
    /// The place in the lower half, the length in bytes of UTF-8 in the upper one: one number, which is moved about faster than two.
    @usableFromInline var bits: UInt64

    @inlinable
    public init(frame range: Range<Int>) {
        self.init(place: UInt32(truncatingIfNeeded: range.lowerBound) & 0x7FFF_FFFF, count: UInt32(truncatingIfNeeded: range.count))
    }

    @inlinable
    public init(arena range: Range<Int>) {
        self.init(place: UInt32(truncatingIfNeeded: range.lowerBound) | 0x8000_0000, count: UInt32(truncatingIfNeeded: range.count))
    }

    /// - Parameters:
    ///   - place: the offset in bytes; the top bit is set for an offset into the arena.
    ///   - count: the length in bytes.
    @inlinable
    public init(place: UInt32, count: UInt32) {
        bits = UInt64(count) << 32 | UInt64(place)
    }

    /// The text of zero bytes.
    @inlinable public static var empty: TextSlice { TextSlice(frame: 0..<0) }
    @inlinable public var count: Int { Int(bits >> 32) }
    @inlinable public var isEmpty: Bool { count == 0 }
    @inlinable public var isInArena: Bool { bits & 0x8000_0000 != 0 }
    @inlinable public var offset: Int { Int(bits & 0x7FFF_FFFF) }
}

/// One link of a `HexContent`.
public struct LinkContent: Hashable, Sendable {
    public var url: TextSlice
    public var linkDescription: TextSlice
    /// The service's name: in its known spelling if it is a known service (T13), `Unknown` if the link had none.
    public var service: TextSlice
    /// The unknown members as one JSON object, `{"a":1}`; empty if there are none.
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

/// One hex inside another, at any level of a `HexContent`.
public struct ChildContent: Hashable, Sendable {
    /// The index in `HexContent.children` of the hex it is in; `nil` for one directly inside the hex itself.
    public var parent: Int?
    public var senderUUID: TextSlice = .empty
    public var senderName: TextSlice = .empty
    public var hexDescription: TextSlice = .empty
    public var hexColor: TextSlice = .empty
    /// The links, as a range of `HexContent.childLinks`.
    public var links: Range<Int> = 0..<0
    /// The hexes inside this one, as a range of `HexContent.children`.
    public var children: Range<Int> = 0..<0
    /// The unknown members as one JSON object; empty if there are none.
    public var extra: TextSlice = .empty

    public init(parent: Int?) { self.parent = parent }

    public var byteCount: Int { senderUUID.count + senderName.count + hexDescription.count + hexColor.count + extra.count }
}

/// A hex on its way through the process, with the hexes inside it. Its texts are slices of the bytes it arrived in, and go to the store as
/// bytes.
///
/// The hexes inside stand in one array, level by level: those of one hex lie together in their order, and behind the hex they are in. So
/// nothing that reads or writes a tree calls itself, however deep the tree is.
///
/// Every slice is valid UTF-8 and lies inside its buffer. The tolerant decoder, the store and all others that build a
/// `HexContent` guarantee that; `withBytes` checks the range again and does not trap.
public struct HexContent: Sendable {
    /// The JSON the hex was read from, of which its texts are parts without escapes; empty for one that was not read from JSON.
    public var frame: [UInt8]
    public var arena: [UInt8]
    public var senderUUID: TextSlice = .empty
    public var senderName: TextSlice = .empty
    public var hexDescription: TextSlice = .empty
    public var hexColor: TextSlice = .empty
    /// The links of the hex itself.
    public var links: [LinkContent]
    /// The unknown members of the hex as one JSON object; empty if there are none.
    public var extra: TextSlice = .empty
    /// The hexes inside the hex, at all levels. Those directly inside come first.
    public var children: [ChildContent]
    /// The links of all `children`.
    public var childLinks: [LinkContent]

    @inlinable
    public init(frame: [UInt8] = [], arena: [UInt8] = []) {
        self.frame = frame
        self.arena = arena
        // Here and not at the properties, where each would be a call of its own from another module.
        links = []
        children = []
        childLinks = []
    }

    /// Calls `body` with the bytes of a slice, or with an empty buffer if the slice does not lie inside its buffer.
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

    /// Appends bytes of UTF-8 to the arena.
    public mutating func add(bytes: some Collection<UInt8>) -> TextSlice {
        let start = arena.count
        arena.append(contentsOf: bytes)
        return TextSlice(arena: start..<arena.count)
    }

    /// Appends a hex inside another. Those of one hex have to be added together, and after it.
    /// - Returns: its index in `children`.
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

    /// The hexes directly inside one, as a range of `children`; for `nil` those directly inside the hex itself.
    public func children(of parent: Int?) -> Range<Int> {
        guard let parent else { return 0..<(children.firstIndex { $0.parent != nil } ?? children.count) }
        return children[parent].children
    }

    /// The links of one of the hexes inside; for `nil` those of the hex itself.
    public func links(of child: Int?) -> ArraySlice<LinkContent> {
        guard let child else { return links[...] }
        return childLinks[children[child].links]
    }

    /// A hex inside with all that is in it, by itself. It shares the bytes of its texts.
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

    /// The number of hexes: the hex itself and those inside.
    public var hexCount: Int { 1 + children.count }
    /// The number of links of the hex and of those inside.
    public var allLinkCount: Int { links.count + childLinks.count }
    /// Whether the hex keeps to the bounds of the protocol on its links and on the hexes inside. Its levels are not counted.
    public var fitsBounds: Bool { allLinkCount <= ProtocolLimits.links && children.count <= ProtocolLimits.children }

    /// The number of levels: 1 for a hex with none inside.
    public var levels: Int {
        // A hex stands behind the one it is in, so each level is known before it is needed.
        var levels: [Int] = []
        levels.reserveCapacity(children.count)
        for child in children { levels.append(1 + (child.parent.map { levels[$0] } ?? 1)) }
        return levels.max() ?? 1
    }

    /// Bytes, in memory or in the store, that a hex and a link each take at most besides their texts.
    private static let hexBytes = 512
    private static let linkBytes = 64

    /// The most bytes the hex takes in memory and in the store: its frame, the rewritten texts, each link, and a fixed share for itself and
    /// for each hex inside.
    /// - Parameter bytes: the length of the frame the hex came in.
    public func weight(frame bytes: Int) -> Int { bytes + arena.count + allLinkCount * Self.linkBytes + hexCount * Self.hexBytes }

    /// The length of all texts together, in bytes.
    public var byteCount: Int {
        let own = links.reduce(senderUUID.count + senderName.count + hexDescription.count + hexColor.count + extra.count) {
            $0 + $1.byteCount
        }
        guard !children.isEmpty else { return own }
        return childLinks.reduce(children.reduce(own) { $0 + $1.byteCount }) { $0 + $1.byteCount }
    }
}
