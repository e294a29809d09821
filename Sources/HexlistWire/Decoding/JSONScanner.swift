import HexlistModel

/// Why bytes are not JSON, and where (T22).
struct GrammarFault: Error {
    enum Reason: UInt8 {
        case end, character, string, escape, utf8, number, nesting, trailing, notObject
    }

    let reason: Reason
    /// Bytes before the fault.
    let offset: Int

    /// For a person.
    var message: String {
        let what =
            switch reason {
            case .end: "the JSON ends early"
            case .character: "a character that cannot stand here"
            case .string: "a control character inside a string"
            case .escape: "an escape JSON does not know"
            case .utf8: "not UTF-8"
            case .number: "not a JSON number"
            case .nesting: "nested deeper than \(JSONScanner.deepest) levels"
            case .trailing: "text after the object"
            case .notObject: "not a JSON object"
            }
        return "\(what), at byte \(offset)"
    }
}

/// Reads strict JSON (RFC 8259) where it stands, in one pass, without building anything.
///
/// Positions are offsets from `base`. Every read is preceded by a comparison with `end`: positions never pass it, and
/// the wide loads are made only where all their bytes lie before it. `base` is valid only inside the closure that lent it.
struct JSONScanner {
    /// Levels of `{` and `[`.
    static let deepest = 64

    let base: UnsafePointer<UInt8>
    let end: Int
    /// The place (`TextSlice.init(place:count:)`) of position 0: these bytes are the frame, or stand somewhere in the arena.
    private let origin: UInt32

    init(base: UnsafePointer<UInt8>, end: Int) {
        self.init(base: base, end: end, origin: 0)
    }

    /// - Parameter start: where a copy of the same bytes stands in the arena.
    init(base: UnsafePointer<UInt8>, end: Int, inArenaAt start: Int) {
        self.init(base: base, end: end, origin: UInt32(truncatingIfNeeded: start) | 0x8000_0000)
    }

    private init(base: UnsafePointer<UInt8>, end: Int, origin: UInt32) {
        self.base = base
        self.end = end
        self.origin = origin
    }

    /// The same bytes, ending earlier.
    func ending(at end: Int) -> JSONScanner { JSONScanner(base: base, end: min(end, self.end), origin: origin) }

    /// A scanned range as a slice of the frame or of the arena, wherever these bytes are.
    @inline(__always)
    func slice(_ start: Int, _ stop: Int) -> TextSlice {
        TextSlice(place: origin &+ UInt32(truncatingIfNeeded: start), count: UInt32(truncatingIfNeeded: stop &- start))
    }

    /// 0, which stands nowhere in JSON, at the end.
    @inline(__always)
    func byte(_ position: Int) -> UInt8 { position < end ? base[position] : 0 }

    /// The bytes of a range that a scan gave.
    @inline(__always)
    func bytes(_ start: Int, _ stop: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: base + start, count: stop &- start)
    }

    /// Why the byte at a position cannot stand there.
    @inline(never)
    func fault(at position: Int, _ reason: GrammarFault.Reason = .character) -> GrammarFault {
        GrammarFault(reason: position < end ? reason : .end, offset: position)
    }
}

// MARK: - White space and structure

extension JSONScanner {
    @inline(__always)
    func skipSpace(_ position: Int) -> Int {
        if byte(position) > 0x20 { return position }
        // One space after `,` and `:` is how most programs print.
        if byte(position) == 0x20, byte(position &+ 1) > 0x20 { return position &+ 1 }
        return skipSpaces(position)
    }

    @inline(never)
    private func skipSpaces(_ position: Int) -> Int {
        var position = position
        while position < end {
            switch base[position] {
            case 0x20, 0x09, 0x0A, 0x0D: position &+= 1
            default: return position
            }
        }
        return position
    }

    /// - Parameter start: where a `{` stands.
    /// - Returns: where the first name's quote stands, or the `}`.
    @inline(__always)
    func enterObject(at start: Int) throws(GrammarFault) -> Int {
        let position = skipSpace(start &+ 1)
        let byte = byte(position)
        if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "}") { return position }
        throw fault(at: position)
    }

    /// - Parameter position: just behind a name's closing quote.
    /// - Returns: where the value's first byte stands.
    @inline(__always)
    func value(behindName position: Int) throws(GrammarFault) -> Int {
        let colon = skipSpace(position)
        guard byte(colon) == UInt8(ascii: ":") else { throw fault(at: colon) }
        return skipSpace(colon &+ 1)
    }

    /// Looks for the member a sender usually puts here, which spares the search for the end of its name.
    /// - Parameters:
    ///   - name: of 5 to 32 bytes with its quotes and the colon, `"url":`.
    ///   - position: where a name's quote or the `}` stands.
    /// - Returns: where the value's first byte stands; `nil` where another member does, or white space before the colon.
    @inline(__always)
    func value(of name: StaticString, at position: Int) -> Int? {
        let behind = position &+ name.utf8CodeUnitCount
        guard behind < end, NameBytes(start: base + position, count: name.utf8CodeUnitCount).equals(name) else { return nil }
        if base[behind] == UInt8(ascii: "\"") { return behind }
        return base[behind] == 0x20 && byte(behind &+ 1) > 0x20 ? behind &+ 1 : skipSpace(behind)
    }

    /// - Parameter position: just behind a member's value.
    /// - Returns: where the next name's quote stands, or the `}`.
    @inline(__always)
    func nextMember(_ position: Int) throws(GrammarFault) -> Int {
        // `,"` and `, "` are what most programs print.
        if position &+ 2 < end {
            let two = UInt16(littleEndian: UnsafeRawPointer(base + position).loadUnaligned(as: UInt16.self))
            if two == 0x222C { return position &+ 1 }
            if two == 0x202C, base[position &+ 2] == UInt8(ascii: "\"") { return position &+ 2 }
        }
        return byte(position) == UInt8(ascii: "}") ? position : try nextMemberBehindSpace(position)
    }

    private func nextMemberBehindSpace(_ position: Int) throws(GrammarFault) -> Int {
        let position = skipSpace(position)
        let byte = byte(position)
        if byte == UInt8(ascii: ",") {
            let next = skipSpace(position &+ 1)
            if self.byte(next) == UInt8(ascii: "\"") { return next }
            throw fault(at: next)
        }
        if byte == UInt8(ascii: "}") { return position }
        throw fault(at: position)
    }

    /// - Parameter start: where a `[` stands.
    /// - Returns: where the first element's first byte stands, or the `]`.
    @inline(__always)
    func enterArray(at start: Int) -> Int { skipSpace(start &+ 1) }

    /// - Parameter position: just behind an element.
    /// - Returns: where the next element's first byte stands, or the `]`.
    @inline(__always)
    func nextElement(_ position: Int) throws(GrammarFault) -> Int {
        let position = skipSpace(position)
        let byte = byte(position)
        if byte == UInt8(ascii: ",") {
            let next = skipSpace(position &+ 1)
            if self.byte(next) != UInt8(ascii: "]") { return next }
            throw fault(at: next)
        }
        if byte == UInt8(ascii: "]") { return position }
        throw fault(at: position)
    }

    /// Throws unless nothing but white space follows.
    func finish(_ position: Int) throws(GrammarFault) {
        let position = skipSpace(position)
        guard position == end else { throw fault(at: position, .trailing) }
    }
}

// MARK: - Values of no interest

extension JSONScanner {
    /// Checks one value of any kind and steps over it. Nesting is kept as one bit a level, so depth costs no stack.
    /// - Parameter open: containers open around it.
    /// - Returns: the position behind it.
    func skipValue(at start: Int, open: Int) throws(GrammarFault) -> Int {
        var position = start
        var depth = 0
        var kinds: UInt64 = 0  // the lowest bit is the innermost container: 1 an object, 0 an array
        while true {
            switch byte(position) {
            case UInt8(ascii: "\""):
                position = try string(from: position &+ 1).end &+ 1
            case UInt8(ascii: "{"):
                guard open &+ depth < Self.deepest else { throw fault(at: position, .nesting) }
                position = try enterObject(at: position)
                if byte(position) == UInt8(ascii: "\"") {
                    depth &+= 1
                    kinds = kinds << 1 | 1
                    position = try skipName(at: position)
                    continue
                }
                position &+= 1
            case UInt8(ascii: "["):
                guard open &+ depth < Self.deepest else { throw fault(at: position, .nesting) }
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
            // A value has ended; so have the containers that close behind it.
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

    @inline(__always)
    private func skipName(at quote: Int) throws(GrammarFault) -> Int {
        try value(behindName: string(from: quote &+ 1).end &+ 1)
    }

    /// A number, `true`, `false` or `null`.
    /// - Returns: the position behind it.
    func scalar(at start: Int) throws(GrammarFault) -> Int {
        switch byte(start) {
        case UInt8(ascii: "t"): return try literal("true", at: start)
        case UInt8(ascii: "f"): return try literal("false", at: start)
        case UInt8(ascii: "n"): return try literal("null", at: start)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try number(at: start)
        default: throw fault(at: start)
        }
    }

    private func literal(_ text: StaticString, at start: Int) throws(GrammarFault) -> Int {
        for index in 0..<text.utf8CodeUnitCount where byte(start &+ index) != text.utf8Start[index] {
            throw fault(at: start &+ index)
        }
        return start &+ text.utf8CodeUnitCount
    }

    private func number(at start: Int) throws(GrammarFault) -> Int {
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

    private func digits(at start: Int) throws(GrammarFault) -> Int {
        var position = start
        while byte(position) &- UInt8(ascii: "0") < 10 { position &+= 1 }
        guard position > start else { throw fault(at: position, .number) }
        return position
    }
}
