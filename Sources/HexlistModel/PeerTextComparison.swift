/// Compares texts of peers byte by byte. `String ==` is not used, because it normalizes Unicode, which takes quadratic time for hostile
/// text.
public enum PeerTextComparison {
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
    /// Finds the case whose raw value consists of exactly these UTF-8 bytes; `nil` if there is none.
    @inlinable  // a call from another module would cost microseconds for each receipt
    public init?(utf8 bytes: some Sequence<UInt8>) {
        guard let named = Self.allCases.first(where: { $0.rawValue.utf8.elementsEqual(bytes) }) else { return nil }
        self = named
    }
}
