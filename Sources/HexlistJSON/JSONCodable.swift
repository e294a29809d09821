/// A value that both sides of the local API write and read. The compiler writes the conformances: members in the order of the properties,
/// those that are `nil` left out; what reads them passes over members it does not know (`RequestKey` says where not).
public typealias JSONShape = Codable & JSONEncodable & JSONDecodable

extension JSONEncodable where Self: Encodable {
    public func write(to json: inout JSONWriter) { JSONEncoding.write(self, to: &json) }
}

extension JSONDecodable where Self: Decodable {
    public init(json: JSONValue) throws(JSONFault) { self = try JSONDecoding.decode(json) }
}

/// A value with `write(to:)` and `init(json:)` of its own. It is `Codable` to be a member of others.
public protocol JSONCoded: Codable, JSONEncodable, JSONDecodable {}

/// To a coder that is not this package's, as Testing has one for arguments, such a value is the text of its JSON.
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

/// A value that JSON has as a string.
public protocol JSONStringConvertible: JSONCoded, CustomStringConvertible {
    /// `nil` for a text that is none.
    init?(_ text: String)
    /// The kind of text that is expected, for a person: `a UUID`.
    static var expectation: String { get }
}

extension JSONStringConvertible {
    public func write(to json: inout JSONWriter) { json.string(description) }

    public init(json: JSONValue) throws(JSONFault) {
        guard let value = json.string.flatMap({ Self($0) }) else { throw JSONFault("\(Self.expectation) is expected") }
        self = value
    }
}

/// A word of an enumeration. Another one is a fault: a type that takes words of a newer daemon too has an `ForwardCompatibleEnum` of it.
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

/// A word of an enumeration that a newer daemon may have more of.
public struct ForwardCompatibleEnum<Word: RawRepresentable & Sendable>: JSONCoded, Hashable, Sendable, CustomStringConvertible
where Word.RawValue == String {
    public let text: String

    public init(_ word: Word) { text = word.rawValue }
    public init(text: String) { self.text = text }

    /// `nil` for a word this version does not have.
    public var known: Word? { Word(rawValue: text) }
    public var description: String { text }

    public func write(to json: inout JSONWriter) { json.string(text) }
    public init(json: JSONValue) throws(JSONFault) { text = try String(json: json) }
}

// MARK: - Members with a place of their own

/// A member that is empty, `false` or 0 where it is missing.
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

/// A member that is left out while it is empty, `false` or 0, and is that where it is missing.
@propertyWrapper
public struct LeftOutEmpty<Value: JSONShape & EmptyValue>: EmptyMember {
    public var wrappedValue: Value

    public init(wrappedValue: Value) { self.wrappedValue = wrappedValue }

    public var memberPlace: MemberPosition { wrappedValue == .empty ? .leftOut : .named }
}

extension LeftOutEmpty: Equatable {}
extension LeftOutEmpty: Sendable where Value: Sendable {}

/// A member that is empty, `false` or 0 where it is missing, as in a reply of an older daemon.
@propertyWrapper
public struct EmptyIfMissing<Value: JSONShape & EmptyValue>: EmptyMember {
    public var wrappedValue: Value

    public init(wrappedValue: Value) { self.wrappedValue = wrappedValue }
}

extension EmptyIfMissing: Equatable {}
extension EmptyIfMissing: Sendable where Value: Sendable {}

/// A member that is `null` where it has no value, and has none where it is missing.
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

/// A value whose members stand among those of the object it belongs to.
@propertyWrapper
public struct Among<Value: MemberGroup>: JSONShape {
    /// `nil` where `Value.mark` is missing.
    public var wrappedValue: Value?

    public init(wrappedValue: Value?) { self.wrappedValue = wrappedValue }

    public var memberPlace: MemberPosition { wrappedValue == nil ? .leftOut : .among }
    public static var groupMark: String? { Value.mark }
    public static var missing: Self? { Self(wrappedValue: nil) }

    public func encode(to encoder: any Encoder) throws { try wrappedValue?.encode(to: encoder) }
    public init(from decoder: any Decoder) throws { wrappedValue = try Value(from: decoder) }
}

extension Among: Equatable where Value: Equatable {}
extension Among: Sendable where Value: Sendable {}

public protocol MemberGroup: Codable {
    /// The name of the member that is there wherever such a value is.
    static var mark: String { get }
}

/// A type with a value that `LeftOutEmpty` leaves out.
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
