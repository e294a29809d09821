import HexlistModel

/// A JSON value (RFC 8259) in its original bytes.
///
/// The local API uses it to preserve unknown members of a hex byte for byte, and to read requests and responses: syntax is validated once,
/// then the value is read level by level. Member names are compared as bytes, so hostile names cost time linear in their length
/// (Foundation's decoders are quadratic for some).
public struct JSONValue: Sendable {
    /// Valid JSON without surrounding white space.
    public let bytes: ArraySlice<UInt8>

    /// Maximum nesting depth: the 64 levels of the protocol and those around a hex.
    public static let maximumDepth = 80

    /// - Throws: `JSONFault` unless the text is one value, possibly with white space around it.
    public init(parsing text: [UInt8]) throws(JSONFault) { try self.init(parsing: text[...]) }

    /// - Parameter text: `bytes` becomes a slice of it, and the offset of a fault is relative to its start.
    public init(parsing text: ArraySlice<UInt8>) throws(JSONFault) {
        let range = try text.withUnsafeBufferPointer { buffer throws(JSONFault) -> Range<Int> in
            guard let base = buffer.baseAddress else { throw JSONFault(offset: 0, "the text ends where a value belongs") }
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

    /// - Parameter bytes: a validated value.
    fileprivate init(checked bytes: ArraySlice<UInt8>) { self.bytes = bytes }

    /// The JSON of an encodable value.
    public init(_ value: some JSONEncodable) {
        var json = JSONWriter()
        value.write(to: &json)
        bytes = json.bytes[...]
    }

    /// The JSON written by a closure, which must write one value.
    public init(_ write: (inout JSONWriter) -> Void) {
        var json = JSONWriter()
        write(&json)
        bytes = json.bytes[...]
    }

    /// The value `{}`.
    public static let emptyObject = JSONValue(checked: Array("{}".utf8)[...])

    public var text: String { String(decoding: bytes, as: UTF8.self) }
    public var isNull: Bool { bytes.first == UInt8(ascii: "n") }

    /// The text of a string; `nil` for other values. Lone surrogates become U+FFFD.
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

    /// The value of an integer; `nil` if it is not written as an integer, or out of range.
    public var integer: Int64? {
        guard let first = bytes.first, first == UInt8(ascii: "-") || ASCII.isDigit(first) else { return nil }
        return Int64(String(decoding: bytes, as: UTF8.self))
    }

    public var number: Double? {
        guard let first = bytes.first, first == UInt8(ascii: "-") || ASCII.isDigit(first) else { return nil }
        return Double(String(decoding: bytes, as: UTF8.self))
    }

    /// The elements of an array; `nil` for other values.
    public var elements: [JSONValue]? {
        guard bytes.first == UInt8(ascii: "[") else { return nil }
        var values: [JSONValue] = []
        walk { json throws(GrammarFault) in
            var position = json.enterArray(at: 0)
            while json.byte(position) != UInt8(ascii: "]") {
                let end = try json.skipDeepValue(at: position)
                values.append(value(position, end))
                position = try json.nextElement(end)
            }
        }
        return values
    }

    /// The members of an object in their order in the text, including repeated names; `nil` for other values.
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

    /// Calls `body` with a scanner of the bytes. They are valid, so scanning cannot fail.
    private func walk(_ body: (JSONScanner) throws(GrammarFault) -> Void) {
        bytes.withUnsafeBufferPointer { buffer in
            guard let base = buffer.baseAddress else { return }
            try? body(JSONScanner(base: base, end: buffer.count))
        }
    }

    private func value(_ start: Int, _ end: Int) -> JSONValue {
        JSONValue(checked: bytes[bytes.startIndex + start..<bytes.startIndex + end])
    }

    /// The unescaped bytes of the string between two quotes.
    private func text(_ start: Int, _ end: Int, in json: JSONScanner) -> [UInt8] {
        var text: [UInt8] = []
        json.appendString(start, end, to: &text)
        return text
    }
}

extension JSONValue: Equatable {
    public static func == (left: JSONValue, right: JSONValue) -> Bool { left.bytes.elementsEqual(right.bytes) }
}

/// A member of an object.
public struct JSONMember: Sendable {
    /// The unescaped name in UTF-8.
    public var nameBytes: ArraySlice<UInt8>
    public var value: JSONValue

    public var name: String { String(decoding: nameBytes, as: UTF8.self) }
}
