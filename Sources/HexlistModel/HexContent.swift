/// The position of one text of a hex: a range of `HexContent.frame` or of `HexContent.arena`.
///
/// A text without escapes is a slice of the bytes it came in; only what had to be rewritten (escapes, repairs) is copied
/// into the arena. Frames stay under 16 MiB, so 31 bits of offset are enough.
public struct TextSlice: Hashable, Sendable {
    /// The offset in bytes; the top bit is set for an offset into the arena.
    @usableFromInline var start: UInt32
    /// The length in bytes of UTF-8.
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
    ///   - place: the offset in bytes; the top bit is set for an offset into the arena.
    ///   - count: the length in bytes.
    @inlinable
    public init(place: UInt32, count: UInt32) {
        start = place
        length = count
    }

    /// The text of zero bytes.
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
}

/// A hex on its way through the process. Its texts are slices of the bytes it arrived in, and go to the store as bytes.
///
/// Every slice is valid UTF-8 and lies inside its buffer. The tolerant decoder, the store and all others that build a
/// `HexContent` guarantee that; `withBytes` checks the range again and does not trap.
public struct HexContent: Sendable {
    public var frame: [UInt8]
    public var arena: [UInt8]
    public var senderUUID: TextSlice = .empty
    public var senderName: TextSlice = .empty
    public var hexDescription: TextSlice = .empty
    public var hexColor: TextSlice = .empty
    public var links: [LinkContent] = []
    /// The unknown members of the hex as one JSON object; empty if there are none.
    public var extra: TextSlice = .empty

    @inlinable
    public init(frame: [UInt8] = [], arena: [UInt8] = []) {
        self.frame = frame
        self.arena = arena
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

    /// Bytes, in memory or in the store, that a hex and a link each take at most besides their texts.
    private static let hexBytes = 512
    private static let linkBytes = 64

    /// The most bytes the hex takes in memory and in the store: its frame, the rewritten texts, each link, and a fixed share for itself.
    /// - Parameter bytes: the length of the frame the hex came in.
    public func weight(frame bytes: Int) -> Int { bytes + arena.count + links.count * Self.linkBytes + Self.hexBytes }

    /// The length of all texts together, in bytes.
    public var byteCount: Int {
        links.reduce(senderUUID.count + senderName.count + hexDescription.count + hexColor.count + extra.count) {
            $0 + $1.url.count + $1.linkDescription.count + $1.service.count + $1.extra.count
        }
    }
}
