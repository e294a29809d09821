public import HexlistJSON
public import HexlistModel

/// One page of the listing of a shared folder, as JSON on a file connection (Docs/Protocol.md).
///
///     {"entries":[{"name":"a.txt","kind":"file","size":3,"modified":1767323045678,"mediaType":"text/plain"}],"next":"a.txt","leftOut":1}
public struct FolderListing: Sendable, JSONEncodable {
    public enum Kind: String, CaseIterable, Sendable {
        case file, folder
    }

    public struct Entry: Sendable, JSONEncodable {
        /// The name, valid by `SharePath.isName`. Untrusted text.
        public var name: String
        public var kind: Kind
        /// Size in bytes; `nil` for a folder.
        public var size: Int64?
        /// Modification time in milliseconds since 1970.
        public var modified: Int64?
        /// The media type, such as `text/plain`, in printable ASCII.
        public var mediaType: String?

        public init(name: String, kind: Kind, size: Int64? = nil, modified: Int64? = nil, mediaType: String? = nil) {
            (self.name, self.kind, self.size, self.modified, self.mediaType) = (name, kind, size, modified, mediaType)
        }

        public func write(to json: inout JSONWriter) {
            json.object { json in
                json.member("name", name)
                json.member("kind", kind.rawValue)
                json.member("size", size)
                json.member("modified", modified)
                json.member("mediaType", mediaType)
            }
        }
    }

    fileprivate static func number(_ entry: Entry, _ order: FolderSortOrder) -> Int64 {
        switch order {
        case .name: 0
        case .size: entry.size ?? -1
        case .time: entry.modified ?? .min
        }
    }

    /// Maximum number of entries in a page.
    public static let maximumEntries = 500
    /// Maximum bytes of a page that is parsed. Enough for `maximumEntries` entries, even if every byte of a name is escaped.
    public static let maximumBytes = 1 << 20
    private static let mediaTypeBytes = 127
    /// The greatest accepted value of a peer's `leftOut`. The sum over all pages can therefore not overflow.
    private static let maximumUnlisted: Int64 = 1 << 32
    /// The greatest accepted absolute value of a peer's times, in milliseconds: from 1970 to the end of the year 9999.
    private static let latest: Int64 = 253_402_300_799_999

    public var entries: [Entry] = []
    /// The cursor of the next page (`?after=`); `nil` on the last page.
    public var next: String?
    /// Number of entries in the folder that are on no page, because their names are not UTF-8. Its JSON name is `leftOut`.
    public var unlisted = 0
    /// Number of entries of a parsed page that were dropped, because their name is invalid or their kind is unknown.
    public private(set) var leftOut = 0

    public init(entries: [Entry] = [], next: String? = nil) {
        self.entries = entries
        self.next = next
    }

    /// Parses a page that a peer sent. Unknown members are ignored, and so are optional members of a wrong type. Entries with an invalid
    /// name or kind are dropped, and counted in `leftOut`.
    ///
    /// Returns `nil` if the page is not JSON, has no array `entries`, or exceeds the limits, or if its `next` does not come after the
    /// requested cursor.
    /// - Parameter cursor: the cursor of the request; `nil` for the first page.
    public init?(jsonBytes: [UInt8], by order: FolderSortOrder = .name, after cursor: String?) {
        guard jsonBytes.count <= Self.maximumBytes, let json = try? JSONValue(parsing: jsonBytes), let object = try? JSONObject(json),
            let elements = object["entries"]?.elements, elements.count <= Self.maximumEntries
        else { return nil }
        for element in elements {
            if let entry = Self.entry(element) { entries.append(entry) } else { leftOut += 1 }
        }
        if let count = object["leftOut"]?.integer, count > 0 { unlisted = Int(clamping: min(count, Self.maximumUnlisted)) }
        guard let next = object["next"], !next.isNull else { return }
        guard let text = next.string, let nextCursor = FolderCursor(text, order) else { return nil }
        if let cursor {
            guard let before = FolderCursor(cursor, order), before < nextCursor else { return nil }
        }
        self.next = text
    }

    /// Shortens the page to `limit` entries, but at least one, and sets `next`.
    /// - Parameter order: the order of the page's entries.
    public mutating func cut(to limit: Int, by order: FolderSortOrder) {
        guard entries.count > max(1, limit) else { return }
        entries.removeSubrange(max(1, limit)...)
        next = entries.last.map { $0.cursor(order).text(order) }
    }

    /// Returns a page of this listing. The listing must contain all entries of the folder, in any order.
    public func page(by order: FolderSortOrder, after cursor: String?, limit: Int) -> FolderListing {
        let after = cursor.flatMap { FolderCursor($0, order) }
        var page = self
        page.entries = entries.filter { entry in after.map { $0 < entry.cursor(order) } ?? true }.sorted {
            $0.cursor(order) < $1.cursor(order)
        }
        page.next = nil
        page.cut(to: limit, by: order)
        return page
    }

    private static func entry(_ json: JSONValue) -> Entry? {
        guard let object = try? JSONObject(json), let name = object["name"]?.string, SharePath.isName(name),
            let kind = object["kind"]?.string.flatMap({ Kind(utf8: $0.utf8) })
        else { return nil }
        var entry = Entry(name: name, kind: kind)
        if kind == .file, let size = object["size"]?.integer, size >= 0 { entry.size = size }
        if let modified = object["modified"]?.integer, (-latest...latest).contains(modified) { entry.modified = modified }
        if let type = object["mediaType"]?.string, (1...mediaTypeBytes).contains(type.utf8.count),
            type.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
        {
            entry.mediaType = type
        }
        return entry
    }

    public func write(to json: inout JSONWriter) {
        json.object { json in
            json.named("entries") { json in json.array(entries) { $1.write(to: &$0) } }
            json.member("next", next)
            if unlisted > 0 { json.member("leftOut", unlisted) }
        }
    }

    /// The page as JSON, as it is sent to a peer.
    public var wireBytes: [UInt8] {
        var json = JSONWriter(wireCapacity: 64 + 128 * entries.count)
        write(to: &json)
        return json.bytes
    }
}

extension FolderListing.Entry {
    func cursor(_ order: FolderSortOrder) -> FolderCursor {
        FolderCursor(number: FolderListing.number(self, order), name: Array(name.utf8))
    }
}
