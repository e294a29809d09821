/// What a hex is about, as one line of a list says it.
public enum HexSubject {
    /// Bytes of one; lists show less.
    public static let bytes = 120

    /// The description; where it is blank that of the first link; where that is too, the host the link leads to, or the link itself where
    /// programs may read it in different ways (`LinkTarget`). Empty for a hex that has none of them.
    ///
    /// - Returns: text of a peer, cut: it is to be cleaned where it is shown.
    public static func of(description: String, linkDescription: @autoclosure () -> String, url: @autoclosure () -> String) -> String {
        let text = isBlank(description) ? linkDescription() : description
        guard isBlank(text) else { return PeerName.cut(text, bytes: bytes) }
        let url = url()
        let host = try? LinkTarget(url, schemes: ["http", "https"]).summary
        return PeerName.cut(host ?? url, bytes: bytes)
    }

    public static func of(_ hex: HexContent) -> String {
        let link = hex.links.first
        return of(
            description: hex.string(hex.hexDescription), linkDescription: link.map { hex.string($0.linkDescription) } ?? "",
            url: link.map { hex.string($0.url) } ?? "")
    }

    /// Whether a text shows nothing: it is empty or white space.
    public static func isBlank(_ text: String) -> Bool { text.unicodeScalars.allSatisfy(\.properties.isWhitespace) }
}
