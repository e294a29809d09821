/// One condition of a search. A search finds the hexes for which all conditions are true.
public enum SearchTerm: Equatable, Sendable {
    /// A phrase that occurs in a text of the hex. If `isPrefix` is true, its last word may be the beginning of a longer word.
    case words(String, isPrefix: Bool)
    /// A link to this host or to a subdomain. The host is in ASCII, as browsers interpret it.
    case host(String)
    /// The colour of the hex, as `#RRGGBB`.
    case color(String)
    case service(String)

    /// Maximum bytes of a search, and maximum number of conditions.
    public static let bytes = 1_000
    public static let count = 32

    /// Parses a search such as `words "a phrase" pref* host:example.org color:teal service:Dropbox`. Other words with a colon are searched
    /// as text.
    /// - Throws: `.badRequest` if the search is empty or too long, or has an invalid host or colour.
    public static func parse(_ text: String) throws(HexlistError) -> [SearchTerm] {
        guard text.utf8.count <= bytes else { throw HexlistError(.badRequest, "The text to search for is longer than \(bytes) bytes.") }
        var terms: [SearchTerm] = []
        var rest = text.unicodeScalars[...]
        while let first = rest.first {
            guard !first.properties.isWhitespace else {
                rest.removeFirst()
                continue
            }
            terms.append(try term(&rest))
        }
        guard !terms.isEmpty else { throw HexlistError(.badRequest, "There is nothing to search for.", hint: "Name a word.") }
        guard terms.count <= count else { throw HexlistError(.badRequest, "\(terms.count) conditions are too many; \(count) fit.") }
        return terms
    }

    private static func term(_ rest: inout Substring.UnicodeScalarView) throws(HexlistError) -> SearchTerm {
        let name = String(rest.prefix { $0.isASCII && $0.properties.isAlphabetic }).lowercased()
        let isNamed = ["host", "color", "colour", "service"].contains(name) && rest.dropFirst(name.utf8.count).first == ":"
        if isNamed { rest = rest.dropFirst(name.utf8.count + 1) }
        let (value, isPrefix) = value(&rest)
        guard isNamed else { return .words(value, isPrefix: isPrefix) }
        guard !value.isEmpty else {
            throw HexlistError(
                .badRequest, "`\(name):` is followed by nothing.", hint: "As in `host:example.org`, `color:teal`, `service:Dropbox`.")
        }
        switch name {
        case "host": return .host(try host(value))
        case "service": return .service(value)
        default: return .color(try color(value))
        }
    }

    /// Parses a word or a quoted phrase. If an asterisk directly follows, the last word is a prefix.
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
