internal import GRDB
internal import HexlistModel

// The read state of single links. The table `readLink` has the links of unread received hexes that were marked read individually. When all
// links of a hex and of its inner hexes are in it, the hex becomes read, and its entries are deleted. All other links have the state of
// their topmost hex.

/// Identifies a link by the hex that has it and its position in that hex.
public struct LinkPosition: Sendable, Hashable {
    public var hex: Int64
    /// From 0.
    public var position: Int

    public init(hex: Int64, position: Int) { (self.hex, self.position) = (hex, position) }

    /// - Parameter linkID: the column `link.id`.
    init(linkID: Int64) { (hex, position) = (linkID >> 13, Int(linkID & 8_191)) }

    /// The column `link.id`. Valid only if `position` is below `ProtocolLimits.links`.
    var id: Int64 { hex << 13 | Int64(position) }
}

extension HexStore {
    /// Marks links read or unread, in one transaction. A hex whose links are all read becomes read, and a read hex of which a link is
    /// marked unread becomes unread, with its other links read.
    ///
    /// - Returns: the number of links whose state changed.
    /// - Throws: `.notFound` if a hex or link is missing; `.badRequest` if the state of a link of My Hexlist would change. Then nothing is
    ///   changed.
    public func markLinks(_ links: [LinkPosition], unread: Bool) async throws -> Int {
        try await write(rows: links.count) { try $0.markLinks(links, unread: unread) }
    }
}

extension StoreReader {
    /// SQL condition: whether `readLink.id` is a link of the current row of `hex`, or of its inner hexes. Valid only for received hexes,
    /// whose inner hexes have the ids that follow their own.
    fileprivate static let isInTree = "readLink.id BETWEEN hex.id << 13 AND ((hex.id + hex.hexesInside) << 13) + 8191"

    /// Returns the links that were marked read individually in the topmost hex that contains a hex, at all levels; empty if the topmost hex
    /// is read or in My Hexlist.
    public func readLinks(of hex: HexSummary) throws -> Set<LinkPosition> {
        guard let top = try hex.parent == nil ? hex : summary(ofTop: hex.id), top.unread, top.location != .mine else { return [] }
        let found = try all("SELECT readLink.id FROM hex CROSS JOIN readLink ON \(Self.isInTree) WHERE hex.id = ?", top.id) {
            LinkPosition(linkID: $0.int64(0))
        }
        return Set(found)
    }
}

extension StoreWriter {
    /// Deletes the entries of received hexes, so that all their links have the state of the hex.
    func forgetReadLinks(of ids: [Int64]) throws {
        try run(
            """
            DELETE FROM readLink WHERE id IN (
                SELECT readLink.id FROM json_each(?) CROSS JOIN hex ON hex.id = json_each.value AND hex.location <> 'mine'
                CROSS JOIN readLink ON \(Self.isInTree))
            """, jsonArray(ids))
    }

    fileprivate func markLinks(_ links: [LinkPosition], unread: Bool) throws -> Int {
        try change {
            var tops: [(top: HexSummary, links: Set<LinkPosition>)] = []
            var indices: [Int64: Int] = [:]
            var tree: [Int64: (top: HexSummary, linkCount: Int)] = [:]
            for link in links {
                if tree[link.hex] == nil {
                    let count = try first("SELECT linkCount FROM hex WHERE id = ?", link.hex) { $0.int(0) }
                    guard let count, let top = try summary(ofTop: link.hex) else { throw HexlistError.noHex(link.hex) }
                    tree[link.hex] = (top, count)
                }
                guard let (top, count) = tree[link.hex] else { continue }
                guard 0..<count ~= link.position else {
                    throw HexlistError(
                        .notFound, "Hex \(link.hex) has no link \(link.position + 1).",
                        hint: "`hexlist show \(link.hex)` numbers its links.")
                }
                let index = indices[top.id] ?? tops.count
                if index == tops.count { tops.append((top, [])) }
                indices[top.id] = index
                tops[index].links.insert(link)
            }
            return try tops.reduce(0) { try $0 + mark($1.links, of: $1.top, unread: unread) }
        }
    }

    /// - Returns: the number of links whose state changed.
    private func mark(_ links: Set<LinkPosition>, of top: HexSummary, unread: Bool) throws -> Int {
        guard top.unread || unread else { return 0 }
        guard top.location != .mine else {
            guard top.unread != unread else { return 0 }
            throw HexlistError(
                .badRequest, "Hex \(top.id) is in My Hexlist, where links are not marked one by one.", hint: "Mark the whole hex.")
        }
        let list = jsonArray(links.map(\.id))
        guard unread else {
            let count = try run("INSERT OR IGNORE INTO readLink (id) SELECT value FROM json_each(?)", list)
            if try readLinks(of: top).count >= top.linkCount + top.linksInside { try setRead([top.id]) }
            return count
        }
        guard !top.unread else { return try run("DELETE FROM readLink WHERE id IN (SELECT value FROM json_each(?))", list) }
        try setRead([top.id], false)
        try run(
            """
            INSERT INTO readLink (id) SELECT link.id FROM hex
                CROSS JOIN link ON link.id BETWEEN hex.id << 13 AND ((hex.id + hex.hexesInside) << 13) + 8191
            WHERE hex.id = ? AND link.id NOT IN (SELECT value FROM json_each(?))
            """, top.id, list)
        return links.count
    }
}
