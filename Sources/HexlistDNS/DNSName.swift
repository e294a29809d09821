import HexlistModel

/// A domain name in DNS form: labels of arbitrary bytes. Compared and hashed regardless of ASCII case (RFC 4343).
public struct DNSName: Hashable, Sendable, CustomStringConvertible {
    /// The labels of 1 to 63 bytes each; at most 255 bytes in total, including length bytes and the root.
    public let labels: [[UInt8]]

    init(labels: [[UInt8]]) { self.labels = labels }

    /// Parses a name of the configuration: labels separated by dots, without escapes; the final dot is optional.
    /// - Returns: `nil` if it is not a valid name.
    public init?(_ text: String) {
        let labels = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).map(Array.init)
        let named = labels.last == [] ? Array(labels.dropLast()) : labels
        guard !named.isEmpty, named.allSatisfy({ (1...63).contains($0.count) }), named.reduce(1, { $0 + $1.count + 1 }) <= 255 else {
            return nil
        }
        self.labels = named
    }

    /// The name with labels prepended; `nil` if it would be too long.
    func prefixed(by prefix: [[UInt8]]) -> DNSName? {
        let all = prefix + labels
        guard all.allSatisfy({ (1...63).contains($0.count) }), all.reduce(1, { $0 + $1.count + 1 }) <= 255 else { return nil }
        return DNSName(labels: all)
    }

    /// The first label if this name is a direct child of `parent`.
    public func label(under parent: DNSName) -> [UInt8]? {
        guard labels.count == parent.labels.count + 1, DNSName(labels: Array(labels.dropFirst())) == parent else { return nil }
        return labels.first
    }

    /// The presentation form (RFC 1035 section 5.1) with the final dot. Bytes other than letters, digits, `-` and `_` are escaped.
    public var description: String {
        labels.map { label in
            label.map { byte in
                ASCII.isAlphanumeric(byte) || "-_".utf8.contains(byte)
                    ? String(UnicodeScalar(byte)) : "\\" + String(1_000 + Int(byte)).dropFirst()
            }.joined() + "."
        }.joined()
    }

    /// The presentation form without the final dot, for the user.
    var text: String { String(description.dropLast()) }

    private var folded: [[UInt8]] { labels.map { $0.map(ASCII.lowercased) } }

    public static func == (left: DNSName, right: DNSName) -> Bool { left.folded == right.folded }
    public func hash(into hasher: inout Hasher) { hasher.combine(folded) }
}
