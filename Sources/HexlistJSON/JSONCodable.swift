/// A type of the local API that both client and daemon encode and decode. Its conformances are synthesized. Members are written in the
/// order of the properties, and members that are `nil` are omitted. Unknown members are ignored when decoding, except in requests
/// (`RequestKey`).
public typealias JSONShape = Codable & JSONEncodable & JSONDecodable

extension JSONEncodable where Self: Encodable {
    public func write(to json: inout JSONWriter) { JSONEncoding.write(self, to: &json) }
}

extension JSONDecodable where Self: Decodable {
    public init(json: JSONValue) throws(JSONFault) { self = try JSONDecoding.decode(json) }
}

/// A type with its own `write(to:)` and `init(json:)`. It is also `Codable`, so that it can be a property of types whose conformance is
/// synthesized.
public protocol JSONCoded: Codable, JSONEncodable, JSONDecodable {}

/// Encodes the value as a string with its JSON text. Used by other encoders than `JSONEncoding`, such as that of Swift Testing.
extension JSONCoded {
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        if encoder is JSONEncoding { try container.encode(self) } else { try container.encode(jsonText) }
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        self =
            decoder is JSONDecoding
            ? try container.decode(Self.self) : try Self(json: JSONValue(parsing: container.decode(String.self)))
    }
}

extension JSONValue: JSONCoded {
    public init(json: JSONValue) { self = json }
    public func write(to json: inout JSONWriter) { json.raw(bytes) }
}

/// A type whose values are strings in JSON.
public protocol JSONStringConvertible: JSONCoded, CustomStringConvertible {
    /// Returns `nil` if the text is not valid.
    init?(_ text: String)
    /// The kind of text that is expected, for error messages, such as `a UUID`.
    static var expectation: String { get }
}

extension JSONStringConvertible {
    public func write(to json: inout JSONWriter) { json.string(description) }

    public init(json: JSONValue) throws(JSONFault) {
        guard let value = json.string.flatMap({ Self($0) }) else { throw JSONFault("\(Self.expectation) is expected") }
        self = value
    }
}

/// An enumeration that is a string in JSON. Decoding fails if the string is unknown; `ForwardCompatibleEnum` accepts unknown strings.
public protocol JSONWord: JSONCoded, RawRepresentable, CaseIterable where RawValue == String {}

extension JSONWord {
    public func encode(to encoder: any Encoder) throws { try rawValue.encode(to: encoder) }
    public init(from decoder: any Decoder) throws { try self.init(word: String(from: decoder)) }

    public func write(to json: inout JSONWriter) { json.string(rawValue) }
    public init(json: JSONValue) throws(JSONFault) { try self.init(word: String(json: json)) }

    private init(word text: String) throws(JSONFault) {
        guard let word = Self(rawValue: text) else {
            throw JSONFault("`\(text)` is none of \(Self.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        self = word
    }
}

/// An enumeration that keeps the text of unknown cases, because newer daemons may add cases.
public struct ForwardCompatibleEnum<Word: RawRepresentable & Sendable>: JSONCoded, Hashable, Sendable, CustomStringConvertible
where Word.RawValue == String {
    public let text: String

    public init(_ word: Word) { text = word.rawValue }
    public init(text: String) { self.text = text }

    /// The case; `nil` if this version does not know it.
    public var known: Word? { Word(rawValue: text) }
    public var description: String { text }

    public func write(to json: inout JSONWriter) { json.string(text) }
    public init(json: JSONValue) throws(JSONFault) { text = try String(json: json) }
}

// MARK: - Property wrappers for members

/// A member that becomes empty, `false` or 0 if the JSON does not have it.
public protocol EmptyMember: JSONCoded {
    associatedtype Value: JSONShape & EmptyValue
    var wrappedValue: Value { get }
    init(wrappedValue: Value)
}

extension EmptyMember {
    public static var missing: Self? { Self(wrappedValue: .empty) }

    public func write(to json: inout JSONWriter) { wrappedValue.write(to: &json) }
    public init(json: JSONValue) throws(JSONFault) { self.init(wrappedValue: try Value(json: json)) }
}

/// A member that is omitted from the JSON while it is empty, `false` or 0. If it is missing, it gets that value.
@propertyWrapper
public struct OmittedIfEmpty<Value: JSONShape & EmptyValue>: EmptyMember {
    public var wrappedValue: Value

    public init(wrappedValue: Value) { self.wrappedValue = wrappedValue }

    public var memberPosition: MemberPosition { wrappedValue == .empty ? .leftOut : .named }
}

extension OmittedIfEmpty: Equatable {}
extension OmittedIfEmpty: Sendable where Value: Sendable {}

/// A member that is always written. If it is missing, as in responses of older daemons, it becomes empty, `false` or 0.
@propertyWrapper
public struct EmptyIfMissing<Value: JSONShape & EmptyValue>: EmptyMember {
    public var wrappedValue: Value

    public init(wrappedValue: Value) { self.wrappedValue = wrappedValue }
}

extension EmptyIfMissing: Equatable {}
extension EmptyIfMissing: Sendable where Value: Sendable {}

/// An optional member that is written as `null` if it is `nil`. Both `null` and a missing member are read as `nil`.
@propertyWrapper
public struct NullIfNone<Value: JSONShape>: JSONCoded {
    public var wrappedValue: Value?

    public init(wrappedValue: Value?) { self.wrappedValue = wrappedValue }

    public static var missing: Self? { Self(wrappedValue: nil) }

    public func write(to json: inout JSONWriter) {
        if let wrappedValue { wrappedValue.write(to: &json) } else { json.raw("null") }
    }

    public init(json: JSONValue) throws(JSONFault) { wrappedValue = try json.isNull ? nil : Value(json: json) }
}

extension NullIfNone: Equatable where Value: Equatable {}
extension NullIfNone: Sendable where Value: Sendable {}

/// A value whose members are written as members of the enclosing object.
@propertyWrapper
public struct InlinedMembers<Value: MemberGroup>: JSONShape {
    /// The value; `nil` if the enclosing object has no member `Value.marker`.
    public var wrappedValue: Value?

    public init(wrappedValue: Value?) { self.wrappedValue = wrappedValue }

    public var memberPosition: MemberPosition { wrappedValue == nil ? .leftOut : .inlined }
    public static var inlinedMarker: String? { Value.marker }
    public static var missing: Self? { Self(wrappedValue: nil) }

    public func encode(to encoder: any Encoder) throws { try wrappedValue?.encode(to: encoder) }
    public init(from decoder: any Decoder) throws { wrappedValue = try Value(from: decoder) }
}

extension InlinedMembers: Equatable where Value: Equatable {}
extension InlinedMembers: Sendable where Value: Sendable {}

/// A type whose members can be written into the enclosing object (`InlinedMembers`).
public protocol MemberGroup: Codable {
    /// The name of a member that every such value has. An inlined value is present if the enclosing object has this member.
    static var marker: String { get }
}

/// A type with an empty value, as required by `OmittedIfEmpty` and `EmptyIfMissing`.
public protocol EmptyValue: Equatable {
    static var empty: Self { get }
}

extension Bool: EmptyValue {
    public static var empty: Bool { false }
}

extension Int: EmptyValue {
    public static var empty: Int { 0 }
}

extension Array: EmptyValue where Element: Equatable {
    public static var empty: [Element] { [] }
}
