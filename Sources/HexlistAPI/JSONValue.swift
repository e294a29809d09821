import HexlistModel

/// One JSON value (RFC 8259), kept as the bytes it was written in.
///
/// Unknown members of a hex cross the local API byte for byte in this type, and both sides read each other with it: a
/// text is parsed once for grammar, then looked into level by level. Names compare as bytes, so hostile member names
/// cost no more than their length (Foundation's decoders are quadratic on some).
public struct JSONValue: Sendable {
    /// Valid JSON without surrounding white space.
    public let bytes: ArraySlice<UInt8>

    /// Levels of `{` and `[`: the 64 of the protocol, and those of the shapes around a hex.
    public static let maximumDepth = 80

    /// - Throws: `JSONFault`, for anything but one value with white space around it at most.
    public init(parsing text: [UInt8]) throws(JSONFault) {
        var scanner = JSONScanner(text[...])
        scanner.skipSpace()
        let start = scanner.position
        try scanner.value(depth: 0)
        let end = scanner.position
        scanner.skipSpace()
        guard scanner.isAtEnd else { throw JSONFault(offset: scanner.position, "text after the value") }
        bytes = text[start..<end]
    }

    public init(parsing text: String) throws(JSONFault) { try self.init(parsing: Array(text.utf8)) }

    /// - Parameter bytes: a value the scanner went over already.
    fileprivate init(checked bytes: ArraySlice<UInt8>) { self.bytes = bytes }

    /// What a shape writes.
    public init(_ value: some JSONEncodable) {
        var json = JSONWriter()
        value.write(to: &json)
        bytes = json.bytes[...]
    }

    /// `{}`
    public static let emptyObject = JSONValue(checked: Array("{}".utf8)[...])

    public var text: String { String(decoding: bytes, as: UTF8.self) }
    public var isNull: Bool { bytes.first == UInt8(ascii: "n") }

    /// `nil` where the value is no string. A lone surrogate reads as U+FFFD.
    public var string: String? {
        guard bytes.first == UInt8(ascii: "\"") else { return nil }
        return JSONScanner.unescape(bytes.dropFirst().dropLast())
    }

    public var bool: Bool? {
        switch bytes.first {
        case UInt8(ascii: "t"): true
        case UInt8(ascii: "f"): false
        default: nil
        }
    }

    /// `nil` where the value is not written as an integer, or does not fit.
    public var integer: Int64? {
        guard let first = bytes.first, first == UInt8(ascii: "-") || ASCII.isDigit(first) else { return nil }
        return Int64(String(decoding: bytes, as: UTF8.self))
    }

    public var number: Double? {
        guard let first = bytes.first, first == UInt8(ascii: "-") || ASCII.isDigit(first) else { return nil }
        return Double(String(decoding: bytes, as: UTF8.self))
    }

    /// `nil` where the value is no array.
    public var elements: [JSONValue]? {
        guard bytes.first == UInt8(ascii: "[") else { return nil }
        var values: [JSONValue] = []
        var scanner = JSONScanner(bytes.dropFirst())
        while let value = scanner.nextElement() { values.append(JSONValue(checked: value)) }
        return values
    }

    /// The members in the order written, repeated names too; `nil` where the value is no object.
    public var members: [JSONMember]? {
        guard bytes.first == UInt8(ascii: "{") else { return nil }
        var members: [JSONMember] = []
        var scanner = JSONScanner(bytes.dropFirst())
        while let (name, value) = scanner.nextMember() {
            members.append(JSONMember(nameBytes: Array(JSONScanner.unescape(name).utf8), value: JSONValue(checked: value)))
        }
        return members
    }
}

extension JSONValue: Equatable {
    public static func == (left: JSONValue, right: JSONValue) -> Bool { left.bytes.elementsEqual(right.bytes) }
}

/// One `"name": value` of an object.
public struct JSONMember: Sendable {
    /// Unescaped UTF-8.
    public var nameBytes: [UInt8]
    public var value: JSONValue

    public var name: String { String(decoding: nameBytes, as: UTF8.self) }
}

/// A text that is no JSON, or not the JSON that was expected.
public struct JSONFault: Error, Sendable, CustomStringConvertible {
    /// Where, in bytes; `nil` where the text was JSON and its meaning was wrong.
    public var offset: Int?
    public var message: String

    public init(offset: Int? = nil, _ message: String) {
        self.offset = offset
        self.message = message
    }

    public var description: String { offset.map { "\(message) at byte \($0)" } ?? message }
}
