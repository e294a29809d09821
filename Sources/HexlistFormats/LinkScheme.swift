import HexlistModel

/// Schemes of links that have no `://`.
enum LinkScheme {
    /// Schemes behind which no authority stands. Another word with a colon in it is more likely text, as `Re:hello`.
    private static let opaque: Set<String> = [
        "about", "bitcoin", "callto", "cid", "data", "doi", "facetime", "feed", "geo", "im", "javascript", "magnet", "mailto", "maps",
        "news",
        "place", "sip", "sips", "skype", "sms", "spotify", "tel", "urn", "view-source", "whatsapp", "xmpp",
    ]

    /// Whether a word is a link of one of these schemes, which is taken whole though an address may be in it.
    static func isOpaque(_ word: String) -> Bool {
        let scheme = String(decoding: word.utf8.prefix { $0 != UInt8(ascii: ":") }.map(ASCII.lowercased), as: UTF8.self)
        return opaque.contains(scheme) && LinkForm(word) == .link
    }
}
