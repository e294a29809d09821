/// A `Decoder` for `Codable` types that reads a value whose syntax was already validated. Throws `JSONFault` with the path of the member
/// that is wrong.
struct JSONDecoding: Decoder {
    let value: JSONValue

    /// Required by `Decoder`. Always empty, because the message of a `JSONFault` already contains the path.
    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    static func read<Value: Decodable>(_: Value.Type, _ json: JSONValue) throws(JSONFault) -> Value {
        if let type = Value.self as? any JSONDecodable.Type, let value = try type.init(json: json) as? Value { return value }
        // Integers are decoded here, because their `init(from:)` would call this function again without end.
        if let type = Value.self as? any FixedWidthInteger.Type {
            guard let value = type.init(exactly: try Int64(json: json)) as? Value else { throw JSONFault("a smaller integer is expected") }
            return value
        }
        return try decode(json)
    }

    /// Decodes a value of a type that has no `init(json:)` of its own.
    static func decode<Value: Decodable>(_ json: JSONValue) throws(JSONFault) -> Value {
        do {
            return try Value(from: JSONDecoding(value: json))
        } catch let fault as JSONFault {
            throw fault
        } catch {
            throw JSONFault("a value of another kind is expected")  // types of this package throw nothing else
        }
    }

    func container<Key: CodingKey>(keyedBy _: Key.Type) throws -> KeyedDecodingContainer<Key> {
        let object = try JSONObject(value)
        if let keys = Key.self as? any RequestKey.Type { try object.check(keys.names) }
        return KeyedDecodingContainer(Members(value: value, object: object))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { throw JSONFault("arrays are read as a whole") }

    func singleValueContainer() -> any SingleValueDecodingContainer { SingleValue(value: value) }

    // MARK: Containers

    /// A keyed container. Its generic functions replace the protocol's many overloads for numbers and strings.
    private struct Members<Key: CodingKey>: KeyedDecodingContainerProtocol {
        let value: JSONValue
        let object: JSONObject
        var codingPath: [any CodingKey] { [] }
        var allKeys: [Key] { object.names.compactMap(Key.init(stringValue:)) }

        func contains(_ key: Key) -> Bool { object[key.stringValue] != nil }
        func decodeNil(forKey key: Key) -> Bool { object[key.stringValue]?.isNull ?? true }

        func decode<Value: Decodable>(_: Value.Type, forKey key: Key) throws -> Value {
            let name = key.stringValue
            guard let type = Value.self as? any JSONDecodable.Type else {
                return try read(name) { json throws(JSONFault) in try JSONDecoding.decode(json) }
            }
            if let mark = type.inlinedMarker {
                return object[mark]?.isNull ?? true ? try missing(type, mark) : try JSONDecoding.decode(value)
            }
            if object[name]?.isNull ?? true, let missing = type.missing as? Value { return missing }
            return try read(name) { json throws(JSONFault) in
                guard let value = try type.init(json: json) as? Value else { return try JSONDecoding.decode(json) }
                return value
            }
        }

        // Overloads for the most frequent types, which skip the search for a suitable initializer.
        func decode(_: String.Type, forKey key: Key) throws -> String { try read(key.stringValue, String.init(json:)) }
        func decode(_: Int.Type, forKey key: Key) throws -> Int { try read(key.stringValue, Int.init(json:)) }
        func decode(_: Bool.Type, forKey key: Key) throws -> Bool { try read(key.stringValue, Bool.init(json:)) }

        private func missing<Value>(_ type: any JSONDecodable.Type, _ name: String) throws -> Value {
            guard let value = type.missing as? Value else { throw JSONFault("`\(name)` is missing") }
            return value
        }

        private func read<Value>(_ name: String, _ read: (JSONValue) throws(JSONFault) -> Value) throws(JSONFault) -> Value {
            guard let json = object[name] else { throw JSONFault("`\(name)` is missing") }
            do throws(JSONFault) {
                return try read(json)
            } catch {
                throw JSONFault("`\(name)`: \(error.message)")
            }
        }

        func nestedContainer<Nested: CodingKey>(keyedBy _: Nested.Type, forKey key: Key) throws -> KeyedDecodingContainer<Nested> {
            try superDecoder(forKey: key).container(keyedBy: Nested.self)
        }

        func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
            try superDecoder(forKey: key).unkeyedContainer()
        }

        func superDecoder() throws -> any Decoder { throw JSONFault("classes are not read") }
        func superDecoder(forKey key: Key) throws -> any Decoder { JSONDecoding(value: try decode(JSONValue.self, forKey: key)) }
    }

    private struct SingleValue: SingleValueDecodingContainer {
        let value: JSONValue
        var codingPath: [any CodingKey] { [] }

        func decodeNil() -> Bool { value.isNull }
        func decode<Value: Decodable>(_: Value.Type) throws -> Value { try JSONDecoding.read(Value.self, value) }
    }
}

/// The coding keys of a request. If a request has an unknown member, decoding fails, because the caller made a mistake.
public protocol RequestKey: CodingKey, CaseIterable {}

extension RequestKey {
    fileprivate static var names: [String] { allCases.map(\.stringValue) }
}
