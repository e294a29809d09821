import HexlistModel

/// The part of a request after `?`, in its order. A name may occur several times.
public struct URLQuery: Sendable, Equatable {
    public struct Item: Sendable, Equatable {
        public var name: String
        public var value: String
    }

    public private(set) var items: [Item] = []

    public init() {}

    /// Parses a query; `nil` if an escape is malformed or is not UTF-8. A `+` is a plus.
    public init?(parsing text: some StringProtocol) {
        for part in text.split(separator: "&") {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let first = pair.first, let name = PercentEncoding.decode(first),
                let value = pair.count == 2 ? PercentEncoding.decode(pair[1]) : ""
            else { return nil }
            items.append(Item(name: name, value: value))
        }
    }

    public mutating func add(_ name: String, _ value: String?) {
        if let value { items.append(Item(name: name, value: value)) }
    }

    public func values(_ name: String) -> [String] { items.filter { $0.name == name }.map(\.value) }

    /// The text with the `?`; empty if there are no items.
    public var text: String {
        guard !items.isEmpty else { return "" }
        return "?" + items.map { "\(PercentEncoding.encode($0.name))=\(PercentEncoding.encode($0.value))" }.joined(separator: "&")
    }
}

/// Percent-encoding (RFC 3986 section 2.1).
public enum PercentEncoding {
    /// Escapes everything except unreserved characters.
    public static func encode(_ text: some StringProtocol) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            if ASCII.isAlphanumeric(byte) || "-._~".utf8.contains(byte) {
                bytes.append(byte)
            } else {
                bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Decodes a text; `nil` if an escape is malformed or the result is not UTF-8.
    public static func decode(_ text: some StringProtocol) -> String? {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(Hexadecimal.value), let low = rest.popFirst().flatMap(Hexadecimal.value) else {
                return nil
            }
            bytes.append(high << 4 | low)
        }
        return String(validating: bytes, as: UTF8.self)
    }
}
