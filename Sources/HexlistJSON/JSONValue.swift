import HexlistModel

/// One JSON value (RFC 8259), kept as the bytes in which it was written.
///
/// The local API passes unknown members of a hex on byte for byte in this type, and both sides read each other's values with it: a text is
/// parsed once for its grammar, then read level by level. Names compare as bytes, so hostile member names cost no more than their length
/// (Foundation's decoders are quadratic on some).
public struct JSONValue: Sendable {
    /// The bytes: valid JSON without surrounding white space.
    public let bytes: ArraySlice<UInt8>

    /// The most nested `{` and `[`: the 64 of the protocol, and those of the values around a hex.
    public static let maximumDepth = 80

    /// - Throws: `JSONFault` for anything but one value, with or without white space around it.
    public init(parsing text: [UInt8]) throws(JSONFault) { try self.init(parsing: text[...]) }

    /// - Parameter text: a part of a text. `bytes` is a slice of it, and the offset of a fault counts from its start.
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

    /// - Parameter bytes: a value that the scanner has checked already.
    fileprivate init(checked bytes: ArraySlice<UInt8>) { self.bytes = bytes }

    /// The value that an encodable value writes.
    public init(_ value: some JSONEncodable) {
        var json = JSONWriter()
        value.write(to: &json)
        bytes = json.bytes[...]
    }

    /// The one value that `write` writes.
    public init(_ write: (inout JSONWriter) -> Void) {
        var json = JSONWriter()
        write(&json)
        bytes = json.bytes[...]
    }

    /// The value `{}`.
    public static let emptyObject = JSONValue(checked: Array("{}".utf8)[...])

    public var text: String { String(decoding: bytes, as: UTF8.self) }
    public var isNull: Bool { bytes.first == UInt8(ascii: "n") }

    /// The text of a string; `nil` for any other value. A lone surrogate reads as U+FFFD.
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

    /// The number of an integer; `nil` if the value is not written as one, or does not fit.
    public var integer: Int64? {
        guard let first = bytes.first, first == UInt8(ascii: "-") || ASCII.isDigit(first) else { return nil }
        return Int64(String(decoding: bytes, as: UTF8.self))
    }

    public var number: Double? {
        guard let first = bytes.first, first == UInt8(ascii: "-") || ASCII.isDigit(first) else { return nil }
        return Double(String(decoding: bytes, as: UTF8.self))
    }

    /// The elements of an array; `nil` for any other value.
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

    /// The members of an object in the order written, including repeated names; `nil` for any other value.
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

    /// Calls `body` with a scanner whose positions count from the value's first byte. The value was checked before, so there is no fault.
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

/// One `"name": value` of an object.
public struct JSONMember: Sendable {
    /// The unescaped name in UTF-8.
    public var nameBytes: ArraySlice<UInt8>
    public var value: JSONValue

    public var name: String { String(decoding: nameBytes, as: UTF8.self) }
}
