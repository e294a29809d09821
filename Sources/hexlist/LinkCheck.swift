import HexlistModel

/// The check of a typed link before it is sent. The receiver accepts anything as a link, so a slip of the sender would arrive as one.
enum LinkCheck {
    /// A link needs a scheme.
    case scheme
    /// `https://` is put before a bare host name.
    case guess
    /// Anything is sent unchanged.
    case raw

    /// - Parameters:
    ///   - place: the file and line of the link, for the message.
    ///   - previous: the argument before, of whose description this one may be a part.
    ///   - following: the arguments after it, which may be further parts.
    /// - Throws: `HexlistError` for a text without a scheme, with what was probably meant.
    func checked(
        _ link: LinkInput, from place: String? = nil, after previous: LinkInput? = nil, before following: ArraySlice<String> = []
    ) throws(HexlistError) -> LinkInput {
        let form = LinkForm(link.url)
        switch (self, form) {
        case (.raw, _): return link
        case (_, .link):
            var link = link
            link.service = link.service ?? Service(ofLink: link.url)?.rawValue
            return link
        case (.guess, .bareHost):
            var link = link
            link.url = "https://" + link.url
            link.service = Service(ofLink: link.url)?.rawValue
            return link
        case (_, .bareHost):
            throw refused(link, place, "Give https://\(shown(link.url)), or --guess to have https:// put before it.")
        case (_, .other):
            guard let previous, place == nil else {
                throw refused(link, place, "A link begins as https:// does. --raw sends it as it is.")
            }
            let more = following.prefix { argument in LinkInput(argument).map { LinkForm($0.url) == .other } ?? false }
            let words = ([previous.url, previous.description, link.url, link.description] + more).filter { !$0.isEmpty }
            throw refused(
                link, place,
                "A link and its description stand in one pair of quotes: \"\(shown(words.joined(separator: " ")))\". --raw sends it as it is."
            )
        }
    }

    private func refused(_ link: LinkInput, _ place: String?, _ hint: String) -> HexlistError {
        let place = place.map { TerminalText.clean($0) + ": " } ?? ""
        return HexlistError(.badRequest, "\(place)`\(shown(link.url))` is no link: it has no scheme.", hint: hint)
    }

    private func shown(_ text: String) -> String { TerminalText.clean(text, columns: 60) }
}
