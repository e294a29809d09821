internal import GRDB
internal import HexlistModel

extension StoreReader {
    /// Maximum number of matches in the index that are examined for one page. Bounds the cost of a page even if few matches satisfy the
    /// conditions that are not in the index.
    private static let maxExamined = 10_000
    /// Maximum number of peers that one search term can match by name or alias.
    private static let maxPeers = 200

    /// Returns a page of the hexes that match a filter, highest id first.
    ///
    /// - Parameters:
    ///   - limit: maximum number of hits, up to 10 000. Fewer are returned if their hexes exceed 4 MiB, or if many matches in the index do
    ///     not satisfy the other conditions.
    ///   - after: the `next` of the previous page.
    /// - Throws: `.badRequest` for a term without words.
    public func search(_ filter: SearchFilter, limit: Int = 20, after: Int64? = nil) throws -> SearchPage {
        let query = try query(filter)
        let limit = pageLimit(limit)
        var remaining = PageLimit(items: limit)
        var ids: [Int64] = []
        var next: Int64?
        var last: Int64?
        let statement = try matches(query, before: after ?? .max)
        defer { statement.reset() }
        var examined = 0
        while try statement.step() {
            let isWanted = try isWanted(statement, filter)
            guard examined < Self.maxExamined, !isWanted || remaining.take(statement.int(4)) else {
                next = last
                break
            }
            last = statement.int64(0)
            examined += 1
            if isWanted { ids.append(statement.int64(0)) }
        }
        return SearchPage(hits: try hits(ids, query), next: next, behind: try StoreCounters(on: db).unindexed)
    }

    /// Returns the hits with the highest scores among the newest 10 000 matches. A hex scores for words in the description, adjacent words,
    /// words in the sender's name, and words in links. Hexes with equal scores are newest first.
    public func best(_ filter: SearchFilter, limit: Int = 20) throws -> SearchPage {
        let query = try query(filter)
        var scores: [Int64: Int] = [:]
        var sizes: [Int64: Int] = [:]
        let statement = try matches(query, before: .max)
        defer { statement.reset() }
        var (examined, oldest) = (0, Int64.max)
        while examined < Self.maxExamined, try statement.step() {
            examined += 1
            guard try isWanted(statement, filter) else { continue }
            oldest = statement.int64(0)
            scores[oldest] = 0
            sizes[oldest] = statement.int(4)
        }
        for (expression, score) in query.scores {
            // The query is restricted to the matches, because a frequent word may occur in many more hexes.
            let found = try all(
                "SELECT rowid FROM search WHERE search MATCH ? AND rowid >= ?", "(\(expression)) AND (\(query.expression))", oldest
            ) { $0.int64(0) }
            for id in found { scores[id]? += score }
        }
        var remaining = PageLimit(items: pageLimit(limit))
        let ids = scores.sorted { ($0.value, $0.key) > ($1.value, $1.key) }.map(\.key).prefix { remaining.take(sizes[$0] ?? 0) }
        return SearchPage(hits: try hits(Array(ids), query), next: nil, behind: try StoreCounters(on: db).unindexed)
    }

    /// Returns a page of the ids of the hexes that match a filter, highest first. An inner hex is omitted if a hex that contains it matches
    /// too.
    ///
    /// - Parameter after: the `next` of the previous page.
    /// - Throws: `.badRequest` for a term without words.
    public func searchedIDs(_ filter: SearchFilter, after: Int64? = nil) throws -> Page<Int64> {
        let query = try query(filter)
        var remaining = PageLimit(items: HexGroup.pageLimit)
        var page = Page<Int64>(items: [], next: nil)
        var last: Int64?
        let statement = try matches(query, before: after ?? .max)
        defer { statement.reset() }
        while try statement.step() {
            guard remaining.take(statement.int(4)) else {
                page.next = last
                break
            }
            let id = statement.int64(0)
            last = id
            let isInside = try !statement.isNull(1) && hasMatch(above: id, query)
            if try !isInside && isWanted(statement, filter) { page.items.append(id) }
        }
        return page
    }

    private func hasMatch(above id: Int64, _ query: SearchQuery) throws -> Bool {
        var next = id
        for _ in 1..<ProtocolLimits.levels {
            guard let parent = try first("SELECT parent FROM hex WHERE id = ?", next, read: { $0.optionalInt64(0) }) ?? nil else { break }
            let matches = try first("SELECT 1 FROM search WHERE search MATCH ? AND rowid = ?", query.expression, parent) { _ in true }
            if matches ?? false { return true }
            next = parent
        }
        return false
    }

    private func matches(_ query: SearchQuery, before: Int64) throws -> SQLStatement {
        let statement = try SQLStatement(
            """
            SELECT hex.id, hex.parent, hex.unread, hex.receivedAt, hex.byteCount FROM search CROSS JOIN hex ON hex.id = search.rowid
            WHERE search MATCH ? AND search.rowid < ? ORDER BY search.rowid DESC
            """, on: db)
        try statement.bind([query.expression, before])
        return statement
    }

    private func isWanted(_ row: SQLStatement, _ filter: SearchFilter) throws -> Bool {
        // An inner hex counts as unread if its topmost hex is unread.
        if filter.unread, !row.bool(2), try row.isNull(1) || !(summary(ofTop: row.int64(0))?.unread ?? false) { return false }
        let receivedAt = row.int64(3)
        return receivedAt >= filter.since ?? .min && receivedAt < filter.until ?? .max
    }

    private func hits(_ ids: [Int64], _ query: SearchQuery) throws -> [SearchHit] {
        try hexes(ids).map { detail in
            let top = try detail.summary.parent == nil ? nil : summary(ofTop: detail.summary.id)
            return SearchHit(summary: detail.summary, match: query.match(in: detail.content), top: top)
        }
    }

    private func query(_ filter: SearchFilter) throws -> SearchQuery {
        let words = try SearchWords(on: db)
        let sender = try filter.peer.map { try peerRow($0)?.id ?? -1 }
        var query = SearchQuery(words: words, sender: sender, location: filter.location)
        let sequences = try filter.terms.map { try SearchQuery.sequence($0, words) }
        let named = sequences.contains { $0 != nil } ? try peerNames(words) : []
        for (term, sequence) in zip(filter.terms, sequences) {
            if let sequence {
                let senders = named.filter { $0.names.contains { sequence.range(in: $0) != nil } }.prefix(Self.maxPeers).map(\.row)
                query.add(sequence, senders: senders)
            } else {
                try query.add(term)
            }
        }
        return query
    }

    /// Returns the names and aliases, as words, of the peers that have hexes in the store; most hexes first.
    private func peerNames(_ words: SearchWords) throws -> [(row: Int64, names: [[SearchWords.Word]])] {
        try all("SELECT id, name, alias FROM peer WHERE hexes > 0 ORDER BY hexes DESC LIMIT 10000") { row in
            (row.int64(0), [words.of(row.bytes(1)), words.of(row.bytes(2))])
        }
    }
}

/// A query in the language of FTS5. The user's input is converted to words of the tokenizer and to keys, and is never inserted verbatim.
private struct SearchQuery {
    private let words: SearchWords
    private var conditions: [String] = []
    private var sequences: [WordSequence] = []
    /// The words of the hosts in the query, to find the matching link for `SearchMatch`.
    private var hosts: [WordSequence] = []
    /// FTS5 expressions, and the number by which each raises the score of a matching hex in `best`.
    private(set) var scores: [(String, Int)] = []

    /// Whether held hexes are excluded.
    private let withoutHeld: Bool

    private static let columns = "{about sender link}"

    init(words: SearchWords, sender: Int64?, location: HexLocation?) {
        self.words = words
        if let sender { conditions.append(Self.key(.peer, String(sender))) }
        if let location { conditions.append(Self.key(.place, location.rawValue)) }
        withoutHeld = location == nil
    }

    var expression: String {
        let all = conditions.map { "(\($0))" }.joined(separator: " AND ")
        return withoutHeld ? "(\(all)) NOT (\(Self.key(.place, HexLocation.held.rawValue)))" : all
    }

    /// - Returns: the words of a term; `nil` if the term is a host, colour or service.
    static func sequence(_ term: SearchTerm, _ words: SearchWords) throws -> WordSequence? {
        guard case .words(let text, let isPrefix) = term else { return nil }
        return try WordSequence(text, isPrefix: isPrefix, words)
    }

    mutating func add(_ sequence: WordSequence, senders: [Int64]) {
        let keys = senders.map { Self.key(.peer, String($0)) }
        conditions.append(([("\(Self.columns) : \(sequence.phrase)")] + keys).joined(separator: " OR "))
        sequences.append(sequence)
        scores.append(("about : \(sequence.phrase)", 4))
        scores.append(("link : \(sequence.phrase)", 1))
        scores.append((([("sender : \(sequence.phrase)")] + keys).joined(separator: " OR "), 2))
        guard sequences.count == 2 else { return }
        let together = sequences.map { $0.phrase.replacing(" *", with: "") }.joined(separator: " + ")
        scores.append(("\(Self.columns) : (\(together))", 6))
    }

    mutating func add(_ term: SearchTerm) throws {
        switch term {
        case .words: break
        case .host(let host):
            conditions.append(Self.key(.host, host))
            hosts.append(try WordSequence(host, isPrefix: false, words))
        case .color(let color): conditions.append(Self.key(.color, color))
        case .service(let service): conditions.append(Self.key(.service, service))
        }
    }

    private static func key(_ kind: SearchKey.Kind, _ text: String) -> String { SearchKey.condition(SearchKey.key(kind, Array(text.utf8))) }

    // MARK: - The shown match

    /// Returns an excerpt of the text of a hex that has the most terms of the query; of several, the first.
    func match(in content: HexContent) -> SearchMatch? {
        var best: (count: Int, match: SearchMatch)?
        func look(_ sequences: [WordSequence], _ field: SearchMatch.Field, _ link: Int?, _ slice: TextSlice) {
            guard (best?.count ?? 0) < sequences.count, !slice.isEmpty else { return }
            let text = content.withBytes(of: slice) { Array($0) }
            let ranges = ranges(of: sequences, in: text)
            guard let first = ranges.min(by: { $0.lowerBound < $1.lowerBound }), ranges.count > best?.count ?? 0 else { return }
            best = (ranges.count, SearchMatch(field, link, text, first))
        }
        if !sequences.isEmpty {
            look(sequences, .description, nil, content.hexDescription)
            for (position, link) in content.links.enumerated() { look(sequences, .linkDescription, position, link.linkDescription) }
            for (position, link) in content.links.enumerated() { look(sequences, .url, position, link.url) }
            look(sequences, .sender, nil, content.senderName)
        }
        for (position, link) in content.links.enumerated() where best == nil { look(hosts, .url, position, link.url) }
        return best?.match
    }

    private func ranges(of sequences: [WordSequence], in text: [UInt8]) -> [Range<Int>] {
        let words = words.of(text)
        return sequences.compactMap { $0.range(in: words) }
    }
}

extension SearchKey {
    /// Returns the FTS5 condition for hexes that have a key.
    static func condition(_ key: [UInt8]) -> String { "key : \"\(String(decoding: key.dropLast(), as: UTF8.self))\"" }
}

extension SearchMatch {
    /// Maximum bytes of an excerpt before the match, after it, and of the match itself.
    private static let (bytesBefore, bytesAfter, bytesFound) = (60, 120, 200)

    fileprivate init(_ field: Field, _ link: Int?, _ text: [UInt8], _ range: Range<Int>) {
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
