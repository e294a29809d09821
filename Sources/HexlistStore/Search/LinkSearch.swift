internal import GRDB
internal import HexlistJSON
internal import HexlistModel

extension StoreReader {
    /// Maximum number of hexes in the index that are examined for one page of links, and maximum numbers of their links and of bytes of
    /// their texts. They bound the cost of a page even if few links match.
    private static let (maxHexes, maxLinks, maxBytes) = (10_000, 50_000, 8 << 20)

    /// Returns a page of the links that match a search. The newest hex comes first, its links in their order.
    ///
    /// A link matches if each clause of the search is true for the link or for its hex. In addition, at least one clause must be true for
    /// the link itself, unless all clauses are only about hexes (colour and sender).
    ///
    /// - Parameters:
    ///   - limit: maximum number of links, up to 10 000. Fewer are returned if their texts exceed 4 MiB, or if many examined links do not
    ///     match.
    ///   - after: the `next` of the previous page.
    /// - Throws: `.badRequest` for a term without words.
    public func searchLinks(_ filter: SearchFilter, limit: Int = 20, after: Int64? = nil) throws -> LinkSearchPage {
        let query = try query(filter)
        var remaining = PageCapacity(items: pageLimit(limit))
        var page = LinkSearchPage(hits: [], next: nil, behind: try StoreCounters(on: db).unindexed)
        page.next = try matchingLinks(query, filter, after: after) { link, hex, _ in
            guard remaining.take(link.byteCount + hex.byteCount) else { return false }
            page.hits.append(hit(link, of: hex, query))
            return true
        }
        return page
    }

    /// Returns the links with the highest scores among the newest matches, within the limits of one page. A link scores for words in its
    /// description, its tags, its URL or note, and in the description of its hex. Links with equal scores are newest first.
    public func bestLinks(_ filter: SearchFilter, limit: Int = 20) throws -> LinkSearchPage {
        let query = try query(filter)
        var found: [(score: Int, link: SearchedLink)] = []
        var hexes: [Int64: SearchedHex] = [:]
        let limit = pageLimit(limit)
        _ = try matchingLinks(query, filter, after: nil) { link, hex, score in
            found.append((score, link))
            hexes[hex.id] = hex
            if found.count >= 2 * limit + 1_000 { found = Array(found.sorted(by: Self.isBetter).prefix(limit)) }
            return true
        }
        var remaining = PageCapacity(items: limit)
        var page = LinkSearchPage(hits: [], next: nil, behind: try StoreCounters(on: db).unindexed)
        for (_, link) in found.sorted(by: Self.isBetter) {
            guard let hex = hexes[link.cursor >> 13], remaining.take(link.byteCount + hex.byteCount) else { break }
            page.hits.append(hit(link, of: hex, query))
        }
        return page
    }

    private static func isBetter(_ one: (score: Int, link: SearchedLink), _ other: (score: Int, link: SearchedLink)) -> Bool {
        (one.score, one.link.cursor) > (other.score, other.link.cursor)
    }

    /// Calls `body` with each matching link, its hex and its score, until `body` returns `false` or the limits are reached.
    /// - Returns: the cursor after the last examined link; `nil` at the end.
    private func matchingLinks(
        _ query: SearchQuery, _ filter: SearchFilter, after: Int64?, _ body: (SearchedLink, SearchedHex, Int) throws -> Bool
    ) throws -> Int64? {
        var cursor = after
        // Read hexes have no unread links. An unread hex may have read links, so `is:read` does not skip hexes.
        var hexFilter = filter
        hexFilter.unread = filter.unread == true ? true : nil
        var (hexes, links, bytes) = (0, 0, 0)
        let statement = try matches(query.linkExpression, before: after.map { ($0 >> 13) + 1 } ?? .max)
        defer { statement.reset() }
        while try statement.step() {
            guard hexes < Self.maxHexes, links < Self.maxLinks, bytes < Self.maxBytes else { return cursor }
            hexes += 1
            let id = statement.int64(0)
            if try isWanted(statement, hexFilter), let hex = try searchedHex(id) {
                bytes += hex.byteCount
                let texts = LinkMatcher.HexConditionResults(hex, query)
                for link in try searchedLinks(of: id) where link.cursor < after ?? .max {
                    links += 1
                    bytes += link.byteCount
                    let isWanted = filter.unread == nil || filter.unread == (hex.top.unread && !link.isRead)
                    if isWanted, let score = LinkMatcher(query).score(link, texts) {
                        guard try body(link, hex, score) else { return cursor }
                    }
                    cursor = link.cursor
                }
            }
            cursor = id << 13
        }
        return nil
    }

    private func searchedLinks(of id: Int64) throws -> [SearchedLink] {
        try all(
            """
            SELECT id, link.url, description, service, extra, EXISTS (SELECT 1 FROM readLink WHERE readLink.id = link.id), status, since
            FROM link LEFT JOIN deadLink ON deadLink.hex = ?1 AND deadLink.url = link.url
            WHERE id BETWEEN ?1 << 13 AND (?1 << 13) + 8191 ORDER BY id
            """, id, read: SearchedLink.init)
    }

    private func searchedHex(_ id: Int64) throws -> SearchedHex? {
        guard let top = try summary(ofTop: id) else { return nil }
        var folders: [String] = []
        var next: Int64? = id
        var hex: SearchedHex?
        for _ in 0..<ProtocolLimits.levels {
            guard let current = next else { break }
            let row = try first("SELECT parent, peer, description, senderName, color, extra FROM hex WHERE id = ?", current) { row in
                (
                    parent: row.optionalInt64(0), peer: row.optionalInt64(1), description: row.bytes(2), sender: row.bytes(3),
                    color: row.bytes(4), extra: row.bytes(5)
                )
            }
            guard let row else { return nil }
            if hex == nil {
                hex = SearchedHex(
                    id: id, top: top, description: row.description, sender: row.sender, color: row.color,
                    annotations: Annotations(extra: row.extra))
            }
            hex?.peer = row.peer
            folders.append(String(decoding: row.description, as: UTF8.self))
            next = row.parent
        }
        hex?.folders = folders.reversed()
        return hex
    }

    private func hit(_ link: SearchedLink, of hex: SearchedHex, _ query: SearchQuery) -> LinkHit {
        let position = link.position
        let texts = [
            SearchedText(.linkDescription, position, link.description),
            SearchedText(.tags, position, link.annotations.tags.joined(separator: ", ")),
            SearchedText(.url, position, link.url), SearchedText(.note, position, link.annotations.note),
            SearchedText(.description, nil, hex.description), SearchedText(.sender, nil, hex.sender),
        ]
        return LinkHit(
            link: ListedLink(
                hex: hex.top, id: hex.id, position: position, url: link.url, description: link.description, service: link.service,
                annotations: link.annotations, dead: link.dead, unread: hex.top.unread && !link.isRead, number: link.cursor),
            folders: hex.folders, match: query.match(in: texts))
    }
}

/// A link of a hex that matches a search.
struct SearchedLink {
    var position: Int
    var url: [UInt8]
    var description: [UInt8]
    var service: [UInt8]
    var annotations: Annotations
    /// Whether the link was marked read individually. If `false`, it has the state of its topmost hex.
    var isRead: Bool
    var dead: DeadLink?
    var byteCount: Int
    /// The position of the link in the results, for `after`: higher for links of newer hexes, and for earlier links of a hex.
    var cursor: Int64

    /// Reads a row with the columns `id, url, description, service, extra`, the value of `isRead`, and the columns `status, since` of its
    /// mark as dead.
    init(_ row: SQLStatement) {
        let id = row.int64(0)
        position = Int(id & 8_191)
        url = row.bytes(1)
        description = row.bytes(2)
        service = row.bytes(3)
        annotations = Annotations(extra: row.bytes(4))
        isRead = row.bool(5)
        dead = row.isNull(6) ? nil : DeadLink(status: row.int(6), since: row.int64(7))
        byteCount = row.size(of: 1...4)
        cursor = id & ~8_191 | (8_191 - id & 8_191)
    }
}

/// A hex that matches a search, with data of the hexes that contain it.
struct SearchedHex {
    var id: Int64
    var top: HexSummary
    /// The row id of the proven sender of the topmost hex; `nil` if it has none.
    var peer: Int64?
    var description: [UInt8]
    var sender: [UInt8]
    var color: [UInt8]
    var annotations: Annotations
    /// The descriptions of the hexes that contain its links, the topmost first.
    var folders: [String] = []

    /// Bytes of the hex's texts and of the descriptions of the hexes that contain it.
    var byteCount: Int {
        let texts = folders + annotations.tags + [annotations.note, top.senderName]
        return texts.reduce(sender.count) { $0 + $1.utf8.count }
    }
}

/// Decides which links of the hexes that the index returned match a search, and scores them.
struct LinkMatcher {
    private let query: SearchQuery

    init(_ query: SearchQuery) { self.query = query }

    /// The results of all conditions for one hex: for each clause, whether each of its conditions is true for the hex, and therefore for
    /// all links of the hex.
    struct HexConditionResults {
        fileprivate var isTrue: [[Bool]]

        init(_ hex: SearchedHex, _ query: SearchQuery) {
            let texts = ([hex.description, hex.sender, Array(hex.annotations.note.utf8)] + hex.annotations.tags.map { Array($0.utf8) })
                .map(query.words.of)
            isTrue = query.clauses.map { clause in
                clause.conditions.map { condition in
                    switch condition {
                    case .words(let sequence, let senders, _):
                        hex.peer.map(senders.contains) ?? false || texts.contains { sequence.range(in: $0) != nil }
                    case .sender(let row): hex.peer == row
                    case .color(let color): hex.color.elementsEqual(color) { ASCII.lowercased($0) == ASCII.lowercased($1) }
                    case .tag(let tag): hex.annotations.tags.contains { SearchKey.folded(tag: $0) == tag }
                    case .host, .service, .dead: false
                    }
                }
            }
        }
    }

    /// Returns the score of a link; `nil` if it does not match.
    func score(_ link: SearchedLink, _ texts: HexConditionResults) -> Int? {
        var link = LinkWords(link, query.words)
        var score = 0
        var (needsOwn, hasOwn) = (false, false)
        for (clause, isTrueForHex) in zip(query.clauses, texts.isTrue) {
            var isTrue = false
            for (condition, isOfHex) in zip(clause.conditions, isTrueForHex) {
                let own = condition.isOfHex ? 0 : link.score(condition)
                guard own > 0 || isOfHex else { continue }
                isTrue = true
                guard !clause.isExcluded else { return nil }
                score += own + (isOfHex && !condition.isOfHex ? 1 : 0)
                hasOwn = hasOwn || own > 0
            }
            guard !clause.isExcluded else { continue }
            guard isTrue else { return nil }
            needsOwn = needsOwn || clause.conditions.contains { !$0.isOfHex }
        }
        return hasOwn || !needsOwn ? score : nil
    }
}

/// The texts of a link, whose words are computed when they are needed.
private struct LinkWords {
    private struct Text {
        var bytes: [UInt8]
        /// The number by which a match in this text raises the score of the link.
        var score: Int
        var isASCII: Bool
        var words: [SearchWords.Word]?

        init(_ bytes: [UInt8], score: Int) {
            self.bytes = bytes
            self.score = score
            isASCII = bytes.allSatisfy { $0 < 0x80 }
        }

        /// Whether the text may contain a word. This check is much faster than splitting the text into words. After `false`, splitting is
        /// not needed.
        func mayHave(_ word: [UInt8]) -> Bool {
            guard isASCII, let first = word.first else { return true }
            guard bytes.count >= word.count else { return false }
            for start in 0...(bytes.count - word.count) where ASCII.lowercased(bytes[start]) == first {
                if word.indices.allSatisfy({ ASCII.lowercased(bytes[start + $0]) == word[$0] }) { return true }
            }
            return false
        }
    }

    private let link: SearchedLink
    private let tokenizer: SearchWords
    private var texts: [Text]

    init(_ link: SearchedLink, _ tokenizer: SearchWords) {
        self.link = link
        self.tokenizer = tokenizer
        texts = [Text(link.description, score: 4)] + link.annotations.tags.map { Text(Array($0.utf8), score: 3) }
        texts += [Text(Array(link.annotations.note.utf8), score: 1), Text(link.url, score: 1)]
    }

    /// Returns the score of a condition; 0 if it is not true for the link.
    mutating func score(_ condition: SearchQuery.Condition) -> Int {
        switch condition {
        case .words(let sequence, _, let address):
            for index in texts.indices where has(sequence, index) { return texts[index].score }
            guard let address else { return 0 }
            return address == NormalizedLinkAddress.of(link.url) ? 1 : 0
        case .host(let host):
            guard let own = LinkTarget.hostForSearch(of: link.url) else { return 0 }
            return own == host || own.count > host.count && own.suffix(host.count + 1).elementsEqual([UInt8(ascii: ".")] + host) ? 1 : 0
        case .service(let service): return link.service.elementsEqual(service) { ASCII.lowercased($0) == ASCII.lowercased($1) } ? 1 : 0
        case .tag(let tag): return link.annotations.tags.contains { SearchKey.folded(tag: $0) == tag } ? 1 : 0
        case .dead: return link.dead == nil ? 0 : 1
        case .color, .sender: return 0
        }
    }

    private mutating func has(_ sequence: WordSequence, _ index: Int) -> Bool {
        guard let first = sequence.words.first, texts[index].mayHave(first) else { return false }
        if texts[index].words == nil { texts[index].words = tokenizer.of(texts[index].bytes) }
        return sequence.range(in: texts[index].words ?? []) != nil
    }
}
