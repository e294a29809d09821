internal import GRDB
public import HexlistModel

/// A link of a list of links.
public struct ListedLink: Sendable {
    /// The hex of the list.
    public var hex: HexSummary
    /// The hex that has the link: that one, or one inside it.
    public var id: Int64
    /// The position in that, from 0.
    public var position: Int
    public var url: [UInt8]
    public var description: [UInt8]
    public var service: [UInt8]
    /// The position in the list, which `after` takes.
    public var cursor: Int64
}

/// An earlier hex of the inbox with the same link.
public struct EarlierLink: Sendable, Equatable {
    /// The hex, or if it is inside another the topmost one.
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

    /// A page of the links of a list of hexes: the newest hex first, and its links in their order, then those of the hexes inside it.
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
                var seen: Set<[UInt8]> = []
                for link in try self.links(of: hex) {
                    let isNew = !unique || seen.insert(link.url).inserted
                    guard link.cursor < after ?? .max else { continue }
                    guard examined < Self.examinedLinks else { return Page(items: links, next: cursor) }
                    examined += 1
                    if try isNew && !(unique && isNewer(link, filter)) {
                        guard room.take(link.url.count + link.description.count) else { return Page(items: links, next: cursor) }
                        links.append(link)
                    }
                    cursor = link.cursor
                }
            }
            guard let next = page.next else { return Page(items: links, next: nil) }
            place = next
        }
    }

    private func links(of hex: HexSummary) throws -> [ListedLink] {
        guard let detail = try self.hex(hex.id) else { return [] }
        let content = detail.content
        let hexes = [(hex.id, content.links[...])] + content.children.indices.map { (detail.childIDs[$0], content.links(of: $0)) }
        var cursor = (hex.inboxNumber ?? hex.id) << 13 | 8_191
        return hexes.flatMap { id, links in
            links.enumerated().map { position, link in
                defer { cursor -= 1 }
                return ListedLink(
                    hex: hex, id: id, position: position, url: content.withBytes(of: link.url) { Array($0) },
                    description: content.withBytes(of: link.linkDescription) { Array($0) },
                    service: content.withBytes(of: link.service) { Array($0) }, cursor: cursor)
            }
        }
    }

    /// Whether a newer hex of the list has the link's URL.
    private func isNewer(_ link: ListedLink, _ filter: HexFilter) throws -> Bool {
        let number = link.hex.inboxNumber ?? link.hex.id
        return try hexes(with: link.url, in: filter.location, before: .max).contains { id in
            guard id != link.id, let hex = try summary(ofTop: id) else { return false }
            return hex.inboxNumber ?? hex.id > number && (filter.peer == nil || hex.peer == filter.peer) && (!filter.unread || hex.unread)
        }
    }

    /// For links of a hex, and of those inside it, that an earlier hex of the inbox has too, by URL: the newest of those. Looks at the
    /// first 500 links.
    public func earlierLinks(of detail: HexDetail) throws -> [[UInt8]: EarlierLink] {
        var earlier: [[UInt8]: EarlierLink] = [:]
        for link in (detail.content.links + detail.content.childLinks).prefix(Self.linksWithEarlier) {
            let url = detail.content.withBytes(of: link.url) { Array($0) }
            guard earlier[url] == nil, let id = try hexes(with: url, in: .inbox, before: detail.summary.id).first,
                let hex = try summary(ofTop: id), hex.id != (try summary(ofTop: detail.summary.id))?.id
            else { continue }
            earlier[url] = EarlierLink(hex: hex.id, receivedAt: hex.receivedAt, peer: hex.peerLabel)
        }
        return earlier
    }

    /// The newest hexes below an id with a URL, by the index; of those inside others too.
    private func hexes(with url: [UInt8], in location: HexLocation, before id: Int64) throws -> [Int64] {
        let keys = [SearchKey.url(url), SearchKey.key(.place, Array(location.rawValue.utf8))]
        return try all(
            """
            SELECT found.rowid FROM
                (SELECT rowid FROM search WHERE search MATCH ? AND rowid < ? ORDER BY rowid DESC LIMIT \(Self.compared)) AS found
            WHERE EXISTS (SELECT 1 FROM link
                WHERE link.id BETWEEN found.rowid << 13 AND (found.rowid << 13) + 8191 AND CAST(link.url AS BLOB) = ?)
            """, keys.map(SearchKey.condition).joined(separator: " AND "), id, url
        ) { $0.int64(0) }
    }
}
