import HexlistModel

/// Detects links whose scheme is not followed by `://`, such as `mailto:`.
enum LinkScheme {
    /// Schemes whose addresses have no authority (`//host`). A word with any other scheme and no `//` is probably ordinary text, such as
    /// `Re:hello`.
    private static let opaque: Set<String> = [
        "about", "bitcoin", "callto", "cid", "data", "doi", "facetime", "feed", "geo", "im", "javascript", "magnet", "mailto", "maps",
        "news",
        "place", "sip", "sips", "skype", "sms", "spotify", "tel", "urn", "view-source", "whatsapp", "xmpp",
    ]

    /// Whether a word is a link with one of these schemes. The whole word is then one link, even if another address occurs inside it.
    static func isOpaque(_ word: String) -> Bool {
        let scheme = String(decoding: word.utf8.prefix { $0 != UInt8(ascii: ":") }.map(ASCII.lowercased), as: UTF8.self)
        return opaque.contains(scheme) && LinkTextKind(word) == .link
    }
}
