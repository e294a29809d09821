/// The one-line subject of a hex in lists.
public enum HexSubject {
    /// Maximum bytes of a subject. Lists may truncate it further.
    public static let bytes = 120

    /// Returns the first of these that is not blank: the description of the hex, the description of its first link, the link's host and
    /// path. If programs may interpret the link in different ways (`LinkTarget`), the whole link is used instead of host and path. Empty if
    /// the hex has none of these.
    ///
    /// - Returns: untrusted text of at most `bytes` bytes; it ends in `…` if it was cut. The caller cleans it for display.
    public static func of(description: String, linkDescription: @autoclosure () -> String, url: @autoclosure () -> String) -> String {
        let text = isBlank(description) ? linkDescription() : description
        guard isBlank(text) else { return PeerName.shortened(text, bytes: bytes) }
        let url = url()
        guard let target = try? LinkTarget(url, schemes: ["http", "https"]) else { return PeerName.shortened(url, bytes: bytes) }
        return PeerName.shortened(target.summary + path(of: url), bytes: bytes)
    }

    /// Returns the path of a URL that has an authority; empty if the path is `/`.
    private static func path(of url: String) -> String {
        let marks: [UInt8] = [UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "#")]
        let afterScheme = url.utf8.drop { $0 != UInt8(ascii: ":") }.dropFirst(3)
        let rest = afterScheme.drop { !marks.contains($0) }
        let path = rest.prefix { $0 != marks[1] && $0 != marks[2] }
        return path.count > 1 ? String(Substring(path)) : ""
    }

    public static func of(_ hex: HexContent) -> String {
        let link = hex.links.first
        return of(
            description: hex.string(hex.hexDescription), linkDescription: link.map { hex.string($0.linkDescription) } ?? "",
            url: link.map { hex.string($0.url) } ?? "")
    }

    /// Whether a text is empty or consists of white space.
    public static func isBlank(_ text: String) -> Bool {
        text.unicodeScalars.allSatisfy { $0.isASCII ? $0 == " " || ("\t"..."\r").contains($0) : $0.properties.isWhitespace }
    }
}
