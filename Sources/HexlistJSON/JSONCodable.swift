/// A value that both sides of the local API encode and decode. The conformances are synthesized: members in the order of the properties,
/// without those that are `nil`. Unknown members are ignored when decoding, except in requests (`RequestKey`).
public typealias JSONShape = Codable & JSONEncodable & JSONDecodable

extension JSONEncodable where Self: Encodable {
    public func write(to json: inout JSONWriter) { JSONEncoding.write(self, to: &json) }
}

extension JSONDecodable where Self: Decodable {
    public init(json: JSONValue) throws(JSONFault) { self = try JSONDecoding.decode(json) }
}

/// A value with its own `write(to:)` and `init(json:)`. It is `Codable` so that it can be a member of other types.
public protocol JSONCoded: Codable, JSONEncodable, JSONDecodable {}

/// With other encoders, such as that of Swift Testing for arguments, the value is encoded as its JSON text.
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

/// A value that is a string in JSON.
public protocol JSONStringConvertible: JSONCoded, CustomStringConvertible {
    /// `nil` if the text is invalid.
    init?(_ text: String)
    /// The expected kind of text, for error messages: `a UUID`.
    static var expectation: String { get }
}

extension JSONStringConvertible {
    public func write(to json: inout JSONWriter) { json.string(description) }

    public init(json: JSONValue) throws(JSONFault) {
        guard let value = json.string.flatMap({ Self($0) }) else { throw JSONFault("\(Self.expectation) is expected") }
        self = value
    }
}

/// An enumeration that is a string in JSON. Unknown strings are errors; use `ForwardCompatibleEnum` to accept values of newer daemons.
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

/// An enumeration to which newer daemons may add values.
public struct ForwardCompatibleEnum<Word: RawRepresentable & Sendable>: JSONCoded, Hashable, Sendable, CustomStringConvertible
where Word.RawValue == String {
    public let text: String

    public init(_ word: Word) { text = word.rawValue }
    public init(text: String) { self.text = text }

    /// `nil` if the value is unknown to this version.
    public var known: Word? { Word(rawValue: text) }
    public var description: String { text }

    public func write(to json: inout JSONWriter) { json.string(text) }
    public init(json: JSONValue) throws(JSONFault) { text = try String(json: json) }
}

// MARK: - Property wrappers for members

/// A member that defaults to empty, `false` or 0 if it is missing.
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

/// A member that is omitted while it is empty, `false` or 0, and has that value if it is missing.
@propertyWrapper
public struct LeftOutEmpty<Value: JSONShape & EmptyValue>: EmptyMember {
    public var wrappedValue: Value

    public init(wrappedValue: Value) { self.wrappedValue = wrappedValue }

    public var memberPosition: MemberPosition { wrappedValue == .empty ? .leftOut : .named }
}

extension LeftOutEmpty: Equatable {}
extension LeftOutEmpty: Sendable where Value: Sendable {}

/// A member that is always written and is empty, `false` or 0 if it is missing, as in a response of an older daemon.
@propertyWrapper
public struct EmptyIfMissing<Value: JSONShape & EmptyValue>: EmptyMember {
    public var wrappedValue: Value

    public init(wrappedValue: Value) { self.wrappedValue = wrappedValue }
}

extension EmptyIfMissing: Equatable {}
extension EmptyIfMissing: Sendable where Value: Sendable {}

/// An optional member that is written as `null`; missing and `null` are both read as `nil`.
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

/// A value whose members are written inline, among those of the enclosing object.
@propertyWrapper
public struct Inlined<Value: MemberGroup>: JSONShape {
    /// `nil` if the member `Value.marker` is missing.
    public var wrappedValue: Value?

    public init(wrappedValue: Value?) { self.wrappedValue = wrappedValue }

    public var memberPosition: MemberPosition { wrappedValue == nil ? .leftOut : .inlined }
    public static var inlinedMarker: String? { Value.marker }
    public static var missing: Self? { Self(wrappedValue: nil) }

    public func encode(to encoder: any Encoder) throws { try wrappedValue?.encode(to: encoder) }
    public init(from decoder: any Decoder) throws { wrappedValue = try Value(from: decoder) }
}

extension Inlined: Equatable where Value: Equatable {}
extension Inlined: Sendable where Value: Sendable {}

public protocol MemberGroup: Codable {
    /// The name of a member that every such value has, by which its presence is detected.
    static var marker: String { get }
}

/// A type with an empty value, for `LeftOutEmpty` and `EmptyIfMissing`.
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
