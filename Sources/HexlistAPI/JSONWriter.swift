import HexlistModel

/// Something that writes itself as one JSON value.
public protocol JSONEncodable {
    func write(to json: inout JSONWriter)
}

/// Writes JSON as the local API has it: members in the order of the contract, no white space, `/` not escaped, texts in
/// UTF-8. What a terminal would obey or not show is escaped, so that `curl` and `--json` are safe to look at.
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
        let start = bytes.count
        JSONText.append(text, to: &bytes)
        JSONText.makePrintable(&bytes, from: start)
    }

    /// JSON that was written before. A peer may have written it: it says the same, but can be shown.
    public mutating func raw(_ json: some Sequence<UInt8>) {
        let start = bytes.count
        bytes.append(contentsOf: json)
        JSONText.makePrintable(&bytes, from: start)
    }

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
