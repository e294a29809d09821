import HexlistJSON
import HexlistModel

/// A text that was read as the value of a member, and the form that the value had.
struct Text {
    enum Form: UInt8 {
        /// The member is missing.
        case absent
        case null
        /// A string.
        case plain
        /// A string in which characters were replaced (rule T20).
        case repaired
        /// A number or boolean, as its source text (rule T3).
        case scalar
        /// An object or array. It is replaced by the default value (rule T4).
        case structure

        /// The rule of tolerant decoding that was applied; `nil` if none.
        var rule: String? {
            switch self {
            case .absent, .null: "T2"
            case .plain: nil
            case .repaired: "T20"
            case .scalar: "T3"
            case .structure: "T4"
            }
        }
    }

    var slice: TextSlice = .empty
    var form: Form = .absent
    /// Whether an earlier member of the same name was replaced (rule T19).
    var isRepeated = false

    /// Whether the member counts as missing (rule T2).
    var isMissing: Bool { form == .absent || form == .null }
    /// Whether the name of a type counts as missing, because it is empty or not a text.
    var isMissingName: Bool { slice.isEmpty }
}

/// Reads texts as slices of the frame's bytes. Only texts with escapes are copied, into the arena.
struct TextReader {
    /// The texts with escapes, after unescaping. The size of the input bounds it, because unescaping never makes a text longer.
    var arena: [UInt8] = []

    mutating func begin() {
        guard !arena.isEmpty else { return }
        // The buffer is kept for the next frame, unless a hostile frame made it large.
        if arena.capacity > 64 << 10 { arena = [] } else { arena.removeAll(keepingCapacity: true) }
    }

    /// Reads the member at `position` if it has this name and its value is a string; otherwise does nothing. A fast path.
    /// - Parameters:
    ///   - name: the name with quotes and colon, such as `"url":` (`JSONScanner.value(of:at:)`).
    ///   - position: the position of the quote before a name, or of the `}`. Advanced to the next one.
    @inline(__always)
    mutating func read(
        _ json: JSONScanner, usual name: StaticString, at position: inout Int, into text: inout Text
    ) throws(GrammarFault) {
        guard let start = json.string(of: name, at: position) else { return }
        let end = json.plainRun(from: start)
        if json.isMemberBehindString(endingAt: end) {
            text.slice = json.slice(start, end)
            text.form = .plain
            position = end &+ 2
        } else {
            (text, position) = try readRest(json, start, plainUntil: end)
        }
    }

    /// Reads a string that has escapes or non-ASCII characters, or that is followed by white space.
    /// - Returns: the text, and the position of the quote before the next name, or of the `}`.
    @inline(never)
    private mutating func readRest(_ json: JSONScanner, _ start: Int, plainUntil end: Int) throws(GrammarFault) -> (Text, Int) {
        let token = try json.oddString(from: end)
        return (text(json, start, token.end, hasEscapes: token.hasEscapes), try json.nextMember(token.end &+ 1))
    }

    /// Reads a value of any type as a text.
    /// - Parameter open: the number of open containers around the value.
    /// - Returns: the position after the value.
    @inline(__always)
    mutating func read(
        _ json: JSONScanner, at position: Int, open: Int, into text: inout Text
    ) throws(GrammarFault) -> Int {
        let isRepeated = text.form != .absent
        guard json.byte(position) == UInt8(ascii: "\"") else {
            return try readOther(json, at: position, open: open, into: &text)
        }
        let token = try json.string(from: position &+ 1)
        if token.hasEscapes {
            text = unescaped(json, position &+ 1, token.end)
        } else {
            text.slice = json.slice(position &+ 1, token.end)
            text.form = .plain
        }
        text.isRepeated = isRepeated
        return token.end &+ 1
    }

    @inline(never)
    private mutating func readOther(
        _ json: JSONScanner, at position: Int, open: Int, into text: inout Text
    ) throws(GrammarFault) -> Int {
        text.isRepeated = text.form != .absent
        let end = try json.skipValue(at: position, open: open)
        switch json.byte(position) {
        case UInt8(ascii: "{"), UInt8(ascii: "["):
            text.slice = .empty
            text.form = .structure
        case UInt8(ascii: "n"):
            text.slice = .empty
            text.form = .null
        default:
            text.slice = json.slice(position, end)
            text.form = .scalar
        }
        return end
    }

    /// Appends a string to the arena, without its escapes.
    @inline(never)
    mutating func unescaped(_ json: JSONScanner, _ start: Int, _ stop: Int) -> Text {
        let first = arena.count
        let wasRepaired = json.appendText(start, stop, to: &arena)
        return Text(slice: TextSlice(arena: first..<arena.count), form: wasRepaired ? .repaired : .plain)
    }

    /// Returns the text of a string that the scanner has found. Escapes are decoded.
    mutating func text(_ json: JSONScanner, _ start: Int, _ stop: Int, hasEscapes: Bool) -> Text {
        hasEscapes ? unescaped(json, start, stop) : Text(slice: json.slice(start, stop), form: .plain)
    }

    /// Calls `body` with the bytes of a slice of `json` or of the arena.
    @inline(__always)
    func withBytes<Result>(of slice: TextSlice, in json: JSONScanner, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        if slice.isInArena {
            return arena.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[slice.offset..<slice.offset + slice.count])) }
        }
        return body(json.bytes(slice.offset, slice.offset &+ slice.count))
    }

    func string(_ slice: TextSlice, in json: JSONScanner) -> String {
        withBytes(of: slice, in: json) { String(decoding: $0, as: UTF8.self) }
    }

    /// Returns the longest prefix that fits into `limit` bytes and ends between Unicode scalars. The rest is not decoded.
    func string(_ slice: TextSlice, in json: JSONScanner, bytes limit: Int) -> String {
        withBytes(of: slice, in: json) { bytes in
            guard bytes.count > limit else {
                // For short texts, this takes a third of the time of `String(decoding:as:)`.
                return String(unsafeUninitializedCapacity: bytes.count) { room in
                    UnsafeMutableRawBufferPointer(room).copyMemory(from: bytes)
                    return bytes.count
                }
            }
            var end = limit
            while end > 0, bytes[end] & 0xC0 == 0x80 { end -= 1 }
            return String(decoding: bytes[..<end], as: UTF8.self)
        }
    }
}

extension JSONScanner {
    /// Calls `body` with the name of a member. If the name has escapes, it is first unescaped into `scratch`.
    @inline(__always)
    func withName<Result>(_ start: Int, _ token: StringToken, _ scratch: inout [UInt8], _ body: (MemberNameBytes) -> Result) -> Result {
        guard token.hasEscapes else { return body(MemberNameBytes(start: base + start, count: token.end &- start)) }
        return withEscapedName(start, token, &scratch, body)
    }

    @inline(never)
    private func withEscapedName<Result>(
        _ start: Int, _ token: StringToken, _ scratch: inout [UInt8], _ body: (MemberNameBytes) -> Result
    ) -> Result {
        scratch.removeAll(keepingCapacity: true)
        // An escaped byte takes at most six bytes, and known names have at most 16 bytes. A longer text is therefore no known name.
        if token.end &- start <= 6 * 16 { appendName(start, token.end, to: &scratch) }
        return scratch.withUnsafeBytes { bytes in
            body(MemberNameBytes(start: bytes.baseAddress ?? UnsafeRawPointer(base), count: bytes.count))
        }
    }
}
