internal import GRDB
internal import HexlistModel

/// The mark of a link of My Hexlist whose server answered that its page no longer exists.
public struct DeadLink: Sendable, Equatable {
    /// The HTTP status of the last check: 404 or 410.
    public var status: Int
    /// The time of the check that found the link dead first, in milliseconds since 1970.
    public var since: Int64

    public init(status: Int, since: Int64) { (self.status, self.since) = (status, since) }

    /// Marks belong to the URL in its hex, so that a link keeps its mark when it changes its position. The search index has a key for hexes
    /// with marks, so the rows of a hex change only between `unindex` and `reindex`.
    static let schema = """
        CREATE TABLE deadLink (
            hex INTEGER NOT NULL,
            url TEXT NOT NULL,
            status INTEGER NOT NULL,
            since INTEGER NOT NULL,
            PRIMARY KEY (hex, url)
        ) STRICT, WITHOUT ROWID;
        CREATE TRIGGER hexDeletedDead AFTER DELETE ON hex BEGIN
            DELETE FROM deadLink WHERE hex = old.id;
        END;
        """
}

/// The marks of the links of hexes, by hex and URL.
public typealias DeadLinks = [Int64: [[UInt8]: DeadLink]]

/// The result of a check of a link of My Hexlist.
public struct LinkCheckResult: Sendable, Equatable {
    public var position: LinkPosition
    /// The URL that was checked.
    public var urlBytes: [UInt8]
    /// The status of the response if the link is dead; `nil` if its page exists.
    public var deadStatus: Int?

    public init(position: LinkPosition, urlBytes: [UInt8], deadStatus: Int?) {
        self.position = position
        self.urlBytes = urlBytes
        self.deadStatus = deadStatus
    }
}

extension StoreReader {
    /// Returns the marks of the links of hexes.
    public func deadLinks(of hexes: [Int64]) throws -> DeadLinks {
        var found: DeadLinks = [:]
        let rows = try all(
            "SELECT hex, url, status, since FROM json_each(?) CROSS JOIN deadLink ON deadLink.hex = json_each.value", jsonArray(hexes)
        ) { (hex: $0.int64(0), urlBytes: $0.bytes(1), dead: DeadLink(status: $0.int(2), since: $0.int64(3))) }
        for row in rows { found[row.hex, default: [:]][row.urlBytes] = row.dead }
        return found
    }

    /// Returns all links of a hex of My Hexlist and of the hexes inside it, in their order.
    /// - Throws: `.notFound`; `.badRequest` if the hex is not in My Hexlist.
    public func mineLinks(of id: Int64) throws -> [ListedLink] {
        guard let top = try summary(ofTop: id), let hex = try hex(id)?.summary else { throw HexlistError.noHex(id) }
        guard top.location == .mine else {
            throw HexlistError(
                .badRequest, "Hex \(id) is not in My Hexlist (\(top.location.rawValue)).", hint: "To copy it there: `hexlist save \(id)`.")
        }
        return try links(of: hex)
    }

    /// Returns the number of links of My Hexlist.
    public func mineLinkCount() throws -> Int {
        try first("SELECT coalesce(sum(linkCount + linksInside), 0) FROM hex WHERE location = 'mine'") { $0.int(0) } ?? 0
    }
}

extension HexStore {
    /// Marks links that are dead, and removes the marks of links whose pages exist. Skips links that were changed or deleted meanwhile.
    /// - Returns: the links that were marked, and those that lost their mark.
    @discardableResult
    public func markChecked(
        _ links: [LinkCheckResult], at now: Int64
    ) async throws -> (marked: [LinkCheckResult], unmarked: [LinkCheckResult]) {
        try await write(rows: links.count) { writer in
            try writer.change {
                var changed: (marked: [LinkCheckResult], unmarked: [LinkCheckResult]) = ([], [])
                for (hex, links) in Dictionary(grouping: links, by: \.position.hex).sorted(by: { $0.key < $1.key }) {
                    guard try writer.summary(ofTop: hex)?.location == .mine else { continue }
                    let difference = try writer.markChecked(links, of: hex, at: now)
                    changed.marked += difference.marked
                    changed.unmarked += difference.unmarked
                }
                return changed
            }
        }
    }
}

extension StoreWriter {
    fileprivate func markChecked(
        _ links: [LinkCheckResult], of hex: Int64, at now: Int64
    ) throws -> (marked: [LinkCheckResult], unmarked: [LinkCheckResult]) {
        let marks = try deadLinks(of: [hex])[hex] ?? [:]
        let current = try links.filter { link in
            try marks[link.urlBytes]?.status != link.deadStatus
                && first("SELECT url FROM link WHERE id = ?", link.position.id) { $0.bytes(0) } == link.urlBytes
        }
        guard !current.isEmpty else { return ([], []) }
        try unindex([hex])
        for link in current {
            let url = String(decoding: link.urlBytes, as: UTF8.self)
            if let status = link.deadStatus {
                try run(
                    "INSERT INTO deadLink (hex, url, status, since) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET status = excluded.status",
                    hex, url, status, now)
            } else {
                try run("DELETE FROM deadLink WHERE hex = ? AND url = ?", hex, url)
            }
        }
        try reindex([hex])
        return (current.filter { $0.deadStatus != nil && marks[$0.urlBytes] == nil }, current.filter { $0.deadStatus == nil })
    }

    /// Deletes the marks of URLs that the hex no longer has. Call between `unindex` and `reindex`.
    func forgetDeadLinks(of hex: Int64) throws {
        try run(
            """
            DELETE FROM deadLink WHERE hex = ?1
                AND url NOT IN (SELECT url FROM link WHERE id BETWEEN ?1 << 13 AND (?1 << 13) + 8191)
            """, hex)
    }
}
