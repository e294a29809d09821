import HexlistModel

/// Validates typed links before sending: receivers accept any text as a link, so a typo would arrive as one.
enum LinkCheck {
    /// A link needs a scheme.
    case scheme
    /// `https://` is added to a bare host name.
    case guess
    /// No check.
    case raw

    /// - Parameters:
    ///   - place: the file and line of the link, for the message.
    ///   - previous: the argument before it; this one may be a word of its description if quotes are missing.
    ///   - following: the arguments after it, which may be further words.
    /// - Throws: `HexlistError` for a text without a scheme, with a suggestion.
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
            throw refused(link, place, "Use https://\(shown(link.url)), or --guess to add https://.")
        case (_, .other):
            guard let previous, place == nil else {
                throw refused(link, place, "A link begins like https://. To send it anyway: --raw.")
            }
            let more = following.prefix { argument in LinkInput(argument).map { LinkForm($0.url) == .other } ?? false }
            let words = ([previous.url, previous.description, link.url, link.description] + more).filter { !$0.isEmpty }
            throw refused(
                link, place,
                "Quote a link with its description: \"\(shown(words.joined(separator: " ")))\". To send it anyway: --raw."
            )
        }
    }

    private func refused(_ link: LinkInput, _ place: String?, _ hint: String) -> HexlistError {
        let place = place.map { TerminalText.clean($0) + ": " } ?? ""
        return HexlistError(.badRequest, "\(place)`\(shown(link.url))` is not a link (no https://).", hint: hint)
    }

    private func shown(_ text: String) -> String { TerminalText.clean(text, columns: 60) }
}
