public import HexlistJSON
public import HexlistModel

/// A fetched file in the cache, stored under its digest.
public struct CachedFile: JSONShape, Sendable, Equatable {
    /// The name of the file. Derived from text of a peer: clean it before display.
    public var file: String
    public var path: String
    public var size: Int64
    /// The SHA-256 digest of the file, as 64 hexadecimal digits.
    public var sha256: String
    /// Whether the file is a kept file, which stays until its hex is deleted.
    public var kept: Bool
    /// The hex for which the file was last fetched. The hex may be deleted.
    public var hex: Int64?
    public var usedAt: Timestamp

    public init(file: String, path: String, size: Int64, sha256: String, kept: Bool, hex: Int64?, usedAt: Timestamp) {
        self.file = file
        self.path = path
        self.size = size
        self.sha256 = sha256
        self.kept = kept
        self.hex = hex
        self.usedAt = usedAt
    }
}

/// Totals of the cache.
public struct CacheSummary: JSONShape, Sendable, Equatable {
    public var files: Int
    public var bytes: Int64
    /// Maximum size of the cache in bytes.
    public var most: Int64
    /// Total size in bytes of the files that running and waiting transfers will add to the cache.
    public var coming: Int64
    /// Number of kept files, and their total bytes. Kept files do not count towards `most`.
    public var kept: Int
    public var keptBytes: Int64
    /// Number of copies of offered files (`hexlist send --copy`), and their total bytes; `nil` if there are none.
    public var copies: Int?
    public var copyBytes: Int64?

    public init(
        files: Int, bytes: Int64, most: Int64, coming: Int64, kept: Int, keptBytes: Int64, copies: Int? = nil, copyBytes: Int64? = nil
    ) {
        self.files = files
        self.bytes = bytes
        self.most = most
        self.coming = coming
        self.kept = kept
        self.keptBytes = keptBytes
        self.copies = copies
        self.copyBytes = copyBytes
    }
}

/// The result of `POST /v1/cache/clear`: the number of deleted files, and their total bytes.
public struct CacheClearResult: JSONShape, Sendable, Equatable {
    public var removed: Int
    public var bytes: Int64
    /// Number of files that were not deleted, because a program has them open.
    public var inUse: Int

    public init(removed: Int, bytes: Int64, inUse: Int) {
        self.removed = removed
        self.bytes = bytes
        self.inUse = inUse
    }
}

/// The body of `POST /v1/cache/keep`: the files of the cache that are to be kept until their hexes are deleted.
public struct CacheKeepRequest: JSONShape, Sendable, Equatable {
    /// Names or paths of files in the cache.
    public var files: [String]

    private enum CodingKeys: String, RequestKey {
        case files
    }

    public init(files: [String]) { self.files = files }
}

/// The reply to `POST /v1/cache/keep`: the files that are kept from now on.
public struct CacheKeepReply: JSONShape, Sendable, Equatable {
    public var items: [CachedFile]

    public init(items: [CachedFile]) { self.items = items }
}
