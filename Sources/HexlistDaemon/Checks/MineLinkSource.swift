import HexlistAPI
import HexlistModel
import HexlistStore

/// The links of My Hexlist that a check of links reads, in the order of lists.
struct MineLinkSource: Sendable {
    struct Link: Sendable {
        var position: LinkPosition
        var urlBytes: [UInt8]
    }

    private enum Rest {
        case links([Link])
        /// All links of My Hexlist after this cursor of `StoreReader.linkPage`; `nil` for the beginning.
        case all(after: HexCursor?)
    }

    /// Maximum number of hexes and links that a request may name, and maximum number of links that these hexes may have together.
    static let (maximumTargets, maximumLinks) = (1_000, 100_000)
    /// Number of links that are read from the store in one step.
    private static let page = 1_000

    /// Number of all links of the check, as of its beginning.
    let count: Int
    private var rest: Rest
    private(set) var isAtEnd: Bool

    /// - Throws: `notFound` if a hex or link does not exist; `badRequest` if one is not in My Hexlist, or if there are too many.
    init(_ wanted: MineCheckRequest, in store: HexStore) async throws {
        let hexes = wanted.hexes ?? []
        let numbers = wanted.links ?? []
        guard wanted.hexes != nil || wanted.links != nil else {
            count = try await store.read { try $0.mineLinkCount() }
            (rest, isAtEnd) = (.all(after: nil), false)
            return
        }
        guard hexes.count + numbers.count <= Self.maximumTargets else {
            throw HexlistError(.badRequest, "One request checks \(Self.maximumTargets) hexes and links at most.", hint: "Split them.")
        }
        guard numbers.allSatisfy({ $0.count == 2 && $0.allSatisfy { $0 > 0 } }) else {
            throw HexlistError(.badRequest, "`links`: a link has the id of its hex and its number, as [7,2].")
        }
        let links = try await store.read { reader in
            var links: [Link] = []
            var seen: Set<LinkPosition> = []
            func add(_ found: [ListedLink]) throws {
                for link in found where seen.insert(LinkPosition(hex: link.id, position: link.position)).inserted {
                    links.append(Link(position: LinkPosition(hex: link.id, position: link.position), urlBytes: link.url))
                }
                guard links.count <= Self.maximumLinks else {
                    throw HexlistError(
                        .badRequest, "One request checks \(Self.maximumLinks) links of named hexes at most.", hint: "Check fewer hexes.")
                }
            }
            for id in hexes { try add(reader.mineLinks(of: id)) }
            for pair in numbers {
                let (hex, position) = (pair[0], Int(clamping: pair[1] - 1))
                let found = try reader.mineLinks(of: hex).filter { $0.id == hex && $0.position == position }
                guard !found.isEmpty else {
                    throw HexlistError(
                        .notFound, "Hex \(hex) has no link \(pair[1]).", hint: "`hexlist show \(hex)` numbers its links.")
                }
                try add(found)
            }
            return links
        }
        (count, rest, isAtEnd) = (links.count, .links(links), links.isEmpty)
    }

    /// Returns the next links, and sets `isAtEnd` if they are the last ones.
    mutating func next(in store: HexStore) async throws -> [Link] {
        switch rest {
        case .links(let links):
            isAtEnd = true
            return links
        case .all(let cursor):
            let page = try await store.read {
                try $0.linkPage(HexFilter(location: .mine), unique: false, limit: Self.page, after: cursor)
            }
            rest = .all(after: page.next)
            isAtEnd = page.next == nil
            return page.items.map { Link(position: LinkPosition(hex: $0.id, position: $0.position), urlBytes: $0.url) }
        }
    }
}
