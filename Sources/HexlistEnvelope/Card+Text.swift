import HexlistModel

extension Card {
    private static let textPrefix = "hexlist-card-1:"

    /// The form for people: `hexlist-card-1:` and base64url without padding.
    public var text: String { Self.textPrefix + Base64URL.encode(bytes) }

    /// Reads `text`; `nil` for any other text.
    public init?(text: String) {
        guard text.utf8.starts(with: Self.textPrefix.utf8) else { return nil }
        guard let bytes = Base64URL.decode(text.utf8.dropFirst(Self.textPrefix.utf8.count).prefix(2 * Self.byteCount)) else { return nil }
        self.init(bytes: bytes)
    }
}
