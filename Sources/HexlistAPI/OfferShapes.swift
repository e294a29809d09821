public import HexlistJSON

/// The body of `POST /v1/offers`: files and folders of this machine that peers may fetch.
public struct OfferRequest: JSONShape, Sendable, Equatable {
    /// Absolute paths; none with `hex`.
    @EmptyIfMissing public var paths: [String]
    /// PEERs and `@GROUP`s; none with `toAll`.
    @EmptyIfMissing public var to: [String]
    /// Whether they are for all trusted peers.
    public var toAll: Bool?
    /// Whether copies of the files are offered, which stay until the offers end.
    public var copy: Bool?
    /// Instead of paths: a hex whose links to files are to lead to the copies of them that are here.
    public var hex: Int64?

    private enum CodingKeys: String, RequestKey {
        case paths, to, toAll, copy, hex
    }

    public init(paths: [String], to: [String], toAll: Bool? = nil, copy: Bool? = nil, hex: Int64? = nil) {
        self.paths = paths
        self.to = to
        self.toAll = toAll
        self.copy = copy
        self.hex = hex
    }
}

/// How far the reading of files is that are offered.
public struct OfferProgress: JSONShape, Sendable, Equatable {
    public var files: Int
    public var bytes: Int64
    public var size: Int64

    public init(files: Int, bytes: Int64, size: Int64) {
        self.files = files
        self.bytes = bytes
        self.size = size
    }
}

/// Files that are on offer now, as a hex to be sent.
public struct OfferResult: JSONShape, Sendable, Equatable {
    /// A HexJM: its links are the files, the hexes inside it the folders; or the hex that was named, with other links.
    public var hex: JSONValue
    public var files: Int
    public var size: Int64
    /// Symbolic links, hidden files, sockets and the like, and what is not readable: left out. Of a hex: links to files of which there is no copy
    /// here, which lead where they led.
    @EmptyIfMissing public var leftOut: Int

    public init(hex: JSONValue, files: Int, size: Int64, leftOut: Int) {
        self.hex = hex
        self.files = files
        self.size = size
        self.leftOut = leftOut
    }
}

extension OfferResult: ProgressResult {
    public typealias Progress = OfferProgress

    public static var member: String { "offer" }
}
