/// Compares texts of peers byte by byte. `String ==` normalizes Unicode and takes quadratic time for hostile text.
public enum PeerText {
    /// Whether both texts have the same UTF-8 bytes, or both are `nil`.
    public static func areEqual(_ left: String?, _ right: String?) -> Bool {
        switch (left, right) {
        case (let left?, let right?): left.utf8.elementsEqual(right.utf8)
        case (nil, nil): true
        case (nil, _?), (_?, nil): false
        }
    }
}

extension RawRepresentable<String> where Self: CaseIterable {
    /// The case whose raw value has exactly these UTF-8 bytes.
    @inlinable  // a call from another module would cost microseconds for each receipt
    public init?(utf8 bytes: some Sequence<UInt8>) {
        guard let named = Self.allCases.first(where: { $0.rawValue.utf8.elementsEqual(bytes) }) else { return nil }
        self = named
    }
}
