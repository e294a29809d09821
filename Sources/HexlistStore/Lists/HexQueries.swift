internal import GRDB
public import HexlistModel

extension StoreReader {
    /// A table `wanted (hex, id, level)` with the hexes of a JSON array of ids (`hex`) and all inner hexes of each (`id`).
    private static let wantedTrees = """
        WITH RECURSIVE wanted (hex, id, level) AS (
            SELECT value, value, 1 FROM json_each(?)
            UNION ALL
            SELECT wanted.hex, hex.id, level + 1 FROM wanted CROSS JOIN hex ON hex.parent = wanted.id
                WHERE level < \(ProtocolLimits.levels)
        )
        """

    /// Returns a hex with its links and inner hexes; `nil` if there is no hex with this id.
    public func hex(_ id: Int64) throws -> HexDetail? { try hexes([id]).first }

    /// Returns the hexes with these ids, with their links and inner hexes, in the given order. Missing hexes are skipped. Runs two queries,
    /// a third if any hex has inner hexes, and more for each inner hex among `ids`.
    public func hexes(_ ids: [Int64]) throws -> [HexDetail] {
        guard !ids.isEmpty else { return [] }
        let list = jsonArray(Set(ids))
        let found = try all(
            "SELECT \(HexSummary.columns), hex.extra FROM \(HexSummary.tables) WHERE hex.id IN (SELECT value FROM json_each(?))", list
        ) { row in
            var detail = HexDetail(summary: HexSummary(row), content: HexContent())
            detail.content.senderUUID = detail.content.add(detail.summary.senderUUID)
            detail.content.senderName = detail.content.add(detail.summary.senderName)
            detail.content.hexDescription = detail.content.add(detail.summary.description)
            detail.content.hexColor = detail.content.add(detail.summary.color)
            detail.content.extra = row.withBytes(HexSummary.columnCount) { detail.content.add(bytes: $0) }
            return detail
        }
        var trees = Trees(of: found)
        if found.contains(where: { $0.summary.hexesInside > 0 }) { try readChildren(into: &trees) }
        try readLinks(into: &trees)
        for id in trees.details.keys where trees.details[id]?.summary.parent != nil {
            if let top = try summary(ofTop: id) { trees.details[id]?.summary.inheritLocation(of: top) }
        }
        return ids.compactMap { trees.details[$0] }
    }

    /// The requested hexes while their links and inner hexes are read.
    private struct Trees {
        var details: [Int64: HexDetail] = [:]
        /// The positions of inner hexes, by id. A position is the id of a requested hex and an index in its `content.children`. An inner
        /// hex has two positions if it is inside a requested hex that is itself inside another requested hex.
        var positions: [Int64: [(hex: Int64, child: Int)]] = [:]

        init(of found: [HexDetail]) {
            for detail in found { details[detail.summary.id] = detail }
        }
    }

    private func readChildren(into trees: inout Trees) throws {
        let tops = trees.details.values.filter { $0.summary.hexesInside > 0 }.map(\.summary.id)
        let row = try SQLStatement(
            """
            \(Self.wantedTrees)
            SELECT wanted.hex, hex.id, hex.parent, hex.senderUUID, hex.senderName, hex.description, hex.color, hex.extra
            FROM wanted CROSS JOIN hex ON hex.id = wanted.id WHERE wanted.level > 1
            ORDER BY wanted.hex, wanted.level, hex.parent, hex.position, hex.id
            """, on: db)
        defer { row.reset() }
        try row.bind([jsonArray(tops)])
        while try row.step() {
            let (hex, id, parent) = (row.int64(0), row.int64(1), row.int64(2))
            trees.details[hex]?.appendChild(id, inside: trees.positions[parent]?.first { $0.hex == hex }?.child, row)
            trees.positions[id, default: []].append((hex, (trees.details[hex]?.childIDs.count ?? 1) - 1))
        }
    }

    private func readLinks(into trees: inout Trees) throws {
        let links = try SQLStatement(
            """
            SELECT link.id >> 13, link.url, link.description, link.service, link.extra
            FROM json_each(?) AS wanted CROSS JOIN link ON link.id BETWEEN wanted.value << 13 AND (wanted.value << 13) + 8191
            ORDER BY link.id
            """, on: db)
        defer { links.reset() }
        try links.bind([jsonArray(Set(trees.details.keys).union(trees.positions.keys))])
        while try links.step() {
            let id = links.int64(0)
            if trees.details[id] != nil { trees.details[id]?.content.appendLink(of: links) }
            for position in trees.positions[id] ?? [] {
                trees.details[position.hex]?.content.appendLink(of: links, toChild: position.child)
            }
        }
    }

    /// Returns the summary of the topmost hex that contains a hex; of the hex itself if it is not inside another.
    func summary(ofTop id: Int64) throws -> HexSummary? {
        var top = id
        for _ in 1..<ProtocolLimits.levels {
            guard let parent = try first("SELECT parent FROM hex WHERE id = ?", top, read: { $0.optionalInt64(0) }) ?? nil else { break }
            top = parent
        }
        return try first("SELECT \(HexSummary.columns) FROM \(HexSummary.tables) WHERE hex.id = ?", top) { HexSummary($0) }
    }

    /// Maximum number of links that `fileTotals` reads.
    private static let totalledLinks = 50_000

    /// Returns number and total size of the files that the links of hexes and of their inner hexes lead to (`hexlist://`). Hexes without
    /// such links are missing, and hexes after the first `totalledLinks` links.
    public func fileTotals(of hexes: [HexSummary]) throws -> [Int64: (count: Int, bytes: Int64)] {
        var links = 0
        let ids = hexes.prefix {
            links += $0.linkCount + $0.linksInside
            return links <= Self.totalledLinks
        }.map(\.id)
        let found = try all(
            """
            \(Self.wantedTrees)
            SELECT wanted.hex, count(*), CAST(min(total(
                CASE WHEN json_valid(link.extra) THEN max(0, CAST(json_extract(link.extra, '$.size') AS INTEGER)) END), 1 << 62) AS INTEGER)
            FROM wanted CROSS JOIN link ON link.id BETWEEN wanted.id << 13 AND (wanted.id << 13) + 8191
            WHERE link.url >= 'hexlist://' AND link.url < 'hexlist:0' GROUP BY wanted.hex
            """, jsonArray(ids)
        ) { ($0.int64(0), (count: $0.int(1), bytes: $0.int64(2))) }
        return Dictionary(found) { first, _ in first }
    }

    /// Returns the locations of the hexes with these ids; the location of an inner hex is `nil`. Missing hexes are skipped. Does not read
    /// texts.
    public func locations(of ids: [Int64]) throws -> [Int64: HexLocation?] {
        let found = try all("SELECT id, location FROM hex WHERE id IN (SELECT value FROM json_each(?))", jsonArray(Set(ids))) {
            ($0.int64(0), HexLocation(rawValue: $0.text(1)))
        }
        return Dictionary(found) { first, _ in first }
    }

    /// Returns the number of a hex in a list: in the inbox its inbox number (`nil` if the hex is not in the inbox), in other lists its id.
    ///
    /// - Throws: `.notFound` if there is no such hex.
    public func number(of id: Int64, in location: HexLocation) throws -> Int64? {
        guard let number = try first("SELECT inboxNumber FROM hex WHERE id = ?", id, read: { $0.optionalInt64(0) }) else {
            throw HexlistError.noHex(id)
        }
        return location == .inbox ? number : id
    }

    /// Returns the highest id of any hex; 0 if there are no hexes.
    public func newestHex() throws -> Int64 { try all("SELECT coalesce(max(id), 0) FROM hex") { $0.int64(0) }.first ?? 0 }

    /// Returns the subjects (`HexSubject`) of the hexes with these ids. Missing hexes are skipped.
    public func subjects(of ids: [Int64]) throws -> [Int64: String] {
        let found = try all(
            "SELECT id, substr(description, 1, 1024), \(HexSummary.firstLink) FROM hex WHERE id IN (SELECT value FROM json_each(?))",
            jsonArray(Set(ids))
        ) { ($0.int64(0), HexSubject.of(description: $0.text(1), linkDescription: $0.text(2), url: $0.text(3))) }
        return Dictionary(found) { first, _ in first }
    }

    /// Returns a page of the ids of a set of hexes, small enough to change them in one transaction: up to `HexSet.pageLimit` hexes and 4
    /// MiB, but at least one hex. Each link counts as at least 256 bytes. Hexes that are added to a list between two pages are not on later
    /// pages.
    ///
    /// - Parameter after: the `next` of the previous page.
    public func hexIDs(_ group: HexSet, after: HexCursor? = nil) throws -> HexListPage<Int64> {
        let limit = HexSet.pageLimit
        let columns = "hex.id, coalesce(hex.inboxNumber, hex.id), hex.linkCount, hex.byteCount, hex.orderKey"
        let size = { (row: SQLStatement) in Swift.max(row.int(3), row.int(2).multipliedReportingOverflow(by: 256).partialValue) }
        let read = { (row: SQLStatement) in
            (id: row.int64(0), cursor: HexCursor(number: row.int64(1), orderKey: row.isNull(4) ? nil : row.bytes(4)))
        }
        switch group {
        case .list(let filter):
            let (rows, hasMore) = try listed(columns, filter, limit: limit, after: after, size: size, read: read)
            return HexListPage(items: rows.map(\.id), next: hasMore ? rows.last?.cursor : nil)
        case .ids(let range, let location, let peer):
            // `location <> 'inbox'` is redundant, but lets SQLite use the partial index `hexBeside`.
            let condition =
                switch location {
                case nil: "hex.parent IS NULL AND "
                case .inbox: "hex.location = 'inbox' AND "
                case let location?: "hex.location = '\(location.rawValue)' AND hex.location <> 'inbox' AND "
                }
            let sender = try peer.map { try peerRow($0)?.id ?? -1 }
            let (rows, hasMore) = try page(
                """
                SELECT \(columns) FROM hex WHERE \(condition)hex.id BETWEEN ? AND ? AND hex.peer IS coalesce(?, hex.peer)
                ORDER BY hex.id LIMIT ?
                """, Swift.max(range.lowerBound, after.map { $0.number &+ 1 } ?? .min), range.upperBound, sender, limit + 1, limit: limit,
                size: size, read: read)
            return HexListPage(items: rows.map(\.id), next: hasMore ? rows.last.map { HexCursor(number: $0.id) } : nil)
        }
    }

    /// Returns a page of summaries, newest first; of My Hexlist in the order of the user. All pages cost the same (keyset pagination), and
    /// arriving hexes do not shift later pages.
    ///
    /// - Parameters:
    ///   - limit: maximum number of items, up to 10 000. Fewer are returned if their texts exceed 4 MiB, but at least one.
    ///   - after: the `next` of the previous page.
    public func hexPage(_ filter: HexFilter = HexFilter(), limit: Int = 20, after: HexCursor? = nil) throws -> HexListPage<HexSummary> {
        let (items, hasMore) = try listed(
            HexSummary.columns, filter, limit: pageLimit(limit), after: after, size: HexSummary.size, read: HexSummary.init)
        return HexListPage(items: items, next: hasMore ? items.last?.cursor : nil)
    }

    /// Returns a cursor with the order key if the list is My Hexlist. A cursor without one gets the key of the hex with this id, also if it
    /// was deleted from the top level. If there is no such hex, the position is directly before the one with the next lower id.
    func withOrderKey(_ cursor: HexCursor, in location: HexLocation) throws -> HexCursor {
        guard location == .mine, cursor.orderKey == nil else { return cursor }
        let number = cursor.number
        let key =
            try first("SELECT orderKey FROM hex WHERE id = ? AND orderKey IS NOT NULL", number) { $0.bytes(0) }
            ?? first(
                """
                SELECT orderKey FROM node WHERE list = 1 AND (kind = 1 AND hex = ?1 OR kind = 3 AND hex = ?1) AND orderKey IS NOT NULL
                    AND parent = (SELECT uuid FROM list WHERE id = 1)
                """, number
            ) { $0.bytes(0) }
        if let key { return HexCursor(number: number, orderKey: key) }
        let next = try first(
            "SELECT id, orderKey FROM hex WHERE location = 'mine' AND location <> 'inbox' AND id < ? ORDER BY id DESC LIMIT 1", number
        ) { HexCursor(number: $0.int64(0) &- 1, orderKey: $0.bytes(1)) }
        return next ?? HexCursor(number: .max, orderKey: Array(repeating: .max, count: 129))  // above all keys
    }

    /// Reads the rows of a list up to the limits of a page: newest first, those of My Hexlist by order key.
    /// - Returns: the rows of the page, and whether the list has more.
    private func listed<Row>(
        _ columns: String, _ filter: HexFilter, limit: Int, after: HexCursor?, size: (SQLStatement) -> Int, read: (SQLStatement) -> Row
    ) throws -> ([Row], Bool) {
        let before = after?.number ?? .max
        let peer = try filter.peer.map { try peerRow($0)?.id ?? -1 }
        // Each list has an index in the order of the list, so that SQLite neither sorts nor reads rows of other pages.
        let select = "SELECT \(columns) FROM \(HexSummary.tables)"
        let selectUnread = "SELECT \(columns) FROM hex INDEXED BY hexUnread LEFT JOIN peer ON peer.id = hex.peer"
        return
            switch (filter.location, peer, filter.unread)
        {
        case (.inbox, nil, false):
            try page(
                "\(select) WHERE hex.inboxNumber < ? ORDER BY hex.inboxNumber DESC LIMIT ?",
                before, limit + 1, limit: limit, size: size, read: read)
        case (.inbox, nil, true):
            try page(
                """
                \(selectUnread) WHERE hex.unread = 1 AND hex.inboxNumber IS NOT NULL AND hex.inboxNumber < ?
                ORDER BY hex.inboxNumber DESC LIMIT ?
                """, before, limit + 1, limit: limit, size: size, read: read)
        case (.inbox, let peer?, false):
            try page(
                "\(select) WHERE hex.peer = ? AND hex.inboxNumber < ? ORDER BY hex.inboxNumber DESC LIMIT ?",
                peer, before, limit + 1, limit: limit, size: size, read: read)
        case (.inbox, let peer?, true):
            try page(
                """
                \(selectUnread) WHERE hex.unread = 1 AND hex.inboxNumber IS NOT NULL AND hex.peer = ? AND hex.inboxNumber < ?
                ORDER BY hex.inboxNumber DESC LIMIT ?
                """, peer, before, limit + 1, limit: limit, size: size, read: read)
        case (.mine, _, _):
            try topLevel(select, peer, unread: filter.unread, limit: limit, after: after, size: size, read: read)
        case (let location, _, _):
            try page(
                """
                \(select) WHERE hex.location = ? AND hex.location <> 'inbox' AND hex.id < ? AND hex.peer IS coalesce(?, hex.peer)
                    AND hex.unread >= ? ORDER BY hex.id DESC LIMIT ?
                """, location.rawValue, before, peer, filter.unread, limit + 1, limit: limit, size: size, read: read)
        }
    }

    /// Reads the rows of the top level of My Hexlist.
    private func topLevel<Row>(
        _ select: String, _ peer: Int64?, unread: Bool, limit: Int, after: HexCursor?, size: (SQLStatement) -> Int,
        read: (SQLStatement) -> Row
    ) throws -> ([Row], Bool) {
        let start = try after.map { try withOrderKey($0, in: .mine) } ?? HexCursor(number: .min, orderKey: [])  // below all keys
        return try page(
            """
            \(select) WHERE hex.orderKey IS NOT NULL AND (hex.orderKey, hex.id) > (?, ?) AND hex.peer IS coalesce(?, hex.peer)
                AND hex.unread >= ? ORDER BY hex.orderKey, hex.id LIMIT ?
            """, start.orderKey ?? [], start.number, peer, unread, limit + 1, limit: limit, size: size, read: read)
    }
}

extension HexSummary {
    fileprivate static let tables = "hex LEFT JOIN peer ON peer.id = hex.peer"
    fileprivate static let columns = """
        hex.id, hex.location, hex.inboxNumber, peer.uuid, coalesce(peer.name, ''), hex.senderUUID, hex.senderName,
        hex.description, \(firstLink), hex.color, hex.linkCount, hex.unread, hex.receivedAt, hex.messageID, hex.byteCount, peer.alias, peer.trust,
        hex.parent, hex.hexesInside, hex.linksInside, peer.kind, hex.orderKey
        """
    fileprivate static let columnCount: Int32 = 23
    /// SQL expression: whether the description consists only of Unicode white space, as in `HexSubject`. SQLite's `trim` removes only
    /// spaces by default.
    private static let isBlank = """
        trim(hex.description, char(9, 10, 11, 12, 13, 32, 133, 160, 5760, 8192, 8193, 8194, 8195, 8196, 8197, 8198, 8199, 8200, 8201, 8202,
            8232, 8233, 8239, 8287, 12288)) = ''
        """
    /// SQL expressions for two columns: description and URL of the first link, truncated to the length that a subject can use; NULL if the
    /// hex has a description.
    fileprivate static let firstLink = """
        CASE WHEN \(isBlank) THEN (SELECT substr(description, 1, 1024) FROM link WHERE link.id = hex.id << 13) END,
        CASE WHEN \(isBlank) THEN (SELECT substr(url, 1, 8192) FROM link WHERE link.id = hex.id << 13) END
        """

    /// Returns the total number of bytes of a row's texts.
    fileprivate static func size(_ row: SQLStatement) -> Int { row.size(of: 0...columnCount - 1) }

    fileprivate init(_ row: SQLStatement) {
        id = row.int64(0)
        location = HexLocation(rawValue: row.text(1)) ?? .inbox
        inboxNumber = row.optionalInt64(2)
        peer = row.uuid(3).map(PeerID.init)
        peerName = row.text(4)
        senderUUID = row.text(5)
        senderName = row.text(6)
        description = row.text(7)
        subject = HexSubject.of(description: description, linkDescription: row.text(8), url: row.text(9))
        color = row.text(10)
        linkCount = row.int(11)
        unread = row.bool(12)
        receivedAt = row.int64(13)
        messageID = row.uuid(14).map(MessageID.init)
        byteCount = row.int(15)
        peerAlias = row.optionalText(16)
        peerTrust = Trust(rawValue: row.text(17)) ?? .stranger
        parent = row.optionalInt64(18)
        hexesInside = row.int(19)
        linksInside = row.int(20)
        peerKind = PeerKind(number: row.int64(21)) ?? .hexlist
        orderKey = row.isNull(22) ? nil : row.bytes(22)
    }

    /// Takes location and proven sender from the topmost hex, because the row of an inner hex has none.
    fileprivate mutating func inheritLocation(of top: HexSummary) {
        location = top.location
        peer = top.peer
        peerName = top.peerName
        peerAlias = top.peerAlias
        peerTrust = top.peerTrust
        peerKind = top.peerKind
    }
}

extension HexDetail {
    /// Appends the inner hex in a row with the columns `…, …, …, senderUUID, senderName, description, color, extra`. The rows of one parent
    /// must be consecutive.
    fileprivate mutating func appendChild(_ id: Int64, inside parent: Int?, _ row: SQLStatement) {
        var child = ChildContent(parent: parent)
        child.senderUUID = row.withBytes(3) { content.add(bytes: $0) }
        child.senderName = row.withBytes(4) { content.add(bytes: $0) }
        child.hexDescription = row.withBytes(5) { content.add(bytes: $0) }
        child.hexColor = row.withBytes(6) { content.add(bytes: $0) }
        child.extra = row.withBytes(7) { content.add(bytes: $0) }
        content.add(child: child)
        childIDs.append(id)
    }
}

extension HexContent {
    /// Appends the link in a row with the columns `id, url, description, service, extra`.
    fileprivate mutating func appendLink(of row: SQLStatement) { links.append(link(of: row)) }

    /// Appends the link in a row with the same columns to an inner hex. The rows of one hex must be consecutive.
    fileprivate mutating func appendLink(of row: SQLStatement, toChild child: Int) {
        let index = childLinks.count
        let before = children[child].links
        children[child].links = (before.isEmpty ? index : before.lowerBound)..<index + 1
        childLinks.append(link(of: row))
    }

    private mutating func link(of row: SQLStatement) -> LinkContent {
        let url = row.withBytes(1) { add(bytes: $0) }
        let description = row.withBytes(2) { add(bytes: $0) }
        let service = row.withBytes(3) { add(bytes: $0) }
        let extra = row.withBytes(4) { add(bytes: $0) }
        return LinkContent(url: url, linkDescription: description, service: service, extra: extra)
    }
}
