/// Comparisons of peers' texts, byte by byte. `String`'s own comparison normalizes Unicode and takes quadratic time on hostile text.
public enum PeerText {
    /// Whether both texts have the same bytes of UTF-8, or neither is there.
    public static func areEqual(_ left: String?, _ right: String?) -> Bool {
        switch (left, right) {
        case (let left?, let right?): left.utf8.elementsEqual(right.utf8)
        case (nil, nil): true
        case (nil, _?), (_?, nil): false
        }
    }
}

extension RawRepresentable<String> where Self: CaseIterable {
    /// The case whose raw value has exactly these bytes of UTF-8.
    @inlinable  // a generic one of another module costs microseconds in each receipt
    public init?(utf8 bytes: some Sequence<UInt8>) {
        guard let named = Self.allCases.first(where: { $0.rawValue.utf8.elementsEqual(bytes) }) else { return nil }
        self = named
    }
}
