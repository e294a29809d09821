public import HexlistModel

/// Constants of the local API, shared by daemon and client.
public enum LocalAPI {
    /// Version of the API, as in its paths `/v1/…`. Additions to paths and JSON do not change it.
    public static let version = 1
    /// Name of a header of every reply. Its value is `<api version> <app version>`.
    public static let versionHeader = "hexlist-version"
    public static let jsonType = "application/json"
    /// Name of the service with this machine's own shares.
    public static let ownService = "shares"
    /// Prefix for the name of an rclone remote, which distinguishes it from a peer or the own shares with the same name.
    public static let remotePrefix = "rclone."
    public static let eventStreamType = "text/event-stream"
    public static let bulkType = "application/x-ndjson"
    /// Content type of a backup, an SQLite file.
    public static let backupType = "application/vnd.sqlite3"
    /// Whether a content type is that of a stream of hexes, whose body has no size limit.
    public static func isStream(_ contentType: String?) -> Bool { contentType?.hasPrefix(bulkType) ?? false }
    /// Content type of an uploaded file.
    public static let uploadType = "application/octet-stream"
    /// Whether a content type is that of an uploaded file, whose body has no time limit while bytes arrive.
    public static func isUpload(_ contentType: String?) -> Bool { contentType == uploadType }
    /// Maximum bytes of a hex, and of any request body without a limit of its own. Equals the default frame limit for trusted peers.
    public static let bodyBytes = 1 << 20
    /// Maximum bytes of a line in the reply to a bulk send.
    public static let replyLineBytes = 1 << 20
    /// Maximum bytes of a roster, and maximum number of its peers. Each line has at most `bodyBytes`.
    public static let rosterBytes = 32 << 20
    public static let rosterEntries = 10_000
    /// Maximum sum of the weights (`HexContent.weight`) of the hexes of one import. Bounds the size of its temporary file, and the time of
    /// its transaction.
    public static let importWeight = 96 << 20
    /// Maximum number of refused lines that an import reports one by one.
    public static let importRefusals = 1_000
    /// Maximum number of items in a page of a list, and maximum bytes of its JSON. A page with a single item may be larger.
    public static let pageLimit = 1_000
    public static let pageBytes = 4 << 20
    public static let defaultPageLimit = 20
    /// Maximum number of paths in a request for links to files of a service.
    public static let linkPaths = 10_000
    /// Maximum value of `last`, the number of newest events with which a list begins.
    public static let lastEvents: Int64 = 1_000_000
    /// Seconds between keep-alive comments of an event stream.
    public static let commentSeconds = 15
    /// Maximum seconds that a send may wait for its outcomes.
    public static let longestWaitSeconds = 86_400.0
}

extension ErrorJSON {
    public init(_ error: HexlistError) {
        self.init(code: error.code.rawValue, message: error.message, hint: error.hint)
    }

    /// Converts the JSON to an error. An unknown code of a newer daemon becomes `internal`.
    public var hexlistError: HexlistError {
        HexlistError(HexlistError.Code(rawValue: code) ?? .internal, message, hint: hint)
    }
}
