public import HexlistJSON
public import HexlistModel

/// The list of a folder of a share, or a part of it, as JSON on a file connection (Docs/Protocol.md).
///
///     {"entries":[{"name":"a.txt","kind":"file","size":3,"modified":1767323045678,"mediaType":"text/plain"}],"next":"a.txt","leftOut":1}
public struct FolderListing: Sendable, JSONEncodable {
    public enum Kind: String, CaseIterable, Sendable {
        case file, folder
    }

    public struct Entry: Sendable, JSONEncodable {
        /// A name as `SharePath` takes it. Text of a peer.
        public var name: String
        public var kind: Kind
        /// Bytes; `nil` for a folder.
        public var size: Int64?
        /// Milliseconds since 1970.
        public var modified: Int64?
        /// Printable ASCII.
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

    fileprivate static func number(_ entry: Entry, _ order: FileOrder) -> Int64 {
        switch order {
        case .name: 0
        case .size: entry.size ?? -1
        case .time: entry.modified ?? .min
        }
    }

    /// The most entries of one list.
    public static let maximumEntries = 500
    /// The most bytes of one that is read: so many entries, each byte of a name as an escape.
    public static let maximumBytes = 1 << 20
    private static let mediaTypeBytes = 127
    /// More than a folder has; of as many lists as are read there is room for the sum.
    private static let mostUnlisted: Int64 = 1 << 32
    /// The milliseconds of year 9999, and as many before 1970.
    private static let latest: Int64 = 253_402_300_799_999

    public var entries: [Entry] = []
    /// The place behind which the next part begins, in the list's order: `?after=`; `nil` where there is none.
    public var next: String?
    /// Entries of the folder that are in no part, because their names are no UTF-8: `leftOut`.
    public var unlisted = 0
    /// Entries of a list that was read whose names can be none, or whose kind is not known.
    public private(set) var leftOut = 0

    public init(entries: [Entry] = [], next: String? = nil) {
        self.entries = entries
        self.next = next
    }

    /// Reads a list of a peer. Members that are not known are passed over, and so are values of another kind where one may do without; an
    /// entry that names nothing is left out and counted.
    ///
    /// `nil` for what is no JSON, has no array `entries`, is longer than the bounds, or has a `next` that leads no further.
    /// - Parameter cursor: the place that was asked behind; `nil` for the first part.
    public init?(jsonBytes: [UInt8], by order: FileOrder = .name, after cursor: String?) {
        guard jsonBytes.count <= Self.maximumBytes, let json = try? JSONValue(parsing: jsonBytes), let object = try? JSONObject(json),
            let elements = object["entries"]?.elements, elements.count <= Self.maximumEntries
        else { return nil }
        for element in elements {
            if let entry = Self.entry(element) { entries.append(entry) } else { leftOut += 1 }
        }
        if let count = object["leftOut"]?.integer, count > 0 { unlisted = Int(clamping: min(count, Self.mostUnlisted)) }
        guard let next = object["next"], !next.isNull else { return }
        guard let text = next.string, let place = FolderCursor(text, order) else { return nil }
        if let cursor {
            guard let before = FolderCursor(cursor, order), before < place else { return nil }
        }
        self.next = text
    }

    /// Leaves the first entries, at least one.
    /// - Parameter order: that of the list.
    public mutating func cut(to limit: Int, by order: FileOrder) {
        guard entries.count > max(1, limit) else { return }
        entries.removeSubrange(max(1, limit)...)
        next = entries.last.map { $0.place(order).cursor(order) }
    }

    /// A page of this list, which has all entries of a folder in any order.
    public func page(by order: FileOrder, after cursor: String?, limit: Int) -> FolderListing {
        let after = cursor.flatMap { FolderCursor($0, order) }
        var page = self
        page.entries = entries.filter { entry in after.map { $0 < entry.place(order) } ?? true }.sorted {
            $0.place(order) < $1.place(order)
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

    /// The list as it is sent.
    public var wireBytes: [UInt8] {
        var json = JSONWriter(wireCapacity: 64 + 128 * entries.count)
        write(to: &json)
        return json.bytes
    }
}

extension FolderListing.Entry {
    func place(_ order: FileOrder) -> FolderCursor { FolderCursor(number: FolderListing.number(self, order), name: Array(name.utf8)) }
}
