public import HexlistJSON
public import HexlistModel

/// A fetched file that is here under its digest.
public struct CachedFile: JSONShape, Sendable, Equatable {
    /// Its name, made of text of a peer.
    public var file: String
    public var path: String
    public var size: Int64
    /// 64 hexadecimal digits.
    public var sha256: String
    /// Whether it stays until its hex is deleted.
    public var kept: Bool
    /// The hex for which it was fetched last; it may be deleted since.
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

/// How much is in the cache.
public struct CacheSummary: JSONShape, Sendable, Equatable {
    public var files: Int
    public var bytes: Int64
    /// The most bytes it holds.
    public var most: Int64
    /// Bytes that are on their way there, or for which it waits.
    public var coming: Int64
    /// Files that are kept besides, and their bytes.
    public var kept: Int
    public var keptBytes: Int64
    /// Copies of own files that are on offer (`send --copy`), and their bytes; `nil` where there are none.
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

/// The result of `POST /v1/cache/clear`: files that were deleted.
public struct CacheCleared: JSONShape, Sendable, Equatable {
    public var removed: Int
    public var bytes: Int64
    /// Files that stay because somebody has them open.
    public var inUse: Int

    public init(removed: Int, bytes: Int64, inUse: Int) {
        self.removed = removed
        self.bytes = bytes
        self.inUse = inUse
    }
}

/// The body of `POST /v1/cache/keep`.
public struct CacheKeepRequest: JSONShape, Sendable, Equatable {
    /// Names or paths of files in the cache.
    public var files: [String]

    private enum CodingKeys: String, RequestKey {
        case files
    }

    public init(files: [String]) { self.files = files }
}

/// The reply to it.
public struct CachedFiles: JSONShape, Sendable, Equatable {
    public var items: [CachedFile]

    public init(items: [CachedFile]) { self.items = items }
}
