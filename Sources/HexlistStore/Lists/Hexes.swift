internal import GRDB
public import HexlistModel

/// A change of stored hexes.
public enum HexChange: Sendable, Equatable {
    /// Marks hexes read or unread.
    case read(Bool)
    /// Deletes hexes from any location. A hex of My Hexlist is kept in the trash (`TrashedItem`). A hex from the inbox leaves a tombstone for
    /// 60 days, so that it is recognised as a duplicate if it is sent again. A held hex leaves none.
    case delete
    /// Moves held hexes into the inbox, in the given order, without trusting their sender. Records a `hex.received` event for each.
    case accept

    /// The location in which the hexes must be; `nil` for any.
    public var requiredLocation: HexLocation? { self == .accept ? .held : nil }
}

extension HexStore {
    /// Changes hexes by their ids, in the given order, in one transaction.
    ///
    /// - Parameter now: milliseconds since 1970.
    /// - Returns: the number of hexes that changed.
    /// - Throws: `.notFound` if a hex is missing; `.badRequest` if a hex is not in `change.requiredLocation`, or is an inner hex that
    ///   cannot be changed alone. Then nothing is changed.
    public func change(_ ids: [Int64], _ change: HexChange, at now: Int64) async throws -> Int {
        try await write(rows: ids.count) { writer in
            let present = try writer.present(ids, for: change)
            if let location = change.requiredLocation, let other = ids.first(where: { present[$0] != location }) {
                throw HexlistError(
                    .badRequest, "Hex \(other) is not \(location.rawValue).", hint: "`hexlist inbox --held` lists those that are.")
            }
            return try writer.apply(change, to: ids, at: now)
        }
    }

    /// Changes the hexes of a set. Each page (`StoreReader.hexIDs`) is one transaction, so that arriving hexes are not delayed. Hexes that
    /// are added to a list during the change are not changed.
    ///
    /// - Parameters:
    ///   - start: the position after which the change begins, like `after` of `hexIDs`; `nil` for the whole set.
    ///   - now: milliseconds since 1970.
    /// - Returns: the number of hexes that changed.
    /// - Throws: errors of the store. The hexes of earlier pages stay changed.
    public func change(_ group: HexSet, from start: HexCursor? = nil, _ change: HexChange, at now: Int64) async throws -> Int {
        var changed = 0
        var cursor = start
        repeat {
            let after = cursor
            let (count, next) = try await write(rows: HexSet.pageLimit) { writer in
                let page = try writer.hexIDs(group, after: after)
                return (try writer.apply(change, to: page.items, at: now), page.next)
            }
            changed += count
            cursor = next
        } while cursor != nil
        return changed
    }
}

extension HexlistError {
    static func tooLarge(_ content: HexContent) -> HexlistError {
        guard content.allLinkCount > ProtocolLimits.links else {
            return HexlistError(
                .badRequest, "A hex has at most \(ProtocolLimits.children) hexes in it; this one has \(content.children.count).")
        }
        return tooManyLinks(content.allLinkCount)
    }

    static func tooManyLinks(_ count: Int) -> HexlistError {
        HexlistError(.badRequest, "A hex has at most \(ProtocolLimits.links) links; this one has \(count).")
    }

    public static func noHex(_ id: Int64) -> HexlistError {
        HexlistError(.notFound, "There is no hex \(id).", hint: "`hexlist inbox`, `hexlist inbox --held` and `hexlist mine` list hexes.")
    }
}

/// The numbers of hexes and links that a deletion would remove, for a confirmation.
public struct DeletionCounts: Sendable, Equatable {
    public var hexes = 0
    /// Number of links of these hexes.
    public var links = 0
    /// Number of inner hexes, at all levels, that are not counted in `hexes`.
    public var hexesInside = 0
    /// Number of links of the hexes in `hexesInside`.
    public var linksInside = 0

    public init(hexes: Int = 0, links: Int = 0, hexesInside: Int = 0, linksInside: Int = 0) {
        self.hexes = hexes
        self.links = links
        self.hexesInside = hexesInside
        self.linksInside = linksInside
    }

    public static func += (all: inout DeletionCounts, part: DeletionCounts) {
        all.hexes += part.hexes
        all.links += part.links
        all.hexesInside += part.hexesInside
        all.linksInside += part.linksInside
    }
}

extension StoreReader {
    /// Returns the numbers of hexes and links that a deletion of hexes by their ids would remove.
    /// - Throws: the same errors as `HexStore.change`.
    public func deletion(of ids: [Int64]) throws -> DeletionCounts {
        _ = try present(ids, for: .delete)
        return try counted(ids)
    }

    /// Returns the numbers of hexes and links that a deletion of a set of hexes would remove.
    /// - Parameter start: the position after which the deletion begins, as for `HexStore.change`.
    public func deletion(of group: HexSet, from start: HexCursor? = nil) throws -> DeletionCounts {
        var found = DeletionCounts()
        var cursor = start
        repeat {
            let page = try hexIDs(group, after: cursor)
            found += try counted(page.items)
            cursor = page.next
        } while cursor != nil
        return found
    }

    private func counted(_ ids: [Int64]) throws -> DeletionCounts {
        let list = jsonArray(ids)
        let links = try first("SELECT coalesce(sum(linkCount), 0) FROM hex WHERE id IN (SELECT value FROM json_each(?))", list) {
            $0.int(0)
        }
        var found = DeletionCounts(hexes: Set(ids).count, links: links ?? 0)
        let hasInside = try first("SELECT 1 FROM hex WHERE id IN (SELECT value FROM json_each(?)) AND hexesInside > 0 LIMIT 1", list) { _ in
            true
        }
        guard hasInside ?? false else { return found }
        let inside = try first(
            """
            WITH RECURSIVE wanted (id, level) AS (
                SELECT value, 1 FROM json_each(?1)
                UNION
                SELECT hex.id, level + 1 FROM wanted CROSS JOIN hex ON hex.parent = wanted.id WHERE level < \(ProtocolLimits.levels)
            )
            SELECT count(*), coalesce(sum(linkCount), 0) FROM hex
            WHERE id IN (SELECT id FROM wanted WHERE level > 1 EXCEPT SELECT value FROM json_each(?1))
            """, list
        ) { (hexes: $0.int(0), links: $0.int(1)) }
        found.hexesInside = inside?.hexes ?? 0
        found.linksInside = inside?.links ?? 0
        return found
    }

    /// Checks that hexes exist and can be changed alone, and returns their locations; the location of an inner hex is `nil`.
    /// - Throws: `.notFound` if a hex is missing; `.badRequest` for an inner hex, except if it is in My Hexlist and `change` is a deletion.
    fileprivate func present(_ ids: [Int64], for change: HexChange) throws -> [Int64: HexLocation?] {
        let present = try locations(of: ids)
        if let missing = ids.first(where: { present[$0] == nil }) { throw HexlistError.noHex(missing) }
        guard let inner = ids.first(where: { present[$0] == .some(nil) }) else { return present }
        guard let top = try summary(ofTop: inner) else { throw HexlistError.noHex(inner) }
        guard change == .delete, top.location == .mine else {
            throw HexlistError(.badRequest, "Hex \(inner) is inside hex \(top.id).", hint: "Use hex \(top.id).")
        }
        return present
    }
}

extension StoreWriter {
    /// - Returns: the number of changed hexes. Missing hexes and hexes in other locations are skipped.
    fileprivate func apply(_ change: HexChange, to ids: [Int64], at now: Int64) throws -> Int {
        switch change {
        case .read(let isRead): try setRead(ids, isRead)
        case .delete: try delete(ids, at: now)
        case .accept: try accept(ids, at: now).count
        }
    }

    /// Marks hexes read or unread. Missing hexes are skipped.
    /// - Returns: the number of changed hexes.
    @discardableResult
    func setRead(_ ids: [Int64], _ read: Bool = true) throws -> Int {
        try change {
            let count = try mark(ids, unread: !read)
            if count > 0 { changed(.peers) }
            return count
        }
    }

    /// - Returns: the number of deleted hexes, without inner hexes. Missing hexes are skipped.
    @discardableResult
    func delete(_ ids: [Int64], at now: Int64) throws -> Int {
        try change {
            let mine = try inMyHexlist(ids)
            if !mine.isEmpty {
                // A hex inside another one of them is deleted together with it, so that it is restored together with it.
                let outer = try ids.filter { try mine.contains($0) && !hasAncestor($0, in: mine) }
                for (list, hexes) in try Dictionary(grouping: outer, by: { try listWithPlace($0) }).sorted(by: { $0.key < $1.key }) {
                    try changeMine(at: now, in: list) { try $0.delete(hexes) }
                }
            }
            let count = try mine.count + remove(ids.filter { !mine.contains($0) }, remembers: true)
            if count > 0 { changed([.peers, .room]) }
            return count
        }
    }

    private func hasAncestor(_ id: Int64, in ids: Set<Int64>) throws -> Bool {
        var next = id
        for _ in 1..<ProtocolLimits.levels {
            guard let parent = try first("SELECT parent FROM hex WHERE id = ?", next, read: { $0.optionalInt64(0) }) ?? nil else {
                return false
            }
            if ids.contains(parent) { return true }
            next = parent
        }
        return false
    }

    /// Returns those hexes that are in My Hexlist, at any level.
    private func inMyHexlist(_ ids: [Int64]) throws -> Set<Int64> {
        let outer = try locations(of: ids).filter { $0.value == .mine || $0.value == nil }.keys
        return Set(try outer.filter { try summary(ofTop: $0)?.location == .mine })
    }

    /// - Returns: the ids of the accepted hexes. Hexes that are not held are skipped.
    func accept(_ ids: [Int64], at now: Int64) throws -> [Int64] {
        try change {
            let taken = try takeIn(ids, at: now)
            if !taken.isEmpty { changed([.peers, .room]) }
            return taken
        }
    }

    /// Inserts a hex into My Hexlist.
    /// - Parameter parent: the hex to which it is appended as an inner hex; `nil` for the top level. The caller has to call
    ///   `checkBounds(ofTop:)` afterwards.
    /// - Returns: the hex's id.
    /// - Throws: `.badRequest` for too many links or inner hexes.
    func insertMine(_ content: HexContent, into parent: Int64? = nil, at now: Int64) throws -> Int64 {
        guard content.fitsBounds else { throw HexlistError.tooLarge(content) }
        return try changeMine(at: now, in: parent.map(listOfContents) ?? ListRecord.mine) { mine in
            let id = counters.nextHex
            _ = try inserter().insert(
                content, HexInserter.Row(id: id, location: .mine, unread: false, byteCount: content.byteCount, receivedAt: now))
            counters.nextHex &+= Int64(content.hexCount)
            counters.mine &+= 1
            if let parent { try nest(id, into: parent) }
            try mine.add(content, row: id, into: parent)
            return id
        }
    }
}

// MARK: - Inside `change`

extension StoreWriter {
    private func mark(_ ids: [Int64], unread: Bool) throws -> Int {
        try forgetReadLinks(of: ids)
        let list = jsonArray(ids)
        let rows = try all(
            "SELECT peer, location FROM hex WHERE id IN (SELECT value FROM json_each(?)) AND unread <> ?", list, unread
        ) { (peer: $0.optionalInt64(0), isInInbox: $0.text(1) == HexLocation.inbox.rawValue) }
        try run("UPDATE hex SET unread = ?1 WHERE id IN (SELECT value FROM json_each(?2)) AND unread <> ?1", unread, list)
        for row in rows where row.isInInbox {
            counters.unread &+= unread ? 1 : -1
            if let peer = row.peer { count(peer: peer) { $0.unread &+= unread ? 1 : -1 } }
        }
        return rows.count
    }

    /// - Parameter remembers: whether hexes from the inbox leave tombstones.
    @discardableResult
    func remove(_ ids: [Int64], remembers: Bool) throws -> Int {
        let list = jsonArray(ids)
        let gone = try all(
            "SELECT \(CountedHexColumns.columns), id FROM hex WHERE id IN (SELECT value FROM json_each(?))", list
        ) { (hex: CountedHexColumns($0), id: $0.int64(CountedHexColumns.columnCount)) }
        guard !gone.isEmpty else { return 0 }
        if remembers {
            try run(
                """
                INSERT OR REPLACE INTO tombstone (peer, messageID, forgetAt)
                SELECT peer, messageID, ?1 FROM hex WHERE id IN (SELECT value FROM json_each(?2))
                    AND isProven = 1 AND peer IS NOT NULL AND messageID IS NOT NULL AND inboxAt IS NOT NULL
                """, lived &+ Self.rememberedFor, list)
        }
        try unindex(ids)
        for (hex, id) in gone where hex.location == nil { try removeInside(id) }
        try run("DELETE FROM hex WHERE id IN (SELECT value FROM json_each(?))", list)
        for (hex, _) in gone { uncount(hex) }
        return gone.count
    }

    /// Lifetime of a tombstone in milliseconds: 60 days, twice the time for which a sender keeps an undelivered hex by default.
    private static let rememberedFor: Int64 = 60 * 86_400_000

    private func uncount(_ gone: CountedHexColumns) {
        guard let location = gone.location else { return }
        let countsAsUnread = location == .inbox && gone.unread
        let isHeld = location == .held
        counters[location] &-= 1
        if countsAsUnread { counters.unread &-= 1 }
        if isHeld { counters.heldBytes &-= gone.byteCount }
        guard let peer = gone.peer else { return }
        count(peer: peer) { delta in
            delta.hexes &-= 1
            if countsAsUnread { delta.unread &-= 1 }
            guard isHeld else { return }
            delta.held &-= 1
            delta.heldBytes &-= gone.byteCount
        }
    }

    /// Moves held hexes into the inbox. Each gets a new inbox number and a `hex.received` event.
    func takeIn(_ ids: [Int64], at now: Int64) throws -> [Int64] {
        let held = try all(
            """
            SELECT \(CountedHexColumns.columns), id, (SELECT uuid FROM peer WHERE peer.id = hex.peer) FROM hex
            WHERE id IN (SELECT value FROM json_each(?)) AND location = 'held'
            """, jsonArray(ids)
        ) { (id: $0.int64(CountedHexColumns.columnCount), hex: CountedHexColumns($0), uuid: $0.uuid(CountedHexColumns.columnCount + 1)) }
        var waiting = Dictionary(held.map { ($0.id, $0) }) { first, _ in first }
        let taken = ids.compactMap { waiting.removeValue(forKey: $0) }
        try unindex(taken.map(\.id))
        try run(
            """
            UPDATE hex SET location = 'inbox', inboxNumber = ?1 + json_each.key, inboxAt = ?2, heldSince = NULL, heldFrom = NULL
            FROM json_each(?3) WHERE hex.id = json_each.value
            """, counters.nextInbox, now, jsonArray(taken.map(\.id)))
        try reindex(taken.map(\.id))
        counters.nextInbox &+= Int64(taken.count)
        for (_, hex, _) in taken {
            uncount(hex)
            counters.inbox &+= 1
            if hex.unread { counters.unread &+= 1 }
            if let peer = hex.peer {
                count(peer: peer) { delta in
                    delta.hexes &+= 1
                    if hex.unread { delta.unread &+= 1 }
                }
            }
        }
        // Consecutive hexes of one peer are recorded together.
        var rest = taken[...]
        while let first = rest.first {
            let run = rest.prefix { $0.uuid == first.uuid }
            try record(.hexReceived, at: now, peer: first.uuid.map(PeerID.init), hexes: run.map(\.id))
            rest = rest.dropFirst(run.count)
        }
        return taken.map(\.id)
    }
}

/// The columns of a hex on which the counters depend.
private struct CountedHexColumns {
    static let columns = "location, peer, unread, byteCount"
    static let columnCount: Int32 = 4

    /// `nil` for an inner hex, which no location counts.
    var location: HexLocation?
    var peer: Int64?
    var unread: Bool
    var byteCount: Int64

    init(_ row: SQLStatement) {
        location = HexLocation(rawValue: row.text(0))
        peer = row.optionalInt64(1)
        unread = row.bool(2)
        byteCount = row.int64(3)
    }
}
