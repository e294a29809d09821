internal import GRDB
public import HexlistModel

/// A link of a list of links.
public struct ListedLink: Sendable {
    public var hex: HexSummary
    /// The position in the hex, from 0.
    public var position: Int
    public var url: String
    public var description: String
    public var service: String
    /// The position in the list, which `after` takes.
    public var cursor: Int64
}

/// An earlier hex of the inbox with the same link.
public struct EarlierLink: Sendable, Equatable {
    public var hex: Int64
    public var receivedAt: Int64
    public var peer: PeerLabel?
}

extension StoreReader {
    /// The most links that one page looks at, and the most hexes with a key that are compared for one link.
    private static let examinedLinks = 5_000
    private static let compared = 64
    /// The most links of one hex that earlier ones are looked for.
    private static let linksWithEarlier = 500

    /// A page of the links of a list of hexes: the newest hex first, and its links in their order.
    ///
    /// - Parameters:
    ///   - unique: whether a link is left out where a newer hex of the list, or an earlier place in its hex, has the same URL.
    ///   - limit: the most links, up to 10 000. There are fewer if their texts exceed 4 MiB, or many are left out.
    ///   - after: the `next` of the previous page.
    public func linkPage(_ filter: HexFilter, unique: Bool, limit: Int = 20, after: Int64? = nil) throws -> Page<ListedLink> {
        var room = PageRoom(items: pageLimit(limit))
        var links: [ListedLink] = []
        var (cursor, examined) = (after, 0)
        var place = after.map { ($0 >> 13) &+ 1 }
        while true {
            let page = try hexPage(filter, limit: 100, after: place)
            for hex in page.items {
                let number = hex.inboxNumber ?? hex.id
                for link in try self.links(of: hex, number) where link.cursor < after ?? .max {
                    guard examined < Self.examinedLinks else { return Page(items: links, next: cursor) }
                    examined += 1
                    if unique, try isListed(link, filter, number) {
                        cursor = link.cursor
                        continue
                    }
                    guard room.take(link.url.utf8.count + link.description.utf8.count) else { return Page(items: links, next: cursor) }
                    cursor = link.cursor
                    links.append(link)
                }
            }
            guard let next = page.next else { return Page(items: links, next: nil) }
            place = next
        }
    }

    private func links(of hex: HexSummary, _ number: Int64) throws -> [ListedLink] {
        try all(
            "SELECT id & 8191, url, description, service FROM link WHERE id BETWEEN ?1 << 13 AND (?1 << 13) + 8191 ORDER BY id", hex.id
        ) { row in
            let position = row.int(0)
            return ListedLink(
                hex: hex, position: position, url: row.text(1), description: row.text(2), service: row.text(3),
                cursor: number << 13 | Int64(8_191 - position))
        }
    }

    /// Whether the list has the link's URL at an earlier place.
    private func isListed(_ link: ListedLink, _ filter: HexFilter, _ number: Int64) throws -> Bool {
        let id = link.hex.id
        let inHex = try first(
            "SELECT 1 FROM link WHERE id BETWEEN ?1 << 13 AND (?1 << 13) + ?2 - 1 AND url = ?3", id, link.position, link.url
        ) { _ in true }
        if inHex ?? false { return true }
        let peer = try filter.peer.map { try peerRow($0)?.id ?? -1 }
        return try first(
            """
            SELECT 1 FROM (SELECT rowid FROM search WHERE search MATCH ? ORDER BY rowid DESC LIMIT \(Self.compared)) AS found
            CROSS JOIN hex ON hex.id = found.rowid
            WHERE coalesce(hex.inboxNumber, hex.id) > ? AND hex.location = ? AND hex.peer IS coalesce(?, hex.peer) AND hex.unread >= ?
                AND EXISTS (SELECT 1 FROM link WHERE link.id BETWEEN hex.id << 13 AND (hex.id << 13) + 8191 AND link.url = ?)
            LIMIT 1
            """, Self.condition(link.url, in: filter.location), number, filter.location.rawValue, peer, filter.unread, link.url
        ) { _ in true } ?? false
    }

    /// For the links of a hex that an earlier hex of the inbox has too, by position: the newest of those. Looks at the first 500 links.
    public func earlierLinks(of detail: HexDetail) throws -> [Int: EarlierLink] {
        var earlier: [Int: EarlierLink] = [:]
        for (position, link) in detail.content.links.prefix(Self.linksWithEarlier).enumerated() {
            let url = detail.content.string(link.url)
            earlier[position] = try first(
                """
                SELECT hex.id, hex.receivedAt, peer.uuid, peer.name, peer.alias, peer.trust FROM
                    (SELECT rowid FROM search WHERE search MATCH ? AND rowid < ? ORDER BY rowid DESC LIMIT \(Self.compared)) AS found
                CROSS JOIN hex ON hex.id = found.rowid LEFT JOIN peer ON peer.id = hex.peer
                WHERE hex.location = 'inbox'
                    AND EXISTS (SELECT 1 FROM link WHERE link.id BETWEEN hex.id << 13 AND (hex.id << 13) + 8191 AND link.url = ?)
                LIMIT 1
                """, Self.condition(url, in: .inbox), detail.summary.id, url
            ) { row in
                let peer = row.uuid(2).map { uuid in
                    PeerLabel(PeerID(uuid), name: row.text(3), alias: row.optionalText(4), trust: Trust(rawValue: row.text(5)) ?? .stranger)
                }
                return EarlierLink(hex: row.int64(0), receivedAt: row.int64(1), peer: peer)
            }
        }
        return earlier
    }

    private static func condition(_ url: String, in location: HexLocation) -> String {
        let keys = [SearchKey.url(Array(url.utf8)), SearchKey.key(.place, Array(location.rawValue.utf8))]
        return keys.map(SearchKey.condition).joined(separator: " AND ")
    }
}
