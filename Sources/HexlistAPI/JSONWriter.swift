/// Something that writes itself as one JSON value.
public protocol JSONEncodable {
    func write(to json: inout JSONWriter)
}

/// Writes JSON as the local API has it: members in the order of the contract, no white space, `/` not escaped, texts in
/// UTF-8 with only the escapes JSON demands.
public struct JSONWriter {
    public private(set) var bytes: [UInt8] = []
    private var isFirst = true

    public init() {}

    /// `{…}` around the members `body` writes.
    public mutating func object(_ body: (inout JSONWriter) -> Void) { enclosed("{", "}", body) }

    /// `[…]` around the elements.
    public mutating func array(_ elements: some Sequence<some JSONEncodable>) {
        enclosed("[", "]") { json in
            for element in elements {
                json.separate()
                element.write(to: &json)
            }
        }
    }

    public mutating func member(_ name: String, _ value: some JSONEncodable) {
        separate()
        string(name)
        bytes.append(UInt8(ascii: ":"))
        value.write(to: &self)
    }

    /// A member that is left out where there is no value.
    public mutating func member(_ name: String, _ value: (some JSONEncodable)?) {
        if let value { member(name, value) }
    }

    /// A member that is `null` where there is no value.
    public mutating func nullableMember(_ name: String, _ value: (some JSONEncodable)?) {
        if let value {
            member(name, value)
        } else {
            separate()
            string(name)
            bytes.append(contentsOf: ":null".utf8)
        }
    }

    public mutating func string(_ text: String) {
        bytes.append(UInt8(ascii: "\""))
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""): bytes.append(contentsOf: "\\\"".utf8)
            case UInt8(ascii: "\\"): bytes.append(contentsOf: "\\\\".utf8)
            case 0x0A: bytes.append(contentsOf: "\\n".utf8)
            case 0x0D: bytes.append(contentsOf: "\\r".utf8)
            case 0x09: bytes.append(contentsOf: "\\t".utf8)
            case 0..<0x20, 0x7F:
                bytes.append(contentsOf: "\\u00".utf8)
                bytes.append(contentsOf: [JSONWriter.digit(byte >> 4), JSONWriter.digit(byte & 15)])
            default: bytes.append(byte)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    /// JSON that was written before.
    public mutating func raw(_ json: some Sequence<UInt8>) { bytes.append(contentsOf: json) }

    private static func digit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x57 + value }

    private mutating func separate() {
        if !isFirst { bytes.append(UInt8(ascii: ",")) }
        isFirst = false
    }

    private mutating func enclosed(_ open: Unicode.Scalar, _ close: Unicode.Scalar, _ body: (inout JSONWriter) -> Void) {
        bytes.append(contentsOf: String(Character(open)).utf8)
        isFirst = true
        body(&self)
        bytes.append(contentsOf: String(Character(close)).utf8)
        isFirst = false
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
    public func write(to json: inout JSONWriter) { json.raw((self ? "true" : "false").utf8) }
}

extension Int: JSONEncodable {
    public func write(to json: inout JSONWriter) { json.raw(String(self).utf8) }
}

extension Int64: JSONEncodable {
    public func write(to json: inout JSONWriter) { json.raw(String(self).utf8) }
}

extension Double: JSONEncodable {
    /// JSON knows no infinity and no NaN: they are `null`.
    public func write(to json: inout JSONWriter) { json.raw((isFinite ? description : "null").utf8) }
}

extension Array: JSONEncodable where Element: JSONEncodable {
    public func write(to json: inout JSONWriter) { json.array(self) }
}

extension JSONValue: JSONEncodable {
    public func write(to json: inout JSONWriter) { json.raw(bytes) }
}
