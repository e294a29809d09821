/// A type that can be decoded from a JSON value.
public protocol JSONDecodable {
    init(json: JSONValue) throws(JSONFault)
    /// The value for a member that is missing or `null`. The default is `nil`: the member is required.
    static var missing: Self? { get }
    /// For a type that is inlined into the enclosing object, the name of the member by which its presence is detected. The default is
    /// `nil`: the type is not inlined.
    static var inlinedMarker: String? { get }
}

extension JSONDecodable {
    public static var missing: Self? { nil }
    public static var inlinedMarker: String? { nil }
}

/// The members of a JSON object. If several members have the same name, the last one is used.
public struct JSONObject: Sendable {
    private let members: [JSONMember]

    /// - Throws: `JSONFault` if the value is not an object.
    public init(_ json: JSONValue) throws(JSONFault) {
        guard let members = json.members else { throw JSONFault("an object is expected") }
        self.members = members
    }

    /// The names of the members in their original order.
    public var names: [String] { members.map(\.name) }

    /// Returns the value of a member; `nil` if the member is missing.
    public subscript(_ name: String) -> JSONValue? {
        let length = name.utf8.count
        return members.last { $0.nameBytes.count == length && $0.nameBytes.elementsEqual(name.utf8) }?.value
    }

    /// Returns the value of a required member.
    /// - Throws: `JSONFault` if the member is missing or its value is of another type.
    public func value<Value: JSONDecodable>(_ name: String) throws(JSONFault) -> Value {
        guard let json = self[name] else { throw JSONFault("`\(name)` is missing") }
        return try read(json, of: name)
    }

    /// Returns the value of a member; `nil` if the member is missing or `null`.
    public func optional<Value: JSONDecodable>(_ name: String) throws(JSONFault) -> Value? {
        guard let json = self[name], !json.isNull else { return nil }
        return try read(json, of: name)
    }

    /// Returns the value of a member; `nil` if the member is missing. If it is `null`, `Value` must decode the `null`.
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
        // `3.0` is accepted, because JSON Schema counts it as an integer. Numbers of 2^53 or more with a fraction or exponent are refused,
        // because `Double` may have rounded them.
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
    /// Reads the object of a request. Unknown members are errors.
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
