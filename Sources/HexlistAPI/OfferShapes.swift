public import HexlistJSON

/// The body of `POST /v1/offers`: files and folders of this machine that peers may fetch.
public struct OfferRequest: JSONShape, Sendable, Equatable {
    /// Absolute paths.
    public var paths: [String]
    /// PEERs and `@GROUP`s.
    public var to: [String]
    /// Whether they are for all trusted peers.
    public var toAll: Bool?

    private enum CodingKeys: String, RequestKey {
        case paths, to, toAll
    }

    public init(paths: [String], to: [String], toAll: Bool? = nil) {
        self.paths = paths
        self.to = to
        self.toAll = toAll
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
    /// A HexJM: its links are the files, the hexes inside it the folders.
    public var hex: JSONValue
    public var files: Int
    public var size: Int64
    /// Symbolic links, hidden files, sockets and the like, and what is not readable: left out.
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
