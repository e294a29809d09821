public import HexlistModel

/// A stored hex without its links, as lists show it.
public struct HexSummary: Sendable, Equatable {
    /// The id of the hex on this machine, which users and scripts use; never reused.
    public var id: Int64
    public var location: HexLocation
    /// The position in the inbox; `nil` outside the inbox. Counts arrivals, so the order does not depend on the wall clock.
    public var inboxNumber: Int64?
    /// The proven sender; `nil` in My Hexlist.
    public var peer: PeerID?
    /// The name that the proven sender gives itself, as last received. Untrusted text of a peer.
    public var peerName: String
    public var peerAlias: String?
    public var peerTrust: Trust
    public var peerKind = PeerKind.hexlist
    /// The UUID of the sender that the hex claims, without proof.
    public var senderUUID: String
    public var senderName: String
    public var description: String
    /// The one line that stands for the hex in lists (`HexSubject`).
    public var subject: String
    public var color: String
    /// The number of links of the hex itself, without those of inner hexes.
    public var linkCount: Int
    /// The number of inner hexes, at all levels.
    public var hexesInside: Int
    /// The number of links of all inner hexes.
    public var linksInside: Int
    /// The hex that contains this one; `nil` if this is not an inner hex. For an inner hex, `location` and the `peer` properties are those
    /// of the topmost hex.
    public var parent: Int64?
    public var unread: Bool
    /// Milliseconds since 1970.
    public var receivedAt: Int64
    public var messageID: MessageID?
    /// Upper bound of the bytes of the hex, as quotas count it. For hexes that the first version of Hexlist stored, the bytes of the frame.
    public var byteCount: Int
    /// The position at the top level of My Hexlist (`OrderKey`); `nil` elsewhere.
    public var orderKey: [UInt8]?

    /// The position of the hex in its list.
    public var cursor: HexCursor { HexCursor(number: inboxNumber ?? id, orderKey: orderKey) }

    /// The display name of the proven sender; `nil` in My Hexlist.
    public var peerLabel: PeerDisplayName? {
        peer.map { PeerDisplayName($0, kind: peerKind, name: peerName, alias: peerAlias, trust: peerTrust) }
    }
}

/// A stored hex with its whole content.
public struct HexDetail: Sendable {
    public var summary: HexSummary
    /// The content, including inner hexes and unknown members. All its texts are in `content.arena`.
    public var content: HexContent
    /// The ids of the inner hexes, in the order of `content.children`.
    public var childIDs: [Int64] = []
}

/// The hexes of a list: a location, optionally restricted to unread hexes or to one sender.
public struct HexFilter: Sendable, Equatable {
    public var location: HexLocation
    /// Whether only unread hexes match.
    public var unread: Bool
    /// The required proven sender; `nil` for all senders.
    public var peer: PeerID?

    public init(location: HexLocation = .inbox, unread: Bool = false, peer: PeerID? = nil) {
        self.location = location
        self.unread = unread
        self.peer = peer
    }
}

/// A set of hexes to change, which is processed page by page.
public enum HexSet: Sendable, Equatable {
    /// All hexes with an id in a range, lowest id first, optionally only those in one location or of one proven sender.
    case ids(ClosedRange<Int64>, in: HexLocation?, of: PeerID? = nil)
    /// All hexes of a list, in its order.
    case list(HexFilter)

    /// Maximum number of hexes that one transaction changes.
    public static let pageLimit = 1_000
}

/// A page of a list: consecutive items, and the position of the next page.
public struct Page<Item: Sendable>: Sendable {
    public var items: [Item]
    /// The value of `after` (or `before`) for the next page; `nil` on the last page.
    public var next: Int64?
}

/// The position of a hex, or of a link, in a list of hexes or of their links. A page begins after it.
///
/// My Hexlist is ordered by order key, so the cursor has the key too: the position is the same if the hex is moved or deleted between two
/// pages.
public struct HexCursor: Sendable, Equatable, ExpressibleByIntegerLiteral {
    /// Of a hex the number by which its list is ordered: in the inbox its inbox number, elsewhere its id. Of a link `ListedLink.number`.
    public var number: Int64
    /// The order key of the hex at the top level of My Hexlist. `nil` for its present one, and in other lists.
    public var orderKey: [UInt8]?

    public init(number: Int64, orderKey: [UInt8]? = nil) { (self.number, self.orderKey) = (number, orderKey) }

    public init(integerLiteral number: Int64) { self.init(number: number) }

    /// The position directly before this one: the inbox and held hexes descend by number, My Hexlist ascends by key and number.
    var predecessor: HexCursor { HexCursor(number: orderKey == nil ? number &+ 1 : number &- 1, orderKey: orderKey) }
}

/// The text of a cursor, for the local API: the number, or `NUMBER-KEY` with the bytes of the key as hexadecimal digits.
extension HexCursor: LosslessStringConvertible {
    /// Maximum bytes of an order key.
    private static let maximumKeyBytes = 128

    public var description: String {
        guard let orderKey else { return "\(number)" }
        return "\(number)-\(Hexadecimal.encode(orderKey).lowercased())"
    }

    public init?(_ text: String) {
        let parts = text.utf8.split(separator: UInt8(ascii: "-"), maxSplits: 1, omittingEmptySubsequences: false)
        guard let number = Int64(String(parts[0]) ?? ""), number >= 0 else { return nil }
        self.init(number: number)
        guard parts.count == 2 else { return }
        guard let key = Hexadecimal.decode(Substring(parts[1])), (1...Self.maximumKeyBytes).contains(key.count),
            !parts[1].contains(where: { (UInt8(ascii: "A")...UInt8(ascii: "F")).contains($0) })
        else { return nil }
        orderKey = key
    }
}

/// A page of a list of hexes or of their links.
public struct HexListPage<Item: Sendable>: Sendable {
    public var items: [Item]
    /// The value of `after` for the next page; `nil` on the last page.
    public var next: HexCursor?
}
