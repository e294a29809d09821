public import HexlistJSON
public import HexlistModel

/// The kinds of content services.
public enum ServiceKind: String, JSONWord, Sendable {
    /// The service with the folders that this machine shares.
    case own
    /// The service with the folders that a trusted peer shares with this machine.
    case peer
    /// A remote of rclone.
    case rclone
}

extension FolderSortOrder: JSONWord {}

/// A service with files that can be listed and linked to.
public struct ServiceView: JSONShape, Sendable, Equatable {
    /// The name before the `:` of `SERVICE:PATH`; for a peer, its alias or name. A peer may have chosen it: treat it as untrusted text.
    public var name: String
    public var kind: ForwardCompatibleEnum<ServiceKind>
    /// The provider of an rclone remote, as links name it: `Dropbox`, `s3`.
    public var service: String?
    /// The UUID of the peer, for a service of a peer.
    public var uuid: PeerID?
    public var usable: Bool
    /// The reason why the service cannot be used now, and advice (`hint`); `nil` if it can be used.
    public var why: String?
    public var hint: String?

    public init(name: String, kind: ServiceKind, service: String? = nil, uuid: PeerID? = nil, obstacle: HexlistError? = nil) {
        self.name = name
        self.kind = ForwardCompatibleEnum(kind)
        self.service = service
        self.uuid = uuid
        usable = obstacle == nil
        why = obstacle?.message
        hint = obstacle?.hint
    }
}

public enum FileKind: String, JSONWord, Sendable {
    case file, folder
}

/// A file or a folder in a folder of a service.
public struct FileEntry: JSONShape, Sendable, Equatable {
    /// The name of the entry. Text of a peer: clean it before display.
    public var name: String
    public var kind: ForwardCompatibleEnum<FileKind>
    /// Size in bytes; `nil` for a folder, and if unknown.
    public var size: Int64?
    public var modified: Timestamp?
    public var mediaType: String?

    public init(name: String, kind: FileKind, size: Int64? = nil, modified: Timestamp? = nil, mediaType: String? = nil) {
        self.name = name
        self.kind = ForwardCompatibleEnum(kind)
        self.size = size
        self.modified = modified
        self.mediaType = mediaType
    }
}

/// A page of the entries of a folder. Entries that are added between the requests for two pages may be missing.
public struct FilePage: JSONShape, Sendable, Equatable {
    public var items: [FileEntry]
    /// The value of `after=` for the next page; `null` at the end.
    @NullIfNone public var next: String?
    /// Number of entries that are left out, because their names are not UTF-8.
    @EmptyIfMissing public var leftOut: Int

    public init(items: [FileEntry], next: String? = nil, leftOut: Int = 0) {
        self.items = items
        self.next = next
        self.leftOut = leftOut
    }
}

/// The body of `POST /v1/services/{service}/links`, which makes links to files of a service.
public struct ServiceLinksRequest: JSONShape, Sendable, Equatable {
    /// Paths in the service, with `/` between names.
    public var paths: [String]
    /// Seconds after which the links expire, if the service supports that.
    public var expire: Double?
    /// Whether to revoke existing links instead of making new ones.
    public var revoke: Bool?
    /// Whether to send requests immediately, despite a back-off after earlier failures.
    public var force: Bool?

    private enum CodingKeys: String, RequestKey {
        case paths, expire, revoke, force
    }

    public init(paths: [String], expire: Double? = nil, revoke: Bool? = nil, force: Bool? = nil) {
        self.paths = paths
        self.expire = expire
        self.revoke = revoke
        self.force = force
    }
}

/// The result for one path of a `ServiceLinksRequest`. Results are not in the order of the paths.
public struct ServiceLinkResult: JSONShape, Sendable, Equatable {
    public var path: String
    /// The link; `nil` if it could not be made, or was revoked.
    public var url: String?
    /// The name of the web service, for the member `service` of a LinkJM with this link.
    public var service: String?
    /// The error because of which there is no link: its code, a message and advice; `nil` if there was none.
    public var code: String?
    public var message: String?
    public var hint: String?

    public init(path: String, url: String?, service: String? = nil) {
        self.path = path
        self.url = url
        self.service = service
    }

    public init(path: String, error: HexlistError) {
        self.path = path
        code = error.code.rawValue
        message = error.message
        hint = error.hint
    }
}

/// The numbers of links that were made and that failed, in the last line of the reply to a `ServiceLinksRequest`.
public struct ServiceLinkCounts: JSONShape, Sendable, Equatable {
    public var made: Int
    public var failed: Int

    public init(made: Int, failed: Int) {
        self.made = made
        self.failed = failed
    }
}

/// One line of the reply to a `ServiceLinksRequest` (`POST /v1/services/{service}/links`).
public enum LinkLine: JSONCoded, Sendable, Equatable {
    /// `{"path":…}`
    case reply(ServiceLinkResult)
    /// `{"summary":{…}}`: the last line.
    case summary(ServiceLinkCounts)
    /// `{"error":{…}}`: the last line after a failure. Paths without a line were not processed.
    case error(ErrorJSON)
    /// A line added by a newer daemon; clients ignore it.
    case other(JSONValue)

    public func write(to json: inout JSONWriter) {
        switch self {
        case .reply(let reply): reply.write(to: &json)
        case .summary(let summary): json.object { $0.member("summary", summary) }
        case .error(let error): error.write(to: &json)
        case .other(let value): value.write(to: &json)
        }
    }

    public init(json: JSONValue) throws(JSONFault) {
        let object = try JSONObject(json)
        if object["path"] != nil {
            self = .reply(try ServiceLinkResult(json: json))
        } else if object["summary"] != nil {
            self = .summary(try object.value("summary"))
        } else if object["error"] != nil {
            self = .error(try ErrorJSON(json: json))
        } else {
            self = .other(json)
        }
    }
}
