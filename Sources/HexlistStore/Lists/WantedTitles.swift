internal import GRDB
internal import HexlistModel

/// A link of My Hexlist without a description, for which the daemon reads the title of its page.
public struct PendingTitle: Sendable, Equatable {
    public var id: Int64
    /// The hex that has the link.
    public var hex: Int64
    public var url: String

    /// Maximum number of attempts. An attempt is counted when it begins, so that a link whose page crashes the daemon is not tried forever.
    public static let attempts = 3
    /// Maximum number of waiting links. Titles of further links are not read.
    static let maximum = 10_000
}

extension StoreReader {
    /// Returns the first waiting links.
    /// - Parameter run: identifies the current run of the daemon. Links that it has tried are skipped.
    public func wantedTitles(notTriedIn run: Int64, limit: Int) throws -> [PendingTitle] {
        try all("SELECT id, hex, url FROM wantedTitle WHERE run <> ? ORDER BY id LIMIT ?", run, limit) {
            PendingTitle(id: $0.int64(0), hex: $0.int64(1), url: $0.text(2))
        }
    }
}

extension HexStore {
    /// Counts an attempt to read a title.
    /// - Parameter run: the run of the daemon.
    /// - Returns: whether the attempt may begin. If `false`, the link has used up its attempts, got a description meanwhile, or was
    ///   deleted, and does not wait any more.
    public func beginTitleAttempt(_ wanted: PendingTitle, in run: Int64) async throws -> Bool {
        try await write { writer in
            try writer.change {
                let attempts = try writer.first("SELECT attempts FROM wantedTitle WHERE id = ?", wanted.id) { $0.int(0) }
                guard let attempts else { return false }
                guard try attempts < PendingTitle.attempts && !writer.untitledLinks(wanted).isEmpty else {
                    try writer.run("DELETE FROM wantedTitle WHERE id = ?", wanted.id)
                    return false
                }
                try writer.run("UPDATE wantedTitle SET attempts = attempts + 1, run = ? WHERE id = ?", run, wanted.id)
                return true
            }
        }
    }

    /// Ends the wait of a link, and stores the title as its description, unless it has one.
    /// - Parameter title: the title; `nil` if the page has none.
    /// - Returns: the number of links that got the title.
    @discardableResult
    public func finishTitle(_ wanted: PendingTitle, title: String?, at now: Int64) async throws -> Int {
        try await write { writer in
            try writer.change {
                try writer.run("DELETE FROM wantedTitle WHERE id = ?", wanted.id)
                guard let title else { return 0 }
                let links = try writer.untitledLinks(wanted)
                guard !links.isEmpty, try writer.isWritable(writer.listOfContents(wanted.hex)) else { return 0 }
                try writer.changeMine(at: now, in: writer.listOfContents(wanted.hex)) {
                    try $0.fillDescription(ofLinks: links.map { LinkPosition(linkID: $0).position }, in: wanted.hex, with: title)
                }
                return links.count
            }
        }
    }
}

extension StoreWriter {
    /// SQL condition: whether a link has no description and the address of a web page.
    private static let isUntitled = "trim(description) = '' AND (url LIKE 'http://%' OR url LIKE 'https://%')"

    /// Adds the given links that have no description and the address of a web page to the waiting ones.
    /// - Parameter links: values of `link.id`.
    func enqueueTitles(ofLinks links: ClosedRange<Int64>) throws {
        try run(
            """
            INSERT OR IGNORE INTO wantedTitle (hex, url) SELECT id >> 13, url FROM link WHERE id BETWEEN ? AND ? AND \(Self.isUntitled)
            ORDER BY id LIMIT max(0, \(PendingTitle.maximum) - (SELECT count(*) FROM wantedTitle))
            """, links.lowerBound, links.upperBound)
    }

    /// Adds the given links of a hex that have no description and the address of a web page to the waiting ones.
    func enqueueTitles(of links: [(url: String, description: String)], in hex: Int64) throws {
        guard !links.isEmpty else { return }
        var free = PendingTitle.maximum - (try first("SELECT count(*) FROM wantedTitle") { $0.int(0) } ?? 0)
        for link in links where free > 0 {
            free -= try run(
                """
                INSERT OR IGNORE INTO wantedTitle (hex, url) SELECT ?1, url FROM (SELECT ?2 AS url, ?3 AS description)
                WHERE \(Self.isUntitled)
                """, hex, link.url, link.description)
        }
    }

    /// Returns the ids of the hex's links with the URL that still have no description; empty if the hex is not in My Hexlist any more.
    fileprivate func untitledLinks(_ wanted: PendingTitle) throws -> [Int64] {
        guard try summary(ofTop: wanted.hex)?.location == .mine else { return [] }
        return try all(
            "SELECT id FROM link WHERE id BETWEEN ?1 << 13 AND (?1 << 13) + 8191 AND url = ?2 AND \(Self.isUntitled)", wanted.hex,
            wanted.url
        ) { $0.int64(0) }
    }
}
