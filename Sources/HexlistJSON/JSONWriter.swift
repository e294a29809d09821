public import HexlistModel

/// Something that writes itself as one JSON value.
public protocol JSONEncodable {
    func write(to json: inout JSONWriter)
}

/// Writes JSON, without white space, `/` not escaped, texts in UTF-8.
///
/// Objects, arrays and their members get their commas here. Who writes tokens one after the other with `raw` places them: so does the wire's
/// encoder, whose prefixes are constants.
public struct JSONWriter {
    @usableFromInline var json: [UInt8] = []
    /// Whether what a terminal would obey or not show is escaped too, so that `curl` and `--json` are safe to look at.
    @usableFromInline let isShown: Bool
    private var isFirst = true

    /// Of the local API and the command line: what is written can be shown.
    public init() { isShown = true }

    /// Of the wire: only what JSON wants escaped is.
    /// - Parameter capacity: bytes.
    public init(wireCapacity capacity: Int) {
        isShown = false
        json.reserveCapacity(capacity)
    }

    @inlinable public var bytes: [UInt8] { json }

    // MARK: Structure

    /// `{…}` around the members `body` writes.
    public mutating func object(_ body: (inout JSONWriter) throws -> Void) rethrows { try enclosed("{", "}", body) }

    /// `[…]` around the elements.
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

    /// A member whose value `write` writes.
    public mutating func named(_ name: String, _ write: (inout JSONWriter) throws -> Void) rethrows {
        separate()
        string(name)
        json.append(UInt8(ascii: ":"))
        try write(&self)
    }

    public mutating func member(_ name: String, _ value: some JSONEncodable) { named(name) { value.write(to: &$0) } }

    /// A member that is left out where there is no value.
    public mutating func member(_ name: String, _ value: (some JSONEncodable)?) {
        if let value { member(name, value) }
    }

    /// A member that is `null` where there is no value.
    public mutating func nullableMember(_ name: String, _ value: (some JSONEncodable)?) {
        named(name) { json in if let value { value.write(to: &json) } else { json.raw("null") } }
    }

    private mutating func separate() {
        if !isFirst { json.append(UInt8(ascii: ",")) }
        isFirst = false
    }

    private mutating func enclosed(
        _ open: Unicode.Scalar, _ close: Unicode.Scalar, _ body: (inout JSONWriter) throws -> Void
    ) rethrows {
        json.append(UInt8(ascii: open))
        isFirst = true
        try body(&self)
        json.append(UInt8(ascii: close))
        isFirst = false
    }

    // MARK: Tokens

    /// JSON as it is.
    @inlinable
    public mutating func raw(_ token: StaticString) {
        json.append(contentsOf: UnsafeBufferPointer(start: token.utf8Start, count: token.utf8CodeUnitCount))
    }

    /// JSON that was written before. A peer may have written it: it says the same, but can be shown.
    @inlinable
    public mutating func raw(_ token: some Collection<UInt8>) {
        let start = json.count
        json.append(contentsOf: token)
        finish(from: start)
    }

    @inlinable
    public mutating func raw(_ integer: some BinaryInteger) { json.append(contentsOf: String(integer).utf8) }

    /// A UUID as a string: 36 bytes, digits in upper case.
    public mutating func uuid(_ uuid: UUIDBytes) {
        json.append(UInt8(ascii: "\""))
        for digit in 0..<32 {
            if digit == 8 || digit == 12 || digit == 16 || digit == 20 { json.append(UInt8(ascii: "-")) }
            let nibble = UInt8(truncatingIfNeeded: (digit < 16 ? uuid.high : uuid.low) >> UInt64(60 - digit % 16 * 4)) & 15
            json.append(nibble < 10 ? nibble | 0x30 : nibble + 0x37)
        }
        json.append(UInt8(ascii: "\""))
    }

    /// A string with its quotes.
    public mutating func string(_ text: some StringProtocol) {
        let start = json.count
        JSONText.append(text, to: &json)
        finish(from: start)
    }

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

    /// One line of a stream: the JSON and a line end.
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
    /// JSON knows no infinity and no NaN: they are `null`.
    public func write(to json: inout JSONWriter) { json.raw((isFinite ? description : "null").utf8) }
}

extension Array: JSONEncodable where Element: JSONEncodable {
    public func write(to json: inout JSONWriter) { json.array(self) { $1.write(to: &$0) } }
}

extension JSONValue: JSONEncodable {
    public func write(to json: inout JSONWriter) { json.raw(bytes) }
}
