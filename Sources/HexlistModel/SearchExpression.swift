/// A parsed search, such as `words "a phrase" pref* -without one OR other host:example.org tag:db is:unread`: clauses that must all be
/// true.
public struct SearchExpression: Equatable, Sendable {
    /// A clause of a search: at least one of its terms must be true. An excluded clause has a single term, which must be false.
    public struct Clause: Equatable, Sendable {
        public var terms: [SearchTerm]
        public var isExcluded: Bool

        public init(_ terms: [SearchTerm], isExcluded: Bool = false) {
            self.terms = terms
            self.isExcluded = isExcluded
        }
    }

    public var clauses: [Clause]
    /// Whether hexes must be unread (`is:unread`) or read (`is:read`); `nil` for no condition.
    public var unread: Bool?

    public init(_ clauses: [Clause], unread: Bool? = nil) {
        self.clauses = clauses
        self.unread = unread
    }

    /// All terms, also those of excluded clauses.
    public var terms: [SearchTerm] { clauses.flatMap(\.terms) }

    /// Maximum bytes of a search, and maximum number of terms.
    public static let bytes = 1_000
    public static let count = 32

    /// Parses a search. `OR` in capitals joins the terms on both sides, and a `-` directly before a term excludes it. A word with a colon
    /// is a filter only if it begins with the name of one, such as `host:`; otherwise it is searched as text.
    /// - Throws: `.badRequest` if the search is empty or too long, or has an invalid filter.
    public init(parsing text: String) throws(HexlistError) {
        guard text.utf8.count <= Self.bytes else {
            throw HexlistError(.badRequest, "The text to search for is longer than \(Self.bytes) bytes.")
        }
        clauses = []
        var rest = text.unicodeScalars[...]
        var joinsNext = false
        var count = 0
        while let first = rest.first {
            guard !first.properties.isWhitespace else {
                rest.removeFirst()
                continue
            }
            if try Self.takeOR(&rest, after: clauses.last) {
                joinsNext = true
                continue
            }
            count += 1
            let isExcluded = first == "-" && rest.dropFirst().first.map { !$0.properties.isWhitespace && $0 != "-" } ?? false
            if isExcluded { rest.removeFirst() }
            let parsed = try SearchTerm.parse(&rest)
            guard !joinsNext || !isExcluded else { throw Self.notJoined("An excluded word") }
            switch parsed {
            case .unread(let value):
                guard !joinsNext, !Self.isOR(rest) else { throw Self.notJoined("`is:unread`") }
                unread = value != isExcluded
            case .term(let term):
                if joinsNext, let last = clauses.indices.last {
                    clauses[last].terms.append(term)
                } else {
                    clauses.append(Clause([term], isExcluded: isExcluded))
                }
            }
            joinsNext = false
        }
        guard !clauses.isEmpty || unread != nil else {
            throw HexlistError(.badRequest, "There is nothing to search for.", hint: "Name a word.")
        }
        guard count <= Self.count else {
            throw HexlistError(.badRequest, "The search has \(count) conditions; at most \(Self.count) are allowed.")
        }
    }

    private static func notJoined(_ what: String) -> HexlistError {
        HexlistError(
            .badRequest, "\(what) cannot be combined with OR.",
            hint: "OR joins words, phrases and filters; it does not join excluded words or `is:`.")
    }

    /// Removes a leading `OR` if it follows a clause and precedes another term. Any other `OR` is a word.
    /// - Returns: whether an `OR` was removed.
    /// - Throws: `.badRequest` if the clause is excluded.
    private static func takeOR(_ rest: inout Substring.UnicodeScalarView, after clause: Clause?) throws(HexlistError) -> Bool {
        guard let clause, isOR(rest) else { return false }
        guard !clause.isExcluded else { throw notJoined("An excluded word") }
        rest = rest.dropFirst(2)
        return true
    }

    /// Whether the text begins with the word `OR` and another word follows.
    private static func isOR(_ text: Substring.UnicodeScalarView) -> Bool {
        let text = text.drop { $0.properties.isWhitespace }
        guard text.starts(with: "OR".unicodeScalars), let next = text.dropFirst(2).first, next.properties.isWhitespace else { return false }
        return text.dropFirst(2).contains { !$0.properties.isWhitespace }
    }
}
