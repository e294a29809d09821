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
        var remaining = PageCapacity(items: limit)
        var ids: [Int64] = []
        var next: Int64?
        var last: Int64?
        let statement = try matches(query.expression, before: after ?? .max)
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
        let statement = try matches(query.expression, before: .max)
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
        var remaining = PageCapacity(items: pageLimit(limit))
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
        var remaining = PageCapacity(items: HexSet.pageLimit)
        var page = Page<Int64>(items: [], next: nil)
        var last: Int64?
        let statement = try matches(query.expression, before: after ?? .max)
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

    /// Prepares the query for the hexes in the index that match an expression and have ids below `before`, highest id first.
    /// - Parameter expression: a query in the language of FTS5.
    func matches(_ expression: String, before: Int64) throws -> SQLStatement {
        let statement = try SQLStatement(
            """
            SELECT hex.id, hex.parent, hex.unread, hex.receivedAt, hex.byteCount FROM search CROSS JOIN hex ON hex.id = search.rowid
            WHERE search MATCH ? AND search.rowid < ? ORDER BY search.rowid DESC
            """, on: db)
        try statement.bind([expression, before])
        return statement
    }

    func isWanted(_ row: SQLStatement, _ filter: SearchFilter) throws -> Bool {
        if let unread = filter.unread {
            // An inner hex counts as unread if its topmost hex is unread.
            let isUnread = try row.bool(2) || !row.isNull(1) && summary(ofTop: row.int64(0))?.unread ?? false
            guard isUnread == unread else { return false }
        }
        let receivedAt = row.int64(3)
        return receivedAt >= filter.since ?? .min && receivedAt < filter.until ?? .max
    }

    private func hits(_ ids: [Int64], _ query: SearchQuery) throws -> [SearchHit] {
        try hexes(ids).map { detail in
            let top = try detail.summary.parent == nil ? nil : summary(ofTop: detail.summary.id)
            return SearchHit(summary: detail.summary, match: query.match(in: detail.content), top: top)
        }
    }

    func query(_ filter: SearchFilter) throws -> SearchQuery {
        let words = try SearchWords(on: db)
        let named = filter.clauses.contains { $0.terms.contains(where: \.isWords) } ? try peerNames(words) : []
        let clauses = try filter.clauses.map { clause in
            let conditions = try clause.terms.map { term -> SearchQuery.Condition in
                switch term {
                case .words(let text, let isPrefix):
                    let sequence = try WordSequence(text, isPrefix: isPrefix, words)
                    let senders = named.filter { $0.names.contains { sequence.range(in: $0) != nil } }.prefix(Self.maxPeers).map(\.row)
                    return .words(sequence, senders: senders, address: text.contains("://") ? NormalizedLinkAddress.of(text) : nil)
                case .host(let host): return .host(Array(host.utf8))
                case .color(let color): return .color(Array(color.utf8))
                case .service(let service): return .service(Array(service.utf8))
                case .tag(let tag): return .tag(SearchKey.folded(tag: tag))
                case .dead: return .dead
                case .from(let name): return .sender(try filter.senders[name].flatMap { try peerRow($0)?.id } ?? -1)
                }
            }
            return SearchQuery.Clause(conditions: conditions, isExcluded: clause.isExcluded)
        }
        let sender = try filter.peer.map { try peerRow($0)?.id ?? -1 }
        return SearchQuery(clauses, words: words, sender: sender, location: filter.location)
    }

    /// Returns the names and aliases, as words, of the peers that have hexes in the store; most hexes first.
    private func peerNames(_ words: SearchWords) throws -> [(row: Int64, names: [[SearchWords.Word]])] {
        try all("SELECT id, name, alias FROM peer WHERE hexes > 0 ORDER BY hexes DESC LIMIT 10000") { row in
            (row.int64(0), [words.of(row.bytes(1)), words.of(row.bytes(2))])
        }
    }
}

extension SearchTerm {
    fileprivate var isWords: Bool {
        if case .words = self { true } else { false }
    }
}
