public import HexlistJSON
public import HexlistModel

/// The kinds of content services.
public enum ServiceKind: String, JSONWord, Sendable {
    /// The folders that this machine shares.
    case own
    /// The folders that a trusted peer shares with this machine.
    case peer
    /// A remote of rclone.
    case rclone
}

extension FileOrder: JSONWord {}

/// Something with files that can be listed and pointed to.
public struct ServiceView: JSONShape, Sendable, Equatable {
    /// The name before the `:` of `SERVICE:PATH`: of a peer its alias. Text of a peer, or of a file of the user's.
    public var name: String
    public var kind: ForwardCompatibleEnum<ServiceKind>
    /// The provider, as links name it: `Dropbox`, `s3`. Of remotes of rclone only.
    public var service: String?
    /// The UUID of a peer.
    public var uuid: PeerID?
    public var usable: Bool
    /// Why it cannot be used now, and what to try.
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
    /// Text of a peer: clean it where it is shown.
    public var name: String
    public var kind: ForwardCompatibleEnum<FileKind>
    /// Bytes; `nil` for a folder, and where the service does not say.
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

/// A page of a folder. What is added to the folder while one reads page after page is in the next list if it is in none of these.
public struct FilePage: JSONShape, Sendable, Equatable {
    public var items: [FileEntry]
    /// The cursor that `after=` takes to go on; `null` at the end.
    @NullIfNone public var next: String?
    /// Entries of the folder that are in no page, because their names are no UTF-8.
    @EmptyIfMissing public var leftOut: Int

    public init(items: [FileEntry], next: String? = nil, leftOut: Int = 0) {
        self.items = items
        self.next = next
        self.leftOut = leftOut
    }
}

/// The body of `POST /v1/services/{service}/links`.
public struct LinkRequest: JSONShape, Sendable, Equatable {
    /// Paths in the service, with `/` between names.
    public var paths: [String]
    /// Seconds after which the links end, where the service can do that.
    public var expire: Double?
    /// Whether the links that there are are taken back instead.
    public var revoke: Bool?
    /// Asks at once for what failed repeatedly.
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

/// One line of the reply: what became of one path. The lines come in any order, one for each path.
public struct LinkReply: JSONShape, Sendable, Equatable {
    public var path: String
    /// The link; `nil` where there is none, or it was taken back.
    public var url: String?
    /// The `service` that a LinkJM of it has.
    public var service: String?
    /// The code of an error, what happened, and what to try.
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

/// The last line of the reply.
public struct LinkSummary: JSONShape, Sendable, Equatable {
    public var made: Int
    public var failed: Int

    public init(made: Int, failed: Int) {
        self.made = made
        self.failed = failed
    }
}

/// One line of the reply to `POST /v1/services/{service}/links`.
public enum LinkLine: JSONCoded, Sendable, Equatable {
    /// `{"path":…}`
    case reply(LinkReply)
    /// `{"summary":{…}}`, the last.
    case summary(LinkSummary)
    /// `{"error":{…}}` instead: what was not told yet was not done.
    case error(ErrorJSON)
    /// A line of a newer daemon; readers pass over it.
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
            self = .reply(try LinkReply(json: json))
        } else if object["summary"] != nil {
            self = .summary(try object.value("summary"))
        } else if object["error"] != nil {
            self = .error(try ErrorJSON(json: json))
        } else {
            self = .other(json)
        }
    }
}
