/// A text of a hex: a range of `HexContent.frame` or of `HexContent.arena`.
///
/// Texts without escapes are slices of the received bytes. Only texts that had to be rewritten (unescaped, repaired) are copied into the
/// arena. 31 bits of offset are enough, because frames are shorter than 16 MiB.
public struct TextSlice: Hashable, Sendable {
    /// Offset in the lower 32 bits, length in UTF-8 bytes in the upper ones. A single integer is faster to copy than two.
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
    ///   - place: offset in bytes; the top bit is set for the arena.
    ///   - count: the length in bytes.
    @inlinable
    public init(place: UInt32, count: UInt32) {
        bits = UInt64(count) << 32 | UInt64(place)
    }

    /// The empty text.
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
    /// The service's name: normalized for a known service (T13), `Unknown` if the link had none.
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

/// A hex nested in another one, at any level of a `HexContent`.
public struct ChildContent: Hashable, Sendable {
    /// The index of its parent in `HexContent.children`; `nil` if it is directly inside the top hex.
    public var parent: Int?
    public var senderUUID: TextSlice = .empty
    public var senderName: TextSlice = .empty
    public var hexDescription: TextSlice = .empty
    public var hexColor: TextSlice = .empty
    /// Its links, as a range of `HexContent.childLinks`.
    public var links: Range<Int> = 0..<0
    /// Its children, as a range of `HexContent.children`.
    public var children: Range<Int> = 0..<0
    /// Unknown members as a JSON object; empty if there are none.
    public var extra: TextSlice = .empty

    public init(parent: Int?) { self.parent = parent }

    public var byteCount: Int { senderUUID.count + senderName.count + hexDescription.count + hexColor.count + extra.count }
}

/// The content of a hex in memory, with its inner hexes. Texts are slices of the received bytes and are stored as bytes.
///
/// Inner hexes are in one array, level by level: the children of a hex are consecutive, in order, and after their parent. So trees of any
/// depth are read and written without recursion.
///
/// Every slice is valid UTF-8 and inside its buffer. The tolerant decoder, the store and all other code that builds a `HexContent`
/// guarantees that; `withBytes` checks the range again and does not trap.
public struct HexContent: Sendable {
    /// The JSON that contains the texts without escapes; empty if the hex was not read from JSON.
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
    /// The inner hexes of all levels. Direct children come first.
    public var children: [ChildContent]
    /// The links of all `children`.
    public var childLinks: [LinkContent]

    @inlinable
    public init(frame: [UInt8] = [], arena: [UInt8] = []) {
        self.frame = frame
        self.arena = arena
        // Initialized here because default values of properties would be calls from other modules.
        links = []
        children = []
        childLinks = []
    }

    /// Calls `body` with the bytes of a slice; with an empty buffer if the slice is out of bounds.
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

    /// Appends an inner hex. The children of a hex must be added consecutively and after it.
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

    /// The children of an inner hex as a range of `children`; with `nil` those of the top hex.
    public func children(of parent: Int?) -> Range<Int> {
        guard let parent else { return 0..<(children.firstIndex { $0.parent != nil } ?? children.count) }
        return children[parent].children
    }

    /// The links of an inner hex; with `nil` those of the top hex.
    public func links(of child: Int?) -> ArraySlice<LinkContent> {
        guard let child else { return links[...] }
        return childLinks[children[child].links]
    }

    /// An inner hex with its descendants as a content of its own. It shares the texts' bytes.
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
    /// Whether links and inner hexes are within the limits of the protocol. Levels are not checked.
    public var fitsBounds: Bool { allLinkCount <= ProtocolLimits.links && children.count <= ProtocolLimits.children }

    /// The number of levels; 1 without inner hexes.
    public var levels: Int {
        // Parents precede their children, so a parent's level is known.
        var levels: [Int] = []
        levels.reserveCapacity(children.count)
        for child in children { levels.append(1 + (child.parent.map { levels[$0] } ?? 1)) }
        return levels.max() ?? 1
    }

    /// Overhead in bytes of a hex and of a link, in memory or in the store, without texts.
    private static let hexBytes = 512
    private static let linkBytes = 64

    /// Upper bound of the memory and storage that the hex takes: frame, rewritten texts, and the overhead of links and hexes.
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
