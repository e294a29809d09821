public import HexlistModel

/// Constants that daemon and client agree on beside the shapes.
public enum LocalAPI {
    /// The version of the paths, `/v1/…`, and the shapes behind them. Additions do not raise it.
    public static let version = 1
    /// The header on every reply: `<api version> <app version>`.
    public static let versionHeader = "hexlist-version"
    public static let jsonType = "application/json"
    /// The name of the service of the machine's own shares.
    public static let ownService = "shares"
    /// What stands before the name of a remote of rclone to tell it from a peer, or from the own shares, of that name.
    public static let remotePrefix = "rclone."
    public static let eventStreamType = "text/event-stream"
    public static let bulkType = "application/x-ndjson"
    /// A backup is an SQLite file.
    public static let backupType = "application/vnd.sqlite3"
    /// Whether a body of this type is a stream, as long as its caller likes.
    public static func isStream(_ contentType: String?) -> Bool { contentType?.hasPrefix(bulkType) ?? false }
    /// A file that is handed over.
    public static let uploadType = "application/octet-stream"
    /// Whether a body of this type is a file: as long as it says, however long that takes.
    public static func isUpload(_ contentType: String?) -> Bool { contentType == uploadType }
    /// Bytes of one hex, and of any other body: a frame is not longer.
    public static let bodyBytes = 1 << 20
    /// Bytes of one line of the reply to a stream; it may quote a refusal, never a hex.
    public static let replyLineBytes = 1 << 20
    /// Bytes of one roster, and peers in it; a line of it has `bodyBytes` at most.
    public static let rosterBytes = 16 << 20
    public static let rosterEntries = 10_000
    /// The most that the hexes of one import weigh (`HexContent.weight`). Bounds the temporary file and the time of its transaction.
    public static let importWeight = 96 << 20
    /// Refused lines that an import reports one by one.
    public static let importRefusals = 1_000
    /// Items of one page, and bytes of its JSON, which one item alone may pass.
    public static let pageLimit = 1_000
    public static let pageBytes = 4 << 20
    public static let defaultPageLimit = 20
    /// Paths of one request for links.
    public static let linkPaths = 10_000
    /// The most of the newest events that one list begins with (`last`).
    public static let lastEvents: Int64 = 1_000_000
    /// Seconds between two comments of an event stream, so that a reader knows the daemon lives.
    public static let commentSeconds = 15
    /// Seconds a send may wait.
    public static let longestWaitSeconds = 86_400.0
}

extension ErrorJSON {
    public init(_ error: HexlistError) {
        self.init(code: error.code.rawValue, message: error.message, hint: error.hint)
    }

    /// A code of a newer daemon counts as `internal`.
    public var hexlistError: HexlistError {
        HexlistError(HexlistError.Code(rawValue: code) ?? .internal, message, hint: hint)
    }
}
