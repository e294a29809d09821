import HexlistModel

/// The parameters in the query of a URL, in order. A name may occur several times.
public struct URLQuery: Sendable, Equatable {
    public struct Item: Sendable, Equatable {
        public var name: String
        public var value: String
    }

    public private(set) var items: [Item] = []

    public init() {}

    /// Parses a query; `nil` if a percent-escape is malformed, or if a decoded text is not UTF-8. `+` is not decoded as a space.
    public init?(parsing text: some StringProtocol) {
        for part in Array(text.utf8).split(separator: UInt8(ascii: "&")) {
            let end = part.firstIndex(of: UInt8(ascii: "=")) ?? part.endIndex
            guard let name = PercentEncoding.decode(bytes: part[..<end]),
                let value = PercentEncoding.decode(bytes: part[end...].dropFirst())
            else { return nil }
            items.append(Item(name: name, value: value))
        }
    }

    public mutating func add(_ name: String, _ value: String?) {
        if let value { items.append(Item(name: name, value: value)) }
    }

    public func values(_ name: String) -> [String] { items.filter { $0.name == name }.map(\.value) }

    /// The query with its `?`; empty if there are no items.
    public var text: String {
        guard !items.isEmpty else { return "" }
        return "?" + items.map { "\(PercentEncoding.encode($0.name))=\(PercentEncoding.encode($0.value))" }.joined(separator: "&")
    }
}
