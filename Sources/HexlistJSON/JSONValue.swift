import HexlistModel

/// A JSON value (RFC 8259) with its original bytes.
///
/// The local API uses it to read requests and responses, and to keep unknown members of a hex byte for byte. The syntax is validated once;
/// then the value is parsed level by level, on demand. Member names are compared as bytes, so the time is linear even for hostile names.
/// Foundation's decoders take quadratic time for some of them.
public struct JSONValue: Sendable {
    /// Valid JSON of one value, without surrounding white space.
    public let bytes: ArraySlice<UInt8>

    /// Maximum nesting depth: the protocol's 64 levels for a hex, and additional levels around it.
    public static let maximumDepth = 80

    /// - Throws: `JSONFault` unless the text is one JSON value, optionally surrounded by white space.
    public init(parsing text: [UInt8]) throws(JSONFault) { try self.init(parsing: text[...]) }

    /// - Parameter text: the JSON text. `bytes` becomes a slice of it. The offset in a `JSONFault` is counted from its first byte.
    public init(parsing text: ArraySlice<UInt8>) throws(JSONFault) {
        let range = try text.withUnsafeBufferPointer { buffer throws(JSONFault) -> Range<Int> in
            guard let base = buffer.baseAddress else { throw JSONFault(offset: 0, "the text ends where a value is expected") }
            let json = JSONScanner(base: base, end: buffer.count)
            do throws(GrammarFault) {
                let start = json.skipSpace(0)
                let end = try json.skipDeepValue(at: start)
                try json.finish(end)
                return start..<end
            } catch {
                throw JSONFault(error, in: json)
            }
        }
        bytes = text[text.startIndex + range.lowerBound..<text.startIndex + range.upperBound]
    }

    public init(parsing text: String) throws(JSONFault) { try self.init(parsing: Array(text.utf8)) }

    /// - Parameter bytes: a value whose syntax was already validated.
    fileprivate init(checked bytes: ArraySlice<UInt8>) { self.bytes = bytes }

    /// Encodes a value.
    public init(_ value: some JSONEncodable) {
        var json = JSONWriter()
        value.write(to: &json)
        bytes = json.bytes[...]
    }

    /// Creates a value from the JSON that a closure writes. The closure must write exactly one value.
    public init(_ write: (inout JSONWriter) -> Void) {
        var json = JSONWriter()
        write(&json)
        bytes = json.bytes[...]
    }

    public static let emptyObject = JSONValue(checked: Array("{}".utf8)[...])

    public var text: String { String(decoding: bytes, as: UTF8.self) }
    public var isNull: Bool { bytes.first == UInt8(ascii: "n") }

    /// The text of a string; `nil` if the value is not a string. Lone surrogates become U+FFFD.
    public var string: String? {
        guard bytes.first == UInt8(ascii: "\"") else { return nil }
        var string = ""
        walk { json in string = String(decoding: text(1, bytes.count - 1, in: json), as: UTF8.self) }
        return string
    }

    public var bool: Bool? {
        switch bytes.first {
        case UInt8(ascii: "t"): true
        case UInt8(ascii: "f"): false
        default: nil
        }
    }

    /// The value of an integer; `nil` if the value is not an integer, has a fraction or an exponent, or is out of range.
    public var integer: Int64? {
        guard let first = bytes.first, first == UInt8(ascii: "-") || ASCII.isDigit(first) else { return nil }
        return Int64(String(decoding: bytes, as: UTF8.self))
    }

    public var number: Double? {
        guard let first = bytes.first, first == UInt8(ascii: "-") || ASCII.isDigit(first) else { return nil }
        return Double(String(decoding: bytes, as: UTF8.self))
    }

    /// The elements of an array; `nil` if the value is not an array.
    public var elements: [JSONValue]? { elements(atMost: .max) }

    /// Returns the elements of an array; `nil` if the value is not an array, or has more elements than `limit`.
    public func elements(atMost limit: Int) -> [JSONValue]? {
        guard bytes.first == UInt8(ascii: "[") else { return nil }
        var values: [JSONValue] = []
        var isOver = false
        walk { json throws(GrammarFault) in
            var position = json.enterArray(at: 0)
            while json.byte(position) != UInt8(ascii: "]") {
                guard values.count < limit else {
                    isOver = true
                    return
                }
                let end = try json.skipDeepValue(at: position)
                values.append(value(position, end))
                position = try json.nextElement(end)
            }
        }
        return isOver ? nil : values
    }

    /// The members of an object in their original order, including repeated names; `nil` if the value is not an object.
    public var members: [JSONMember]? {
        guard bytes.first == UInt8(ascii: "{") else { return nil }
        var members: [JSONMember] = []
        walk { json throws(GrammarFault) in
            var position = try json.enterObject(at: 0)
            while json.byte(position) != UInt8(ascii: "}") {
                let name = try json.string(from: position + 1)
                let start = try json.value(behindName: name.end + 1)
                let end = try json.skipDeepValue(at: start)
                let nameBytes = name.hasEscapes ? text(position + 1, name.end, in: json)[...] : value(position + 1, name.end).bytes
                members.append(JSONMember(nameBytes: nameBytes, value: value(start, end)))
                position = try json.nextMember(end)
            }
        }
        return members
    }

    /// Calls `body` with a scanner of the bytes. Scanning does not fail, because the syntax is valid.
    private func walk(_ body: (JSONScanner) throws(GrammarFault) -> Void) {
        bytes.withUnsafeBufferPointer { buffer in
            guard let base = buffer.baseAddress else { return }
            try? body(JSONScanner(base: base, end: buffer.count))
        }
    }

    private func value(_ start: Int, _ end: Int) -> JSONValue {
        JSONValue(checked: bytes[bytes.startIndex + start..<bytes.startIndex + end])
    }

    /// Returns the unescaped bytes of the string between positions `start` and `end`, which exclude the quotes.
    private func text(_ start: Int, _ end: Int, in json: JSONScanner) -> [UInt8] {
        var text: [UInt8] = []
        json.appendString(start, end, to: &text)
        return text
    }
}

extension JSONValue: Equatable {
    public static func == (left: JSONValue, right: JSONValue) -> Bool { left.bytes.elementsEqual(right.bytes) }
}

/// A member of a JSON object.
public struct JSONMember: Sendable {
    /// The name in UTF-8, without escapes.
    public var nameBytes: ArraySlice<UInt8>
    public var value: JSONValue

    public var name: String { String(decoding: nameBytes, as: UTF8.self) }
}
