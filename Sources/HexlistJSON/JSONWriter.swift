public import HexlistModel

/// A type that can be encoded as a JSON value.
public protocol JSONEncodable {
    func write(to json: inout JSONWriter)
    /// The way in which this value is written as a member of an object. The default is `named`.
    var memberPosition: MemberPosition { get }
}

public enum MemberPosition: Sendable {
    case named
    /// The value's own members are written directly into the enclosing object.
    case inlined
    case leftOut
}

extension JSONEncodable {
    public var memberPosition: MemberPosition { .named }
}

/// Writes compact JSON in UTF-8. `/` is not escaped.
///
/// `object`, `array` and `member` write the commas between members and elements. A caller of `raw` must write the commas itself, as the
/// encoder of frames does in its constant prefixes.
public struct JSONWriter {
    @usableFromInline var json: [UInt8] = []
    /// Whether to escape characters that are unsafe on a terminal, because users display the output of `curl` and `--json`.
    @usableFromInline let isShown: Bool
    private var isFirst = true

    /// Creates a writer for the local API and the command line. Its output is safe to display on a terminal.
    public init() { isShown = true }

    /// Creates a writer for frames. It escapes only what JSON requires.
    /// - Parameter capacity: the number of bytes to reserve.
    public init(wireCapacity capacity: Int) {
        isShown = false
        json.reserveCapacity(capacity)
    }

    /// Appends the JSON that `write` writes, escaped only as JSON requires.
    public static func append(to bytes: inout [UInt8], _ write: (inout JSONWriter) -> Void) {
        var json = JSONWriter(wireCapacity: 0)
        swap(&json.json, &bytes)
        write(&json)
        swap(&json.json, &bytes)
    }

    @inlinable public var bytes: [UInt8] { json }

    // MARK: Structure

    /// Writes an object, `{…}`, with the members that `body` writes.
    public mutating func object(_ body: (inout JSONWriter) throws -> Void) rethrows { try enclosed("{", "}", body) }

    /// Writes an array, `[…]`, with one element for each of `elements`.
    public mutating func array<Element>(
        _ elements: some Sequence<Element>, _ write: (inout JSONWriter, Element) throws -> Void
    ) rethrows {
        try enclosed("[", "]") { json in
            for element in elements {
                json.separate()
                try write(&json, element)
            }
        }
    }

    /// Writes a member. `write` writes its value.
    public mutating func named(_ name: String, _ write: (inout JSONWriter) throws -> Void) rethrows {
        self.name(name)
        try write(&self)
    }

    /// Writes the name of a member, with the comma before it and the colon after it.
    mutating func name(_ name: String) {
        separate()
        string(name)
        json.append(UInt8(ascii: ":"))
    }

    public mutating func member(_ name: String, _ value: some JSONEncodable) { named(name) { value.write(to: &$0) } }

    /// Writes a member, or nothing if the value is `nil`.
    public mutating func member(_ name: String, _ value: (some JSONEncodable)?) {
        if let value { member(name, value) }
    }

    mutating func separate() {
        if !isFirst { json.append(UInt8(ascii: ",")) }
        isFirst = false
    }

    private mutating func enclosed(
        _ open: Unicode.Scalar, _ close: Unicode.Scalar, _ body: (inout JSONWriter) throws -> Void
    ) rethrows {
        begin(open)
        try body(&self)
        end(close)
    }

    mutating func begin(_ bracket: Unicode.Scalar) {
        json.append(UInt8(ascii: bracket))
        isFirst = true
    }

    mutating func end(_ bracket: Unicode.Scalar) {
        json.append(UInt8(ascii: bracket))
        isFirst = false
    }

    // MARK: Tokens

    /// Writes existing JSON text unchanged.
    @inlinable
    public mutating func raw(_ token: StaticString) {
        json.append(contentsOf: UnsafeBufferPointer(start: token.utf8Start, count: token.utf8CodeUnitCount))
    }

    /// Writes existing JSON text, which may come from a peer. For a terminal, unsafe characters are escaped, which does not change the
    /// meaning.
    @inlinable
    public mutating func raw(_ token: some Collection<UInt8>) {
        let start = json.count
        json.append(contentsOf: token)
        finish(from: start)
    }

    @inlinable
    public mutating func raw(_ integer: some BinaryInteger) { json.append(contentsOf: String(integer).utf8) }

    /// Writes a UUID as a string of 36 characters in upper case.
    public mutating func uuid(_ uuid: UUIDBytes) {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 38) { text in
            var end = 0
            func append(_ byte: UInt8) {
                text.initializeElement(at: end, to: byte)
                end += 1
            }
            append(UInt8(ascii: "\""))
            for digit in 0..<32 {
                if digit == 8 || digit == 12 || digit == 16 || digit == 20 { append(UInt8(ascii: "-")) }
                let nibble = UInt8(truncatingIfNeeded: (digit < 16 ? uuid.high : uuid.low) >> UInt64(60 - digit % 16 * 4)) & 15
                append(nibble < 10 ? nibble | 0x30 : nibble + 0x37)
            }
            append(UInt8(ascii: "\""))
            json.append(contentsOf: text)
        }
    }

    /// Writes a text as a string with quotes.
    public mutating func string(_ text: some StringProtocol) {
        let start = json.count
        JSONText.append(text, to: &json)
        finish(from: start)
    }

    /// Writes a text as a string with quotes.
    /// - Parameter utf8: valid UTF-8.
    public mutating func string(_ utf8: UnsafeRawBufferPointer) {
        let start = json.count
        JSONText.append(utf8, to: &json)
        finish(from: start)
    }

    @inlinable
    mutating func finish(from start: Int) {
        if isShown { JSONText.makePrintable(&json, from: start) }
    }
}

extension JSONEncodable {
    /// The value as JSON text in UTF-8.
    public var jsonBytes: [UInt8] {
        var json = JSONWriter()
        write(to: &json)
        return json.bytes
    }

    public var jsonText: String { String(decoding: jsonBytes, as: UTF8.self) }

    /// The JSON text and a line break, for streams in NDJSON.
    public var lineBytes: [UInt8] { jsonBytes + [UInt8(ascii: "\n")] }
}

extension String: JSONEncodable {
    public func write(to json: inout JSONWriter) { json.string(self) }
}

extension Bool: JSONEncodable {
    public func write(to json: inout JSONWriter) { if self { json.raw("true") } else { json.raw("false") } }
}

extension Int: JSONEncodable {
    public func write(to json: inout JSONWriter) { json.raw(self) }
}

extension Int64: JSONEncodable {
    public func write(to json: inout JSONWriter) { json.raw(self) }
}

extension Double: JSONEncodable {
    /// Writes the number, or `null` for infinity and NaN, which JSON does not support.
    public func write(to json: inout JSONWriter) { json.raw((isFinite ? description : "null").utf8) }
}

extension Array: JSONEncodable where Element: JSONEncodable {
    public func write(to json: inout JSONWriter) { json.array(self) { $1.write(to: &$0) } }
}
