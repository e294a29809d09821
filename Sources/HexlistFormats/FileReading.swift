import HexlistModel

/// The hexes that were read from a file, and the entries that were left out.
public struct FileReading: Sendable, Equatable {
    public var forest = HexTree()
    /// Entries that could not be read as links or hexes, grouped by reason.
    public private(set) var skipped: [Skip] = []

    /// A group of entries that were left out for the same reason.
    public struct Skip: Sendable, Equatable {
        public var reason: Reason
        public var count: Int
        /// The first entries of the group, at most `shown`.
        public var items: [Item]

        /// Maximum entries in `items`.
        public static let shown = 5
    }

    public struct Item: Sendable, Equatable {
        /// Number of the line in which the entry begins, counted from 1.
        public var line: Int
        /// Text of the file. Not safe for a terminal.
        public var text: String
    }

    public enum Reason: String, Sendable, CaseIterable {
        case noLink = "has no link"
        case noScheme = "has no scheme, as https:// is one"
        case malformed = "has an address with line breaks, < or > in it"
        case openQuote = "has a quotation mark that is not closed"
        case inNote = "is a link in a note, of which only the text is kept"
        case image = "is an image"
        case query = "is a query of the browser, not a link"
        case tooLong = "is longer than 64 KiB"
        case moreCells = "has a cell without a column name"
        case noHex = "is no hex"
    }

    /// Maximum bytes of one string of a hex (Docs/Protocol.md).
    static let textBytes = 64 << 10

    /// Records that an entry is left out. Texts and lines are kept only for the first entries of each reason.
    /// - Parameter line: the entry's line number; evaluated only if it is kept, because computing it takes time.
    mutating func skip(_ reason: Reason, _ what: String, line: @autoclosure () -> Int) {
        var index = skipped.firstIndex { $0.reason == reason }
        if index == nil {
            index = skipped.count
            skipped.append(Skip(reason: reason, count: 0, items: []))
        }
        guard let index else { return }
        skipped[index].count += 1
        if skipped[index].items.count < Skip.shown {
            skipped[index].items.append(Item(line: line(), text: PeerName.cut(what, bytes: 4_096)))
        }
    }

    /// Adds a link to a hex, or records it as left out if its address is invalid or if a string is too long.
    /// - Parameter isOwn: whether the file was written by Hexlist. Then the syntax of the address is not checked.
    /// - Returns: whether the link was added.
    @discardableResult
    mutating func add(_ link: HexTree.Link, to hex: Int, isOwn: Bool = false, line: @autoclosure () -> Int) -> Bool {
        if let reason = Self.reason(against: link, isOwn: isOwn) {
            skip(reason, link.title.isEmpty ? link.url : link.title, line: line())
            return false
        }
        forest.hexes[hex].links.append(link)
        return true
    }

    private static func reason(against link: HexTree.Link, isOwn: Bool) -> Reason? {
        if link.url.isEmpty { return .noLink }
        if link.url.utf8.starts(with: "place:".utf8) { return .query }
        if max(link.url.utf8.count, link.title.utf8.count) > textBytes { return .tooLong }
        return isOwn ? nil : LinkAddress.fault(link.url)
    }
}

/// Validates addresses in files of other programs.
enum LinkAddress {
    /// Schemes whose address contains a program or a document, so it may contain any character, even line breaks.
    private static let free = ["javascript", "data", "vbscript"]

    /// Returns the reason why a text is not a valid address; `nil` if it is valid.
    static func fault(_ text: String) -> FileReading.Reason? {
        guard LinkTextKind(text) == .link else { return .noScheme }
        let scheme = text.utf8.prefix { $0 != UInt8(ascii: ":") }.map(ASCII.lowercased)
        if free.contains(where: { $0.utf8.elementsEqual(scheme) }) { return nil }
        let isWhole = text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "<") && $0 != UInt8(ascii: ">") }
        return isWhole ? nil : .malformed
    }
}
