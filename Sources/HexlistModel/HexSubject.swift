/// The subject of a hex, one line in a list.
public enum HexSubject {
    /// The most bytes of a subject. Lists show fewer.
    public static let bytes = 120

    /// The description of the hex; if that is blank, the description of its first link; if that is blank too, the host the link leads to,
    /// or the whole link if programs may read it in different ways (`LinkTarget`). Empty if the hex has none of these.
    ///
    /// - Returns: text of a peer, cut to `bytes`. The caller cleans it where it is shown.
    public static func of(description: String, linkDescription: String, url: String) -> String {
        if let text = [description, linkDescription].first(where: hasText) { return PeerName.cut(text, bytes: bytes) }
        let host = try? LinkTarget(url, schemes: ["http", "https"]).summary
        return PeerName.cut(host ?? url, bytes: bytes)
    }

    public static func of(_ hex: HexContent) -> String {
        let description = hex.string(hex.hexDescription)
        if hasText(description) { return PeerName.cut(description, bytes: bytes) }
        let link = hex.links.first
        return of(
            description: "", linkDescription: link.map { hex.string($0.linkDescription) } ?? "",
            url: link.map { hex.string($0.url) } ?? "")
    }

    private static func hasText(_ text: String) -> Bool { text.unicodeScalars.contains { !$0.properties.isWhitespace } }
}
