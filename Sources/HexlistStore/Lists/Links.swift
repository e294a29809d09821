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
    public var peer: PeerDisplayName?
}

extension StoreReader {
    /// The most hexes and links that one page of links looks at; each 4 KiB of a hex count as one too.
    private static let examined = 5_000
    /// The most links of one hex that earlier ones are looked for.
    private static let linksWithEarlier = 500

    /// A page of the links of a list of hexes: the newest hex first, and its links in their order, then those of the hexes inside it.
    ///
    /// - Parameters:
    ///   - unique: whether a link is left out where a newer hex of the list, or an earlier place in its hex, has the same URL.
    ///   - limit: the most links, up to 10 000. There are fewer if their texts exceed 4 MiB, or many are left out.
    ///   - after: the `next` of the previous page.
    public func linkPage(_ filter: HexFilter, unique: Bool, limit: Int = 20, after: Int64? = nil) throws -> Page<ListedLink> {
        var room = PageLimit(items: pageLimit(limit))
        var links: [ListedLink] = []
        var (cursor, examined) = (after, 0)
        let holders = LinkHolders(of: filter.location, in: self)
        var place = after.map { ($0 >> 13) &+ 1 }
        while true {
            let page = try hexPage(filter, limit: 100, after: place)
            for hex in page.items {
                guard examined < Self.examined else { return Page(items: links, next: cursor) }
                examined += 1 + min(max(0, hex.byteCount) / 4_096, 1_000)
                var seen: Set<[UInt8]> = []
                for link in try hex.linkCount + hex.linksInside == 0 ? [] : self.links(of: hex) {
                    let isNew = !unique || seen.insert(link.url).inserted
                    guard link.cursor < after ?? .max else { continue }
                    guard examined < Self.examined, !holders.isSpent else { return Page(items: links, next: cursor) }
                    examined += 1
                    if try isNew && !(unique && isNewer(link, filter, holders)) {
                        guard room.take(link.url.count + link.description.count) else { return Page(items: links, next: cursor) }
                        links.append(link)
                    }
                    cursor = link.cursor
                }
                cursor = (hex.inboxNumber ?? hex.id) << 13  // behind its last link
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
    private func isNewer(_ link: ListedLink, _ filter: HexFilter, _ holders: LinkHolders) throws -> Bool {
        let number = link.hex.inboxNumber ?? link.hex.id
        let newer = try holders.newest(with: link.url, before: .max) { top in
            top.number > number && (filter.peer == nil || top.peer == filter.peer) && (!filter.unread || top.unread)
        }
        return newer != nil
    }

    /// For links of a hex, and of those inside it, that an earlier hex of the inbox has too, by URL: the newest of those. Looks at the
    /// first 500 links, as long as `LinkHolders` compares.
    public func earlierLinks(of detail: HexDetail) throws -> [[UInt8]: EarlierLink] {
        var earlier: [[UInt8]: EarlierLink] = [:]
        let holders = LinkHolders(of: .inbox, in: self)
        let own = try summary(ofTop: detail.summary.id)?.id
        for link in (detail.content.links + detail.content.childLinks).prefix(Self.linksWithEarlier) where !holders.isSpent {
            let url = detail.content.withBytes(of: link.url) { Array($0) }
            guard earlier[url] == nil, let hex = try holders.newest(with: url, before: detail.summary.id, where: { $0.id != own })
            else { continue }
            earlier[url] = EarlierLink(hex: hex.id, receivedAt: hex.receivedAt, peer: hex.label)
        }
        return earlier
    }
}

/// Finds hexes of a list that have a URL: by the index, and then by comparing, for two URLs may have one key. For one request: a hex is read
/// once, however many links ask for it.
private final class LinkHolders {
    /// The topmost hex that a hex is in, or the hex itself.
    struct Top {
        var id: Int64
        /// The position in the list.
        var number: Int64
        var peer: PeerID?
        var unread: Bool
        var receivedAt: Int64
        var label: PeerDisplayName?
    }

    /// The most hexes with a key that are looked at for one link, and of those the most that have not its URL: chance makes none.
    private static let (candidates, mismatches) = (64, 4)
    /// The most that one request compares: a link counts as one, a hex as 16, and 64 bytes of their texts as one too. What is kept of them
    /// until the request ends is some MiB at most.
    private static let compared = 50_000
    private static let (hexCost, bytesOfCost) = (16, 64)

    private let reader: StoreReader
    private let place: String
    private var tops: [Int64: Top?] = [:]
    private var urls: [Int64: Set<[UInt8]>] = [:]
    private var spent = 0

    /// Whether this request has compared as much as it may: links that are left have to wait for another one.
    var isSpent: Bool { spent >= Self.compared }

    init(of location: HexLocation, in reader: StoreReader) {
        self.reader = reader
        place = SearchKey.condition(SearchKey.key(.place, Array(location.rawValue.utf8)))
    }

    /// The topmost hex of the newest hex below an id that has the URL and whose topmost hex is wanted.
    func newest(with url: [UInt8], before id: Int64, where isWanted: (Top) -> Bool) throws -> Top? {
        let statement = try SQLStatement(
            "SELECT rowid FROM search WHERE search MATCH ? AND rowid < ? ORDER BY rowid DESC LIMIT \(Self.candidates)", on: reader.db)
        defer { statement.reset() }
        try statement.bind(["\(SearchKey.condition(SearchKey.url(url))) AND \(place)", id])
        var mismatches = 0
        while mismatches < Self.mismatches, try statement.step() {
            let candidate = statement.int64(0)
            guard let top = try top(of: candidate), isWanted(top) else { continue }
            if try urls(of: candidate).contains(url) { return top }
            mismatches += 1
        }
        return nil
    }

    private func top(of id: Int64) throws -> Top? {
        if let known = tops[id] { return known }
        let top = try reader.summary(ofTop: id).map { hex in
            spend(bytes: [hex.description, hex.senderUUID, hex.senderName, hex.color].reduce(0) { $0 + $1.utf8.count })
            return Top(
                id: hex.id, number: hex.inboxNumber ?? hex.id, peer: hex.peer, unread: hex.unread, receivedAt: hex.receivedAt,
                label: hex.peerLabel)
        }
        spent += Self.hexCost
        tops[id] = .some(top)
        return top
    }

    private func urls(of id: Int64) throws -> Set<[UInt8]> {
        if let known = urls[id] { return known }
        let found = try reader.all("SELECT url FROM link WHERE id BETWEEN ?1 << 13 AND (?1 << 13) + 8191", id) { row in
            let url = row.bytes(0)
            spent += 1
            spend(bytes: url.count)
            return url
        }
        urls[id] = Set(found)
        return urls[id] ?? []
    }

    private func spend(bytes: Int) { spent += bytes / Self.bytesOfCost }
}
