/// Where one text of a hex stands: a range of `HexContent.frame`, or of `HexContent.arena`.
///
/// A text without escapes is a slice of the bytes it came in; only what had to be rewritten (escapes, repairs) is copied
/// into the arena. Frames stay under 16 MiB, so 31 bits of offset are enough.
public struct TextSlice: Hashable, Sendable {
    /// The offset in bytes; the top bit says that it counts in the arena.
    @usableFromInline var start: UInt32
    /// Bytes of UTF-8.
    @usableFromInline var length: UInt32

    @inlinable
    public init(frame range: Range<Int>) {
        start = UInt32(truncatingIfNeeded: range.lowerBound) & 0x7FFF_FFFF
        length = UInt32(truncatingIfNeeded: range.count)
    }

    @inlinable
    public init(arena range: Range<Int>) {
        start = UInt32(truncatingIfNeeded: range.lowerBound) | 0x8000_0000
        length = UInt32(truncatingIfNeeded: range.count)
    }

    /// - Parameters:
    ///   - place: the offset in bytes; the top bit says that it counts in the arena.
    ///   - count: bytes.
    @inlinable
    public init(place: UInt32, count: UInt32) {
        start = place
        length = count
    }

    /// No bytes at all.
    @inlinable public static var empty: TextSlice { TextSlice(frame: 0..<0) }
    @inlinable public var count: Int { Int(length) }
    @inlinable public var isEmpty: Bool { length == 0 }
    @inlinable public var isInArena: Bool { start & 0x8000_0000 != 0 }
    @inlinable public var offset: Int { Int(start & 0x7FFF_FFFF) }
}

/// One link of a `HexContent`.
public struct LinkContent: Hashable, Sendable {
    public var url: TextSlice
    public var linkDescription: TextSlice
    /// In its known spelling where it is a known one (T13), `Unknown` where it was missing.
    public var service: TextSlice
    /// The unknown members as one JSON object, `{"a":1}`; empty where there are none.
    public var extra: TextSlice

    @inlinable
    public init(url: TextSlice, linkDescription: TextSlice, service: TextSlice, extra: TextSlice = .empty) {
        self.url = url
        self.linkDescription = linkDescription
        self.service = service
        self.extra = extra
    }
}

/// A hex as it crosses the process: texts are slices of the bytes they came in, and go as bytes into the store.
///
/// Every slice is valid UTF-8 and lies inside its buffer; the makers of this value (the tolerant decoder, the builder
/// below, the store) see to it, and `withBytes` checks it once more rather than trap.
public struct HexContent: Sendable {
    public var frame: [UInt8]
    public var arena: [UInt8]
    public var senderUUID: TextSlice = .empty
    public var senderName: TextSlice = .empty
    public var hexDescription: TextSlice = .empty
    public var hexColor: TextSlice = .empty
    public var links: [LinkContent] = []
    /// The unknown members of the hex as one JSON object; empty where there are none.
    public var extra: TextSlice = .empty

    @inlinable
    public init(frame: [UInt8] = [], arena: [UInt8] = []) {
        self.frame = frame
        self.arena = arena
    }

    /// The bytes of a slice; an empty buffer for a slice that does not lie inside its buffer.
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

    /// Puts a text into the arena.
    public mutating func add(_ text: some StringProtocol) -> TextSlice { add(bytes: text.utf8) }

    /// Puts UTF-8 into the arena.
    public mutating func add(bytes: some Collection<UInt8>) -> TextSlice {
        let start = arena.count
        arena.append(contentsOf: bytes)
        return TextSlice(arena: start..<arena.count)
    }

    /// Bytes of memory, or of the store, that a hex or a link may take besides its texts.
    private static let hexBytes = 512
    private static let linkBytes = 64

    /// Bytes it takes at most, in memory and in the store: the frame it came in, the texts that had to be rewritten, each link and itself.
    /// - Parameter frame: bytes of the frame.
    public func weight(frame bytes: Int) -> Int { bytes + arena.count + links.count * Self.linkBytes + Self.hexBytes }

    /// Bytes of text it holds.
    public var byteCount: Int {
        links.reduce(senderUUID.count + senderName.count + hexDescription.count + hexColor.count + extra.count) {
            $0 + $1.url.count + $1.linkDescription.count + $1.service.count + $1.extra.count
        }
    }
}
