import HexlistModel

extension Card {
    private static let textPrefix = "hexlist-card-1:"

    /// The text form, which users copy and paste: `hexlist-card-1:` and base64url without padding.
    public var text: String { Self.textPrefix + Base64URL.encode(bytes) }

    /// Parses the text form of a card; `nil` if it is malformed.
    public init?(text: String) {
        guard Self.isText(text) else { return nil }
        guard let bytes = Base64URL.decode(text.utf8.dropFirst(Self.textPrefix.utf8.count).prefix(2 * Self.byteCount)) else { return nil }
        self.init(bytes: bytes)
    }

    /// Whether a text begins with `hexlist-card-1:`, even if the rest is damaged.
    public static func isText(_ text: String) -> Bool { text.utf8.starts(with: textPrefix.utf8) }

    /// The form in JSON: base64 with padding.
    public var base64: String { Base64.encode(bytes) }

    /// Parses base64 with padding; `nil` if the text is malformed or has another size.
    public init?(base64: String) {
        guard let bytes = Base64.decode(base64, count: Self.byteCount) else { return nil }
        self.init(bytes: bytes)
    }
}
