/// An `Encoder` for `Codable` types. Foundation's encoder is not used, because it neither keeps the order of members nor writes existing
/// JSON text unchanged.
///
/// Members are written in the order in which they are encoded. For synthesized conformances, that is the order of the properties. If a
/// value encodes another value into the same encoder, the members of both form one object.
struct JSONEncoding: Encoder {
    /// The output that all containers share.
    final class Sink {
        var json = JSONWriter()
        /// The closing brackets of the open containers, outermost first.
        var open: [Unicode.Scalar] = []

        /// Closes the innermost containers until only `depth` are open.
        func close(to depth: Int) {
            while open.count > depth, let bracket = open.popLast() { json.end(bracket) }
        }

        func begin(_ bracket: Unicode.Scalar, _ end: Unicode.Scalar) {
            json.begin(bracket)
            open.append(end)
        }

        func write(_ value: some Encodable) throws {
            if let value = value as? any JSONEncodable { return value.write(to: &json) }
            // Integers are encoded here, because their `encode(to:)` would call this function again without end.
            if let number = value as? any FixedWidthInteger { return json.raw("\(number)".utf8) }
            let depth = open.count
            try value.encode(to: JSONEncoding(sink: self, depth: depth))
            close(to: depth)
        }
    }

    fileprivate let sink: Sink
    /// The number of containers that are open around the value.
    fileprivate let depth: Int

    /// Required by `Encoder`. Always empty, because encoding does not fail.
    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    /// Writes a value of a type that has no `write(to:)` of its own. If its `encode(to:)` throws, which no type of this package does, the
    /// output is incomplete but valid JSON.
    static func write(_ value: some Encodable, to json: inout JSONWriter) {
        let sink = Sink()
        swap(&sink.json, &json)
        try? value.encode(to: JSONEncoding(sink: sink, depth: 0))
        sink.close(to: 0)
        swap(&sink.json, &json)
    }

    func container<Key: CodingKey>(keyedBy _: Key.Type) -> KeyedEncodingContainer<Key> {
        if sink.open.count > depth { sink.close(to: depth + 1) } else { sink.begin("{", "}") }
        return KeyedEncodingContainer(Members(sink: sink, depth: depth + 1))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        sink.begin("[", "]")
        return Elements(sink: sink, depth: depth + 1)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer { SingleValue(sink: sink) }

    // MARK: Containers

    /// A keyed container. Its generic functions replace the protocol's many overloads for numbers and strings.
    private struct Members<Key: CodingKey>: KeyedEncodingContainerProtocol {
        let sink: Sink
        let depth: Int
        var codingPath: [any CodingKey] { [] }

        private func name(_ key: some CodingKey) {
            sink.close(to: depth)
            sink.json.name(key.stringValue)
        }

        func encodeNil(forKey key: Key) {
            name(key)
            sink.json.raw("null")
        }

        func encode<Value: Encodable>(_ value: Value, forKey key: Key) throws {
            let own = value as? any JSONEncodable
            switch own?.memberPosition ?? .named {
            case .named:
                name(key)
                if let own { own.write(to: &sink.json) } else { try sink.write(value) }
            case .inlined: try value.encode(to: JSONEncoding(sink: sink, depth: depth - 1))
            case .leftOut: break
            }
        }

        // Overloads for the most frequent types, which skip the generic function.
        func encode(_ value: String, forKey key: Key) { write(value, key) }
        func encode(_ value: Int, forKey key: Key) { write(value, key) }
        func encode(_ value: Bool, forKey key: Key) { write(value, key) }

        private func write(_ value: some JSONEncodable, _ key: Key) {
            name(key)
            value.write(to: &sink.json)
        }

        func nestedContainer<Nested: CodingKey>(keyedBy _: Nested.Type, forKey key: Key) -> KeyedEncodingContainer<Nested> {
            name(key)
            return JSONEncoding(sink: sink, depth: depth).container(keyedBy: Nested.self)
        }

        func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
            name(key)
            return JSONEncoding(sink: sink, depth: depth).unkeyedContainer()
        }

        func superEncoder() -> any Encoder { JSONEncoding(sink: sink, depth: depth - 1) }

        func superEncoder(forKey key: Key) -> any Encoder {
            name(key)
            return JSONEncoding(sink: sink, depth: depth)
        }
    }

    private struct Elements: UnkeyedEncodingContainer {
        let sink: Sink
        let depth: Int
        private(set) var count = 0
        var codingPath: [any CodingKey] { [] }

        init(sink: Sink, depth: Int) {
            self.sink = sink
            self.depth = depth
        }

        private mutating func next() {
            sink.close(to: depth)
            sink.json.separate()
            count += 1
        }

        mutating func encodeNil() {
            next()
            sink.json.raw("null")
        }

        mutating func encode<Value: Encodable>(_ value: Value) throws {
            next()
            try sink.write(value)
        }

        mutating func nestedContainer<Nested: CodingKey>(keyedBy _: Nested.Type) -> KeyedEncodingContainer<Nested> {
            next()
            return JSONEncoding(sink: sink, depth: depth).container(keyedBy: Nested.self)
        }

        mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
            next()
            return JSONEncoding(sink: sink, depth: depth).unkeyedContainer()
        }

        mutating func superEncoder() -> any Encoder {
            next()
            return JSONEncoding(sink: sink, depth: depth)
        }
    }

    private struct SingleValue: SingleValueEncodingContainer {
        let sink: Sink
        var codingPath: [any CodingKey] { [] }

        func encodeNil() { sink.json.raw("null") }
        func encode<Value: Encodable>(_ value: Value) throws { try sink.write(value) }
    }
}
