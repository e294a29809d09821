/// The subject of a hex, one line in a list.
public enum HexSubject {
    /// The most bytes of a subject. Lists show fewer.
    public static let bytes = 120

    /// The description of the hex; if that is blank, the description of its first link; if that is blank too, the host the link leads to,
    /// or the whole link if programs may read it in different ways (`LinkTarget`). Empty if the hex has none of these.
    ///
    /// - Returns: text of a peer, cut to `bytes`. The caller cleans it where it is shown.
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
    public static func isBlank(_ text: String) -> Bool {
        text.unicodeScalars.allSatisfy { $0.isASCII ? $0 == " " || ("\t"..."\r").contains($0) : $0.properties.isWhitespace }
    }
}
