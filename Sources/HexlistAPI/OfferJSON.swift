public import HexlistJSON
import HexlistModel

/// The body of `POST /v1/offers`: files and folders to offer to peers, or in My Hexlist.
public struct OfferRequest: JSONShape, Sendable, Equatable {
    /// The absolute paths of the files and folders; empty if `hex` is given.
    @EmptyIfMissing public var paths: [String]
    /// The recipients, as PEER and `@GROUP` arguments; empty if `toAll` or `mine` is set.
    @EmptyIfMissing public var to: [String]
    /// Whether to offer the files to all trusted peers.
    public var toAll: Bool?
    /// Whether to offer the files to the user's other machines, and to the members of a shared hex that gets the links.
    public var mine: Bool?
    /// With `mine`: the id of the hex of My Hexlist inside which the links will be; `nil` for a new hex at the top level.
    public var parent: Int64?
    /// Whether to offer copies of the files, which are kept until the offers end.
    public var copy: Bool?
    /// Whether to offer copies if all files together have at most `files.copyBelow` bytes. Ignored with `copy`.
    public var copySmall: Bool?
    /// The id of a hex, used instead of `paths`. Its files are offered from this machine, and its links are changed to these offers.
    public var hex: Int64?

    private enum CodingKeys: String, RequestKey {
        case paths, to, toAll, mine, copy, copySmall, hex
        case parent = "in"
    }

    public init(
        paths: [String], to: [String], toAll: Bool? = nil, mine: Bool? = nil, parent: Int64? = nil, copy: Bool? = nil,
        copySmall: Bool? = nil, hex: Int64? = nil
    ) {
        self.mine = mine
        self.parent = parent
        self.paths = paths
        self.to = to
        self.toAll = toAll
        self.copy = copy
        self.copySmall = copySmall
        self.hex = hex
    }
}

/// Progress of reading the offered files: how many files and bytes were read, and the total bytes.
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

/// Numbers of folder entries that were left out of an offer, by cause.
public struct SkippedEntries: JSONShape, Sendable, Equatable {
    /// Entries with names that begin with a dot.
    @OmittedIfEmpty public var hidden: Int
    @OmittedIfEmpty public var links: Int
    /// Entries that are devices, pipes or sockets.
    @OmittedIfEmpty public var special: Int
    /// Entries with names that are not UTF-8.
    @OmittedIfEmpty public var names: Int
    /// Files and folders this user may not read; a folder counts as one entry.
    @OmittedIfEmpty public var notAllowed: Int
    /// Files and folders that were deleted, replaced or changed while they were read.
    @OmittedIfEmpty public var changed: Int
    /// Files and folders with read errors.
    @OmittedIfEmpty public var failed: Int
    /// Folders without files. Only older daemons leave them out.
    @OmittedIfEmpty public var empty: Int
    /// The absolute paths of the first ten entries counted in `notAllowed`, `changed` and `failed`.
    @OmittedIfEmpty public var paths: [String]

    public init(
        hidden: Int = 0, links: Int = 0, special: Int = 0, names: Int = 0, notAllowed: Int = 0, changed: Int = 0, failed: Int = 0,
        empty: Int = 0, paths: [String] = []
    ) {
        self.hidden = hidden
        self.links = links
        self.special = special
        self.names = names
        self.notAllowed = notAllowed
        self.changed = changed
        self.failed = failed
        self.empty = empty
        self.paths = paths
    }

    /// The numbers and causes as one line: `2 hidden, 1 without read permission (not read: /a/secret.txt)`. Paths are cleaned for display.
    public var text: String {
        let parts: [(Int, String)] = [
            (hidden, "hidden"), (links, links == 1 ? "symlink" : "symlinks"),
            (special, special == 1 ? "special file" : "special files"), (names, "with a name that is not UTF-8"),
            (notAllowed, "without read permission"), (changed, "changed or deleted meanwhile"), (failed, "unreadable"),
            (empty, empty == 1 ? "folder without files to send" : "folders without files to send"),
        ]
        let causes = parts.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }.joined(separator: ", ")
        guard !paths.isEmpty else { return causes }
        let rest = notAllowed + changed + failed - paths.count
        let names = paths.map { TerminalText.clean($0, columns: 100) } + (rest > 0 ? ["\(rest) more"] : [])
        return "\(causes) (not read: \(names.joined(separator: ", ")))"
    }
}

/// The result of an offer: a hex with links to the files, which the caller then sends or adds to My Hexlist.
public struct OfferResult: JSONShape, Sendable, Equatable {
    /// A HexJM whose links are the files and whose inner hexes are the folders; for `OfferRequest.hex`, that hex with changed links.
    public var hex: JSONValue
    public var files: Int
    public var size: Int64
    /// Number of folder entries that were left out. For `OfferRequest.hex`, number of links that were left unchanged, because this machine
    /// does not have their file.
    @EmptyIfMissing public var leftOut: Int
    /// `leftOut` by cause; `nil` if no folder entry was left out.
    public var leftOutBy: SkippedEntries?
    /// Number of files that are offered as copies.
    @OmittedIfEmpty public var copied: Int

    public init(hex: JSONValue, files: Int, size: Int64, leftOut: Int, leftOutBy: SkippedEntries? = nil, copied: Int = 0) {
        self.copied = copied
        self.leftOutBy = leftOutBy
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
