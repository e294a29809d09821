internal import HexlistJSON
internal import HexlistModel

/// A search whose texts are split into words by the tokenizer. It creates the FTS5 query for hexes, and has the conditions that `LinkMatcher`
/// applies to single links. The user's input is converted to words and keys, and is never inserted into a query verbatim.
struct SearchQuery {
    /// Conditions of a search. At least one must be true or, if the clause is excluded, none.
    struct Clause {
        var conditions: [Condition]
        var isExcluded: Bool
    }

    enum Condition {
        /// - Parameters:
        ///   - senders: rows of the peers whose name or alias has the words.
        ///   - address: the `NormalizedLinkAddress` of a text that is an address.
        case words(WordSequence, senders: [Int64], address: [UInt8]?)
        case host([UInt8])
        case color([UInt8])
        case service([UInt8])
        case tag([UInt8])
        /// The row id of the proven sender; -1, which matches no hex, if the peer has no record.
        case sender(Int64)
        /// A link that is marked as dead.
        case dead
    }

    let words: SearchWords
    let clauses: [Clause]
    private let sender: Int64?
    private let location: HexLocation?

    private static let columns = "{about sender link}"

    init(_ clauses: [Clause], words: SearchWords, sender: Int64?, location: HexLocation?) {
        self.clauses = clauses
        self.words = words
        self.sender = sender
        self.location = location
    }

    // MARK: - The index

    /// The FTS5 query for hexes for which the whole search is true.
    var expression: String { query { _ in true } }

    /// The FTS5 query for hexes that may have matching links. Of the excluded conditions it contains only those about the whole hex,
    /// because an excluded word may occur only in other links of the hex.
    var linkExpression: String { query(excluding: \.isOfHex) }

    private func query(excluding isUsed: (Condition) -> Bool) -> String {
        var required = clauses.filter { !$0.isExcluded }.map { $0.conditions.map(Self.condition).joined(separator: " OR ") }
        if let sender { required.append(Self.key(.peer, Array(String(sender).utf8))) }
        if let location {
            required.append(Self.place(location))
        } else if required.isEmpty {
            required.append("\(Self.place(.inbox)) OR \(Self.place(.mine))")
        }
        var excluded = clauses.filter(\.isExcluded).flatMap(\.conditions).filter(isUsed).map(Self.condition)
        if location == nil { excluded.append(Self.place(.held)) }
        let all = required.map { "(\($0))" }.joined(separator: " AND ")
        return excluded.isEmpty ? all : "(\(all)) NOT (\(excluded.map { "(\($0))" }.joined(separator: " OR ")))"
    }

    private static func condition(_ condition: Condition) -> String {
        switch condition {
        case .words(let sequence, let senders, let address):
            let keys =
                senders.map { key(.peer, Array(String($0).utf8)) } + (address.map { [SearchKey.condition(SearchKey.address($0))] } ?? [])
            return (["\(columns) : \(sequence.phrase)"] + keys).joined(separator: " OR ")
        case .host(let host): return key(.host, host)
        case .color(let color): return key(.color, color)
        case .service(let service): return key(.service, service)
        case .tag(let tag): return key(.tag, tag)
        case .sender(let row): return key(.peer, Array(String(row).utf8))
        case .dead: return key(.dead, [])
        }
    }

    private static func key(_ kind: SearchKey.Kind, _ text: [UInt8]) -> String { SearchKey.condition(SearchKey.key(kind, text)) }
    private static func place(_ location: HexLocation) -> String { key(.place, Array(location.rawValue.utf8)) }

    /// FTS5 expressions, and the number by which each raises the score of a matching hex in `best`.
    var scores: [(String, Int)] {
        var scores: [(String, Int)] = []
        for (sequence, senders) in wanted {
            let keys = senders.map { Self.key(.peer, Array(String($0).utf8)) }
            scores.append(("about : \(sequence.phrase)", 4))
            scores.append(("link : \(sequence.phrase)", 1))
            scores.append(((["sender : \(sequence.phrase)"] + keys).joined(separator: " OR "), 2))
        }
        if wanted.count > 1 {
            let together = wanted.prefix(2).map { $0.sequence.phrase.replacing(" *", with: "") }.joined(separator: " + ")
            scores.append(("\(Self.columns) : (\(together))", 6))
        }
        return scores
    }

    /// The words of all clauses that are not excluded.
    private var wanted: [(sequence: WordSequence, senders: [Int64])] {
        clauses.filter { !$0.isExcluded }.flatMap(\.conditions).compactMap { condition in
            guard case .words(let sequence, let senders, _) = condition else { return nil }
            return (sequence, senders)
        }
    }

    // MARK: - The excerpt of a match

    /// Returns an excerpt of the text of a hex that has the most words of the query; of several, the first.
    func match(in content: HexContent) -> SearchExcerpt? {
        let about = content.annotations(content.extra)
        var texts = [SearchedText(.description, nil, content.withBytes(of: content.hexDescription) { Array($0) })]
        texts += [SearchedText(.note, nil, about.note), SearchedText(.tags, nil, about.tags.joined(separator: ", "))]
        let links = content.links.enumerated()
        texts += links.map { SearchedText(.linkDescription, $0, content.withBytes(of: $1.linkDescription) { Array($0) }) }
        texts += links.map { SearchedText(.url, $0, content.withBytes(of: $1.url) { Array($0) }) }
        for (position, link) in links where !link.extra.isEmpty {
            let annotations = content.annotations(link.extra)
            texts.append(SearchedText(.note, position, annotations.note))
            texts.append(SearchedText(.tags, position, annotations.tags.joined(separator: ", ")))
        }
        texts.append(SearchedText(.sender, nil, content.withBytes(of: content.senderName) { Array($0) }))
        return match(in: texts)
    }

    /// Returns an excerpt of the text that has the most words of the query, or else of a URL with a wanted host.
    func match(in texts: [SearchedText]) -> SearchExcerpt? {
        let sequences = wanted.map(\.sequence)
        var best: (count: Int, match: SearchExcerpt)?
        for text in texts where !text.bytes.isEmpty && best?.count ?? 0 < sequences.count {
            let words = words.of(text.bytes)
            let ranges = sequences.compactMap { $0.range(in: words) }
            guard let first = ranges.min(by: { $0.lowerBound < $1.lowerBound }), ranges.count > best?.count ?? 0 else { continue }
            best = (ranges.count, SearchExcerpt(text.field, text.link, text.bytes, first))
        }
        if let best { return best.match }
        for clause in clauses where !clause.isExcluded {
            for case .host(let host) in clause.conditions {
                guard let sequence = try? WordSequence(String(decoding: host, as: UTF8.self), isPrefix: false, words) else { continue }
                for text in texts where text.field == .url {
                    if let range = sequence.range(in: words.of(text.bytes)) { return SearchExcerpt(.url, text.link, text.bytes, range) }
                }
            }
        }
        return nil
    }
}

/// A text in which `SearchQuery.match` looks for words.
struct SearchedText {
    var field: SearchExcerpt.Field
    /// The position of the link that has the text; `nil` for a text of the hex.
    var link: Int?
    var bytes: [UInt8]

    init(_ field: SearchExcerpt.Field, _ link: Int?, _ bytes: [UInt8]) {
        self.field = field
        self.link = link
        self.bytes = bytes
    }

    init(_ field: SearchExcerpt.Field, _ link: Int?, _ text: String) { self.init(field, link, Array(text.utf8)) }
}

extension SearchQuery.Condition {
    /// Whether the condition is about the hex as a whole, not about its texts or links.
    var isOfHex: Bool {
        switch self {
        case .color, .sender: true
        case .words, .host, .service, .tag, .dead: false
        }
    }
}

extension SearchKey {
    /// Returns the FTS5 condition for hexes that have a key.
    static func condition(_ key: [UInt8]) -> String { "key : \"\(String(decoding: key.dropLast(), as: UTF8.self))\"" }
}

extension SearchExcerpt {
    /// Maximum bytes of an excerpt before the match, after it, and of the match itself.
    private static let (bytesBefore, bytesAfter, bytesFound) = (60, 120, 200)

    init(_ field: Field, _ link: Int?, _ text: [UInt8], _ range: Range<Int>) {
        self.field = field
        self.link = link
        let range = range.clamped(to: 0..<text.count)
        let start = Self.boundary(in: text, at: range.lowerBound - Self.bytesBefore)
        let foundEnd = Self.boundary(in: text, at: min(range.upperBound, range.lowerBound + Self.bytesFound))
        let end = Self.boundary(in: text, at: min(text.count, foundEnd + Self.bytesAfter))
        before = (start > 0 ? "…" : "") + String(decoding: text[start..<range.lowerBound], as: UTF8.self)
        found = String(decoding: text[range.lowerBound..<foundEnd], as: UTF8.self)
        after = String(decoding: text[foundEnd..<end], as: UTF8.self) + (end < text.count ? "…" : "")
    }

    /// Returns the offset of the first byte of the UTF-8 character at an offset.
    private static func boundary(in text: [UInt8], at offset: Int) -> Int {
        var offset = max(0, offset)
        while offset > 0, offset < text.count, text[offset] & 0xC0 == 0x80 { offset -= 1 }
        return offset
    }
}
