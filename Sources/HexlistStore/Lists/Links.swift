internal import GRDB
public import HexlistJSON
public import HexlistModel

/// A link in a list of the links of all hexes.
public struct ListedLink: Sendable {
    /// The topmost hex.
    public var hex: HexSummary
    /// The id of the hex that has the link: `hex` or one of its inner hexes.
    public var id: Int64
    /// The position of the link in the hex `id`, from 0.
    public var position: Int
    public var url: [UInt8]
    public var description: [UInt8]
    public var service: [UInt8]
    public var annotations: Annotations
    /// The mark of a dead link; `nil` for other links.
    public var dead: DeadLink?
    public var unread: Bool
    /// The number of the link in the list: that of the hex (`HexCursor.number`), shifted left by 13 bits, and the links after it in the hex.
    /// It descends from link to link of a hex.
    public var number: Int64

    /// The position of the link in a list of links.
    public var cursor: HexCursor { HexCursor(number: number, orderKey: hex.orderKey) }
}

/// An earlier hex of the inbox that has a link with the same identity (`NormalizedLinkAddress`).
public struct EarlierLink: Sendable, Equatable {
    /// The topmost hex.
    public var hex: Int64
    public var receivedAt: Int64
    public var peer: PeerDisplayName?
}

extension StoreReader {
    /// Maximum cost of one page: each hex and each link that is read counts as 1, and each 4 KiB of a hex counts as 1 more.
    private static let maxExamined = 5_000
    /// Maximum number of links of one hex for which `earlierLinks` searches.
    private static let linksWithEarlier = 500

    /// Returns a page of the links of a list of hexes, in the order of the list. Of each hex its own links come first, then the links of
    /// its inner hexes.
    ///
    /// - Parameters:
    ///   - unique: whether to omit a link whose identity a newer hex of the list has, or an earlier link of the same topmost hex.
    ///   - limit: maximum number of links, up to 10 000. Fewer are returned if their texts exceed 4 MiB, or if many links are omitted.
    ///   - after: the `next` of the previous page.
    public func linkPage(_ filter: HexFilter, unique: Bool, limit: Int = 20, after: HexCursor? = nil) throws -> HexListPage<ListedLink> {
        var remaining = PageCapacity(items: pageLimit(limit))
        var links: [ListedLink] = []
        var (cursor, examined) = (after, 0)
        let holders = EarlierLinkFinder(of: filter.location, unread: filter.unread, in: self)
        let first = try after.map { try withOrderKey(HexCursor(number: $0.number >> 13, orderKey: $0.orderKey), in: filter.location) }
        var pageCursor = first?.predecessor
        while true {
            let page = try hexPage(filter, limit: 100, after: pageCursor)
            for hex in page.items {
                guard examined < Self.maxExamined else { return HexListPage(items: links, next: cursor) }
                examined += 1 + min(max(0, hex.byteCount) / 4_096, 1_000)
                var seen: Set<[UInt8]> = []
                for link in try hex.linkCount + hex.linksInside == 0 ? [] : self.links(of: hex) {
                    let isWanted = link.unread || !filter.unread
                    let isNew = isWanted && (!unique || seen.insert(NormalizedLinkAddress.of(link.url)).inserted)
                    if let after, hex.cursor == first, link.number >= after.number { continue }
                    guard examined < Self.maxExamined, !holders.isSpent else { return HexListPage(items: links, next: cursor) }
                    examined += 1
                    if try isNew && !(unique && isNewer(link, filter, holders)) {
                        guard remaining.take(link.url.count + link.description.count) else {
                            return HexListPage(items: links, next: cursor)
                        }
                        links.append(link)
                    }
                    cursor = link.cursor
                }
                cursor = HexCursor(number: hex.cursor.number << 13, orderKey: hex.orderKey)  // after the last link of the hex
            }
            guard let next = page.next else { return HexListPage(items: links, next: nil) }
            pageCursor = next
        }
    }

    /// Returns the links of a hex, then those of its inner hexes.
    public func links(of hex: HexSummary) throws -> [ListedLink] {
        guard let detail = try self.hex(hex.id) else { return [] }
        let content = detail.content
        let hexes = [(hex.id, content.links[...])] + content.children.indices.map { (detail.childIDs[$0], content.links(of: $0)) }
        let read = try readLinks(of: hex)
        let dead = try deadLinks(of: hexes.map(\.0))
        var number = hex.cursor.number << 13 | 8_191
        return hexes.flatMap { id, links in
            links.enumerated().map { position, link in
                defer { number -= 1 }
                let url = content.withBytes(of: link.url) { Array($0) }
                return ListedLink(
                    hex: hex, id: id, position: position, url: url,
                    description: content.withBytes(of: link.linkDescription) { Array($0) },
                    service: content.withBytes(of: link.service) { Array($0) }, annotations: content.annotations(link.extra),
                    dead: dead[id]?[url], unread: hex.unread && !read.contains(LinkPosition(hex: id, position: position)), number: number)
            }
        }
    }

    /// Whether a newer hex of the list has a link with the same identity.
    private func isNewer(_ link: ListedLink, _ filter: HexFilter, _ holders: EarlierLinkFinder) throws -> Bool {
        let number = link.hex.inboxNumber ?? link.hex.id
        let newer = try holders.newest(with: link.url, before: .max) { top in
            top.number > number && (filter.peer == nil || top.peer == filter.peer) && (!filter.unread || top.unread)
        }
        return newer != nil
    }

    /// Finds, for each link of a hex and of its inner hexes, the newest earlier hex of the inbox that has a link with the same identity.
    /// Examines the first 500 links, within the limits of `EarlierLinkFinder`. The keys of the result are the URLs of the links, unchanged.
    public func earlierLinks(of detail: HexDetail) throws -> [[UInt8]: EarlierLink] {
        var earlier: [[UInt8]: EarlierLink] = [:]
        let holders = EarlierLinkFinder(of: .inbox, unread: false, in: self)
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

/// Finds the hexes of a list that have a link with the identity of a given URL. Looks up the key of the identity in the search index, and
/// then compares the identities of the matches, because two may have the same key. An instance is used for one request and caches each hex
/// that it reads.
private final class EarlierLinkFinder {
    /// The topmost hex that contains a hex; the hex itself if it is not an inner hex.
    struct Top {
        var id: Int64
        /// The position of the hex in its list.
        var number: Int64
        var peer: PeerID?
        var unread: Bool
        var receivedAt: Int64
        var label: PeerDisplayName?
    }

    /// Maximum number of hexes with the same key that one lookup reads.
    private static let maxCandidates = 64
    /// Maximum number of these hexes that do not have the identity. Collisions of 64-bit keys are practically impossible by chance, so a
    /// peer must have made them on purpose.
    private static let maxMismatches = 4
    /// Maximum cost of one request: a link counts as 1, a hex as 16, and each 64 bytes of their texts as 1. Bounds the cache to some MiB.
    private static let maxCost = 50_000
    private static let (hexCost, bytesOfCost) = (16, 64)

    private let reader: StoreReader
    private let locationCondition: String
    /// Whether links that were read one by one count as missing.
    private let unread: Bool
    private var tops: [Int64: Top?] = [:]
    private var identities: [Int64: Set<[UInt8]>] = [:]
    private var spent = 0

    /// Whether the request has reached `maxCost`. Then the caller must stop and leave the remaining links to another request.
    var isSpent: Bool { spent >= Self.maxCost }

    init(of location: HexLocation, unread: Bool, in reader: StoreReader) {
        self.reader = reader
        self.unread = unread
        locationCondition = SearchKey.condition(SearchKey.key(.place, Array(location.rawValue.utf8)))
    }

    /// Finds the newest hex that has the identity of the URL, whose id is below `id`, and whose topmost hex satisfies `isWanted`.
    /// - Returns: that topmost hex.
    func newest(with url: [UInt8], before id: Int64, where isWanted: (Top) -> Bool) throws -> Top? {
        let statement = try SQLStatement(
            "SELECT rowid FROM search WHERE search MATCH ? AND rowid < ? ORDER BY rowid DESC LIMIT \(Self.maxCandidates)", on: reader.db)
        defer { statement.reset() }
        let identity = NormalizedLinkAddress.of(url)
        try statement.bind(["\(SearchKey.condition(SearchKey.address(identity))) AND \(locationCondition)", id])
        var mismatches = 0
        while mismatches < Self.maxMismatches, try statement.step() {
            let candidate = statement.int64(0)
            guard let top = try top(of: candidate), isWanted(top) else { continue }
            if try identities(of: candidate).contains(identity) { return top }
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

    private func identities(of id: Int64) throws -> Set<[UInt8]> {
        if let known = identities[id] { return known }
        let condition = unread ? " AND NOT EXISTS (SELECT 1 FROM readLink WHERE readLink.id = link.id)" : ""
        let found = try reader.all("SELECT url FROM link WHERE id BETWEEN ?1 << 13 AND (?1 << 13) + 8191\(condition)", id) { row in
            let url = row.bytes(0)
            spent += 1
            spend(bytes: url.count)
            return NormalizedLinkAddress.of(url)
        }
        identities[id] = Set(found)
        return identities[id] ?? []
    }

    private func spend(bytes: Int) { spent += bytes / Self.bytesOfCost }
}
