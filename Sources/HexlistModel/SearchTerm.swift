/// One condition of a search (`SearchExpression`).
public enum SearchTerm: Equatable, Sendable {
    /// A phrase that occurs in a text of the hex. If `isPrefix` is true, its last word may be the beginning of a longer word.
    case words(String, isPrefix: Bool)
    /// A link to this host or to a subdomain. The host is in ASCII, as browsers interpret it.
    case host(String)
    /// The colour of the hex, as `#RRGGBB`.
    case color(String)
    case service(String)
    /// A tag of a link, or of the hex itself. Compared as a whole, ignoring case.
    case tag(String)
    /// The sender as the user typed it: an alias, name or UUID. The caller finds the peer before it searches the store.
    case from(String)
    /// A link of My Hexlist that is marked as dead.
    case dead

    /// The result of parsing one term: a term, or a condition for the whole search.
    enum Parsed {
        case term(SearchTerm)
        case unread(Bool)
    }

    private static let filters = ["host", "color", "colour", "service", "tag", "from"]

    /// Parses the first term of `rest` and removes it. `rest` must not begin with white space.
    static func parse(_ rest: inout Substring.UnicodeScalarView) throws(HexlistError) -> Parsed {
        let name = String(rest.prefix { $0.isASCII && $0.properties.isAlphabetic }).lowercased()
        if name == "is" {
            let word = String(rest.prefix { !$0.properties.isWhitespace }).lowercased()
            if word == "is:unread" || word == "is:read" {
                rest = rest.dropFirst(word.unicodeScalars.count)
                return .unread(word == "is:unread")
            }
            if word == "is:dead" {
                rest = rest.dropFirst(word.unicodeScalars.count)
                return .term(.dead)
            }
        }
        let isNamed = filters.contains(name) && rest.dropFirst(name.utf8.count).first == ":"
        if isNamed { rest = rest.dropFirst(name.utf8.count + 1) }
        let (value, isPrefix) = value(&rest)
        guard isNamed else { return .term(.words(value, isPrefix: isPrefix)) }
        guard !value.isEmpty else {
            throw HexlistError(
                .badRequest, "`\(name):` is followed by nothing.",
                hint: "As in `host:example.org`, `tag:recipes`, `from:tom`, `color:teal`, `service:Dropbox`.")
        }
        switch name {
        case "host": return .term(.host(try host(value)))
        case "service": return .term(.service(value))
        case "tag": return .term(.tag(value))
        case "from": return .term(.from(value))
        default: return .term(.color(try color(value)))
        }
    }

    /// Parses a word or a quoted phrase, and removes it from `rest`. If an asterisk directly follows, the last word is a prefix.
    private static func value(_ rest: inout Substring.UnicodeScalarView) -> (String, isPrefix: Bool) {
        guard rest.first == "\"" else {
            var word = rest.prefix { !$0.properties.isWhitespace }
            rest = rest[word.endIndex...]
            guard word.last == "*" else { return (String(word), false) }
            word.removeLast()
            return (String(word), true)
        }
        rest.removeFirst()
        let phrase = rest.prefix { $0 != "\"" }
        rest = rest[phrase.endIndex...].dropFirst()
        guard rest.first == "*" else { return (String(phrase), false) }
        rest.removeFirst()
        return (String(phrase), true)
    }

    /// Parses a colour: a name, or hexadecimal digits with or without `#`.
    private static func color(_ text: String) throws(HexlistError) -> String {
        let isDigits = text.utf8.count == 6 && Hexadecimal.decode(text) != nil
        do {
            return try ColorInput.parse(isDigits ? "#" + text : text)
        } catch {
            throw HexlistError(.badRequest, error.message, hint: "`color:teal` and `color:#008080` are the same.")
        }
    }

    private static func host(_ text: String) throws(HexlistError) -> String {
        do throws(LinkFault) {
            guard let host = try LinkTarget("https://\(text)", schemes: ["https"]).host else { throw .noHost }
            return host
        } catch {
            throw HexlistError(
                .badRequest, "`\(TerminalText.clean(text, columns: 60))` is no host to search for.",
                hint: "`host:example.org` finds links to example.org and to the hosts below it.")
        }
    }
}
