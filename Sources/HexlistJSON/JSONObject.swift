/// A type that can be decoded from a JSON value.
public protocol JSONDecodable {
    init(json: JSONValue) throws(JSONFault)
    /// The value of a missing or `null` member; `nil`, the default, if the member is required.
    static var missing: Self? { get }
    /// The name of the member that marks the presence of an inlined value; `nil` by default.
    static var inlinedMarker: String? { get }
}

extension JSONDecodable {
    public static var missing: Self? { nil }
    public static var inlinedMarker: String? { nil }
}

/// The members of an object. If a name occurs twice, the last member is used.
public struct JSONObject: Sendable {
    private let members: [JSONMember]

    /// - Throws: `JSONFault` if the value is not an object.
    public init(_ json: JSONValue) throws(JSONFault) {
        guard let members = json.members else { throw JSONFault("an object is expected") }
        self.members = members
    }

    /// The names of the members in their order in the text.
    public var names: [String] { members.map(\.name) }

    /// The value of a member; `nil` if the member is missing.
    public subscript(_ name: String) -> JSONValue? {
        let length = name.utf8.count
        return members.last { $0.nameBytes.count == length && $0.nameBytes.elementsEqual(name.utf8) }?.value
    }

    /// - Throws: `JSONFault` if the member is missing or of another kind.
    public func value<Value: JSONDecodable>(_ name: String) throws(JSONFault) -> Value {
        guard let json = self[name] else { throw JSONFault("`\(name)` is missing") }
        return try read(json, of: name)
    }

    /// The value of a member; `nil` if the member is missing or `null`.
    public func optional<Value: JSONDecodable>(_ name: String) throws(JSONFault) -> Value? {
        guard let json = self[name], !json.isNull else { return nil }
        return try read(json, of: name)
    }

    /// The value of a member; `nil` if the member is missing. `null` is passed to `Value`.
    public func given<Value: JSONDecodable>(_ name: String) throws(JSONFault) -> Value? {
        guard let json = self[name] else { return nil }
        return try read(json, of: name)
    }

    private func read<Value: JSONDecodable>(_ json: JSONValue, of name: String) throws(JSONFault) -> Value {
        do {
            return try Value(json: json)
        } catch {
            throw JSONFault("`\(name)`: \(error.message)")
        }
    }
}

extension JSONDecodable {
    /// - Parameter json: JSON text in UTF-8.
    public init(jsonBytes json: [UInt8]) throws(JSONFault) { try self.init(json: JSONValue(parsing: json)) }
}

extension String: JSONDecodable {
    public init(json: JSONValue) throws(JSONFault) {
        guard let text = json.string else { throw JSONFault("a string is expected") }
        self = text
    }
}

extension Bool: JSONDecodable {
    public init(json: JSONValue) throws(JSONFault) {
        guard let flag = json.bool else { throw JSONFault("`true` or `false` is expected") }
        self = flag
    }
}

extension Int64: JSONDecodable {
    public init(json: JSONValue) throws(JSONFault) {
        // JSON Schema counts `3.0` as an integer. A number that a Double may have rounded is not accepted.
        let written = json.integer ?? json.number.flatMap { abs($0) < 0x1p53 ? Int64(exactly: $0) : nil }
        guard let number = written else { throw JSONFault("an integer is expected") }
        self = number
    }
}

extension Int: JSONDecodable {
    public init(json: JSONValue) throws(JSONFault) {
        guard let number = Int(exactly: try Int64(json: json)) else { throw JSONFault("an integer is expected") }
        self = number
    }
}

extension Double: JSONDecodable {
    public init(json: JSONValue) throws(JSONFault) {
        guard let number = json.number else { throw JSONFault("a number is expected") }
        self = number
    }
}

extension Array: JSONDecodable where Element: JSONDecodable {
    public init(json: JSONValue) throws(JSONFault) {
        guard let elements = json.elements else { throw JSONFault("an array is expected") }
        var values: [Element] = []
        values.reserveCapacity(elements.count)
        for element in elements { values.append(try Element(json: element)) }
        self = values
    }
}

extension JSONObject {
    /// Reads an object of a request, in which unknown members are errors.
    public init(_ json: JSONValue, allowing known: [String]) throws(JSONFault) {
        try self.init(json)
        try check(known)
    }

    func check(_ known: [String]) throws(JSONFault) {
        for name in names where !known.contains(name) {
            throw JSONFault("`\(name)` is not known here; \(known.map { "`\($0)`" }.joined(separator: ", ")) would be")
        }
    }
}
