public import HexlistModel

/// A strict JSON (RFC 8259) parser for frames of peers and values of the local API. Works in place, in one pass, without allocations.
///
/// The frequent code paths are `@inlinable`, so that the compiler can optimize them together with the frame decoder, which is in another
/// module.
///
/// Positions are offsets from `base`. Every read is checked against `end`, and a load of several bytes is only made if all of them are
/// before `end`. `base` is valid only inside the closure that provides it.
public struct JSONScanner {
    /// Maximum nesting depth of `{` and `[`.
    @inlinable public static var maximumDepth: Int { 64 }

    public let base: UnsafePointer<UInt8>
    public let end: Int
    /// The offset of position 0 as a `TextSlice` counts it: in the frame or, with the top bit set, in the arena (`HexContent.arena`). It is
    /// added to the position of each slice.
    @usableFromInline let origin: UInt32

    @inlinable
    public init(base: UnsafePointer<UInt8>, end: Int) {
        self.init(base: base, end: end, origin: 0)
    }

    /// Creates a scanner for a buffer. Returns `nil` if the buffer has no base address, as for an empty array.
    @inlinable
    public init?(_ bytes: UnsafeBufferPointer<UInt8>) {
        guard let base = bytes.baseAddress else { return nil }
        self.init(base: base, end: bytes.count)
    }

    /// - Parameter start: the offset in the arena at which these bytes are also stored.
    @inlinable
    public init(base: UnsafePointer<UInt8>, end: Int, inArenaAt start: Int) {
        self.init(base: base, end: end, origin: UInt32(truncatingIfNeeded: start) | 0x8000_0000)
    }

    @inlinable
    init(base: UnsafePointer<UInt8>, end: Int, origin: UInt32) {
        self.base = base
        self.end = end
        self.origin = origin
    }

    /// Returns a scanner for the same bytes that ends at a position, for example at the closing quote of a string.
    @inlinable
    public func ending(at end: Int) -> JSONScanner { JSONScanner(base: base, end: min(end, self.end), origin: origin) }

    /// Returns a scanned range as a slice of the frame or of the arena.
    @inlinable @inline(__always)
    public func slice(_ start: Int, _ stop: Int) -> TextSlice {
        TextSlice(offset: origin &+ UInt32(truncatingIfNeeded: start), count: UInt32(truncatingIfNeeded: stop &- start))
    }

    /// Returns the byte at a position. At the end, returns 0, which no JSON token contains.
    @inlinable @inline(__always)
    public func byte(_ position: Int) -> UInt8 { position < end ? base[position] : 0 }

    /// Returns the bytes of a scanned range.
    @inlinable @inline(__always)
    public func bytes(_ start: Int, _ stop: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: base + start, count: stop &- start)
    }

    /// Returns a syntax error at a position.
    @inline(never)
    public func fault(at position: Int, _ reason: GrammarFault.Reason) -> GrammarFault {
        GrammarFault(reason: reason, offset: position, isAtEnd: position >= end)
    }
}

// MARK: - White space and structure

extension JSONScanner {
    @inlinable @inline(__always)
    public func skipSpace(_ position: Int) -> Int {
        if byte(position) > 0x20 { return position }
        // Fast path for a single space, which many programs write after `,` and `:`.
        if byte(position) == 0x20, byte(position &+ 1) > 0x20 { return position &+ 1 }
        return skipSpaces(position)
    }

    @usableFromInline @inline(never)
    func skipSpaces(_ position: Int) -> Int {
        var position = position
        while position < end {
            switch base[position] {
            case 0x20, 0x09, 0x0A, 0x0D: position &+= 1
            default: return position
            }
        }
        return position
    }

    /// Enters an object.
    /// - Parameter start: the position of the object's `{`.
    /// - Returns: the position of the first name's opening quote, or of `}` if the object is empty.
    @inlinable @inline(__always)
    public func enterObject(at start: Int) throws(GrammarFault) -> Int {
        let position = skipSpace(start &+ 1)
        let byte = byte(position)
        if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "}") { return position }
        throw fault(at: position, .name)
    }

    /// Reads the colon of a member.
    /// - Parameter position: the position after the closing quote of the member's name.
    /// - Returns: the position of the value's first byte.
    @inlinable @inline(__always)
    public func value(behindName position: Int) throws(GrammarFault) -> Int {
        let colon = skipSpace(position)
        guard byte(colon) == UInt8(ascii: ":") else { throw fault(at: colon, .colon) }
        return skipSpace(colon &+ 1)
    }

    /// Fast path for the member that most senders write at this position. Does not scan the name.
    /// - Parameters:
    ///   - name: 5 to 24 bytes, including quotes and colon, such as `"url":`.
    ///   - position: the position of a name's opening quote, or of the object's `}`.
    /// - Returns: the position of the value's first byte; `nil` if the bytes at `position` are different.
    @inlinable @inline(__always)
    public func value(of name: StaticString, at position: Int) -> Int? {
        let behind = position &+ name.utf8CodeUnitCount
        guard behind < end, MemberNameBytes(start: base + position, count: name.utf8CodeUnitCount).equals(name) else { return nil }
        return base[behind] > 0x20 ? behind : skipSpaces(behind)
    }

    /// Fast path for a member with a string value that most senders write at this position.
    /// - Parameters: as for `value(of:at:)`.
    /// - Returns: the position after the string's opening quote; `nil` if the bytes at `position` are different, the value is not a string,
    ///   or more than one space follows the colon.
    @inlinable @inline(__always)
    public func string(of name: StaticString, at position: Int) -> Int? {
        let behind = position &+ name.utf8CodeUnitCount
        guard behind &+ 2 <= end, MemberNameBytes(start: base + position, count: name.utf8CodeUnitCount).equals(name) else { return nil }
        if base[behind] == UInt8(ascii: "\"") { return behind &+ 1 }
        return base[behind] == 0x20 && base[behind &+ 1] == UInt8(ascii: "\"") ? behind &+ 2 : nil
    }

    /// Fast path for the bytes that most senders write between two strings of an object.
    /// - Parameters:
    ///   - opening: 4 to 24 bytes, up to and including the second string's opening quote, such as `","linkDescription":"`.
    ///   - position: the position at which these bytes are expected.
    /// - Returns: the position after the opening quote; `nil` if there are other bytes.
    @inlinable @inline(__always)
    public func text(of opening: StaticString, at position: Int) -> Int? {
        let start = position &+ opening.utf8CodeUnitCount
        guard start <= end, MemberNameBytes(start: base + position, count: opening.utf8CodeUnitCount).equals(opening) else { return nil }
        return start
    }

    /// Whether the bytes at the position are `","`: the end of a string, followed by another member without white space.
    @inlinable @inline(__always)
    public func isMemberBehindString(endingAt position: Int) -> Bool {
        guard position &+ 4 <= end else { return false }
        return UInt32(littleEndian: UnsafeRawPointer(base + position).loadUnaligned(as: UInt32.self)) & 0xFF_FFFF == 0x22_2C22
    }

    /// Continues to the next member of an object.
    /// - Parameter position: the position after a member's value.
    /// - Returns: the position of the next name's opening quote, or of `}` at the end of the object.
    @inlinable @inline(__always)
    public func nextMember(_ position: Int) throws(GrammarFault) -> Int {
        // Fast path for `,"` and `, "`.
        if position &+ 2 < end {
            let two = UInt16(littleEndian: UnsafeRawPointer(base + position).loadUnaligned(as: UInt16.self))
            if two == 0x222C { return position &+ 1 }
            if two == 0x202C, base[position &+ 2] == UInt8(ascii: "\"") { return position &+ 2 }
        }
        return byte(position) == UInt8(ascii: "}") ? position : try nextMemberBehindSpace(position)
    }

    @inlinable
    func nextMemberBehindSpace(_ position: Int) throws(GrammarFault) -> Int {
        let position = skipSpace(position)
        let byte = byte(position)
        if byte == UInt8(ascii: ",") {
            let next = skipSpace(position &+ 1)
            if self.byte(next) == UInt8(ascii: "\"") { return next }
            throw fault(at: next, .name)
        }
        if byte == UInt8(ascii: "}") { return position }
        throw fault(at: position, .comma)
    }

    /// Enters an array.
    /// - Parameter start: the position of the array's `[`.
    /// - Returns: the position of the first element's first byte, or of `]` if the array is empty.
    @inlinable @inline(__always)
    public func enterArray(at start: Int) -> Int { skipSpace(start &+ 1) }

    /// Continues to the next element of an array.
    /// - Parameter position: the position after an element.
    /// - Returns: the position of the next element's first byte, or of `]` at the end of the array.
    @inlinable @inline(__always)
    public func nextElement(_ position: Int) throws(GrammarFault) -> Int {
        // Fast path for arrays of objects without white space: `,{`.
        if position &+ 2 <= end, UInt16(littleEndian: UnsafeRawPointer(base + position).loadUnaligned(as: UInt16.self)) == 0x7B2C {
            return position &+ 1
        }
        let position = skipSpace(position)
        let byte = byte(position)
        if byte == UInt8(ascii: ",") {
            let next = skipSpace(position &+ 1)
            if self.byte(next) != UInt8(ascii: "]") { return next }
            throw fault(at: next, .value)
        }
        if byte == UInt8(ascii: "]") { return position }
        throw fault(at: position, .comma)
    }

    /// Throws if anything except white space follows the position.
    @inlinable
    public func finish(_ position: Int) throws(GrammarFault) {
        let position = skipSpace(position)
        guard position == end else { throw fault(at: position, .trailing) }
    }
}

// MARK: - Skipped values

extension JSONScanner {
    /// Validates and skips a value.
    /// - Parameter open: the number of containers around the value, at most `maximumDepth`.
    /// - Returns: the position after the value.
    @inlinable
    public func skipValue(at start: Int, open: Int) throws(GrammarFault) -> Int {
        try skipValue(at: start, open: open, maximumDepth: Self.maximumDepth, kinds: UInt64(0))
    }

    /// Skips a value of the local API. It may be nested more deeply than a peer's value: up to `JSONValue.maximumDepth`.
    func skipDeepValue(at start: Int) throws(GrammarFault) -> Int {
        try skipValue(at: start, open: 0, maximumDepth: JSONValue.maximumDepth, kinds: UInt128(0))
    }

    /// Skips a value without recursion. The kinds of the open containers are stored as bits of an integer.
    /// - Parameter kinds: one bit per open container, with the lowest bit for the innermost one: 1 for an object, 0 for an array.
    @inlinable @inline(__always)
    func skipValue<Kinds: FixedWidthInteger & UnsignedInteger>(
        at start: Int, open: Int, maximumDepth: Int, kinds: Kinds
    ) throws(GrammarFault) -> Int {
        var position = start
        var depth = 0
        var kinds = kinds
        while true {
            switch byte(position) {
            case UInt8(ascii: "\""):
                position = try string(from: position &+ 1).end &+ 1
            case UInt8(ascii: "{"):
                guard open &+ depth < maximumDepth else { throw fault(at: position, .nesting) }
                position = try enterObject(at: position)
                if byte(position) == UInt8(ascii: "\"") {
                    depth &+= 1
                    kinds = kinds << 1 | 1
                    position = try skipName(at: position)
                    continue
                }
                position &+= 1
            case UInt8(ascii: "["):
                guard open &+ depth < maximumDepth else { throw fault(at: position, .nesting) }
                position = enterArray(at: position)
                if byte(position) != UInt8(ascii: "]") {
                    depth &+= 1
                    kinds <<= 1
                    continue
                }
                position &+= 1
            default:
                position = try scalar(at: position)
            }
            // After a value, closes all containers that end directly after it.
            while true {
                if depth == 0 { return position }
                let isObject = kinds & 1 == 1
                position = isObject ? try nextMember(position) : try nextElement(position)
                if byte(position) != (isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) {
                    if isObject { position = try skipName(at: position) }
                    break
                }
                position &+= 1
                depth &-= 1
                kinds >>= 1
            }
        }
    }

    @inlinable @inline(__always)
    func skipName(at quote: Int) throws(GrammarFault) -> Int {
        try value(behindName: string(from: quote &+ 1).end &+ 1)
    }

    /// Validates and skips a number, `true`, `false` or `null`.
    /// - Returns: the position after it.
    @inlinable
    public func scalar(at start: Int) throws(GrammarFault) -> Int {
        switch byte(start) {
        case UInt8(ascii: "t"): return try literal("true", at: start)
        case UInt8(ascii: "f"): return try literal("false", at: start)
        case UInt8(ascii: "n"): return try literal("null", at: start)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try number(at: start)
        default: throw fault(at: start, .value)
        }
    }

    @inlinable
    func literal(_ text: StaticString, at start: Int) throws(GrammarFault) -> Int {
        for index in 0..<text.utf8CodeUnitCount where byte(start &+ index) != text.utf8Start[index] {
            throw fault(at: start &+ index, .word)
        }
        return start &+ text.utf8CodeUnitCount
    }

    @inlinable
    func number(at start: Int) throws(GrammarFault) -> Int {
        var position = start
        if byte(position) == UInt8(ascii: "-") { position &+= 1 }
        if byte(position) == UInt8(ascii: "0") { position &+= 1 } else { position = try digits(at: position) }
        if byte(position) == UInt8(ascii: ".") { position = try digits(at: position &+ 1) }
        if byte(position) | 0x20 == UInt8(ascii: "e") {
            position &+= 1
            if byte(position) == UInt8(ascii: "+") || byte(position) == UInt8(ascii: "-") { position &+= 1 }
            position = try digits(at: position)
        }
        return position
    }

    @inlinable
    func digits(at start: Int) throws(GrammarFault) -> Int {
        var position = start
        while byte(position) &- UInt8(ascii: "0") < 10 { position &+= 1 }
        guard position > start else { throw fault(at: position, .number) }
        return position
    }
}
