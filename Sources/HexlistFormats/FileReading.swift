/// What was read of a file.
public struct FileReading: Sendable, Equatable {
    public var forest = HexForest()
    /// What was left out, by the reason, with how many and the first of them.
    public private(set) var skipped: [Skip] = []

    public struct Skip: Sendable, Equatable {
        public var reason: Reason
        public var count: Int
        /// Of the file: clean it where it is shown.
        public var first: String
    }

    public enum Reason: String, Sendable {
        case noLink = "has no link"
        case query = "is a query of the browser, and no link"
        case tooLong = "is longer than 64 KiB"
        case unreadable = "cannot be read"
    }

    /// The most bytes of a text of a hex (Docs/Protocol.md).
    static let textBytes = 64 << 10

    mutating func skip(_ reason: Reason, _ what: String) {
        if let index = skipped.firstIndex(where: { $0.reason == reason }) {
            skipped[index].count += 1
        } else {
            skipped.append(Skip(reason: reason, count: 1, first: what))
        }
    }

    /// Adds a link to a hex, unless it is none.
    mutating func add(_ link: HexForest.Link, to hex: Int) {
        if link.url.isEmpty { return skip(.noLink, link.title) }
        if link.url.utf8.starts(with: "place:".utf8) { return skip(.query, link.title.isEmpty ? link.url : link.title) }
        if max(link.url.utf8.count, link.title.utf8.count) > Self.textBytes { return skip(.tooLong, link.title) }
        forest.hexes[hex].links.append(link)
    }
}
