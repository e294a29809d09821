import HexlistModel

/// Validates typed links before they are sent. Receivers accept any text as a link, so a typo would otherwise be delivered.
enum TypedLinkCheck {
    /// Accept only links with a scheme.
    case scheme
    /// Accept also bare host names, and add `https://` to them.
    case guess
    /// Accept any text.
    case raw

    /// Checks a link.
    /// - Parameters:
    ///   - source: the file and line of the link, for the error message; `nil` for an argument.
    ///   - previous: the argument before `link`. If quotes are missing, `link` may be a word of the description of `previous`.
    ///   - following: the arguments after `link`, which may be more words of that description.
    /// - Returns: the link with its service. With `guess`, a bare host is preceded by `https://`.
    /// - Throws: `HexlistError` with a suggestion if the text has no scheme.
    func checked(
        _ link: LinkInput, from source: String? = nil, after previous: LinkInput? = nil, before following: ArraySlice<String> = []
    ) throws(HexlistError) -> LinkInput {
        let form = LinkTextKind(link.url)
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
            throw refused(link, source, "Use https://\(shown(link.url)), or --guess to add https://.")
        case (_, .other):
            guard let previous, source == nil else {
                throw refused(link, source, "A link begins like https://. To send it anyway: --raw.")
            }
            let more = following.prefix { argument in LinkInput(argument).map { LinkTextKind($0.url) == .other } ?? false }
            let words = ([previous.url, previous.description, link.url, link.description] + more).filter { !$0.isEmpty }
            throw refused(
                link, source,
                "Quote a link with its description: \"\(shown(words.joined(separator: " ")))\". To send it anyway: --raw."
            )
        }
    }

    private func refused(_ link: LinkInput, _ source: String?, _ hint: String) -> HexlistError {
        let source = source.map { TerminalText.clean($0) + ": " } ?? ""
        return HexlistError(.badRequest, "\(source)`\(shown(link.url))` is not a link (no https://).", hint: hint)
    }

    private func shown(_ text: String) -> String { TerminalText.clean(text, columns: 60) }
}
