public import HexlistJSON
public import HexlistModel

/// A folder of this machine shared with peers.
public struct ShareView: JSONShape, Sendable, Equatable {
    /// The name of the share, as peers see it.
    public var name: String
    public var path: String
    public var hidden: Bool
    /// Whether every trusted peer may read the folder.
    public var toAll: Bool
    /// The groups (without `@`) and the peers that may read the folder; empty with `toAll`.
    @OmittedIfEmpty public var groups: [String]
    @OmittedIfEmpty public var peers: [GroupMember]
    /// The reason why the folder cannot be read now; `nil` if it can.
    public var why: String?

    public init(name: String, path: String, hidden: Bool, toAll: Bool, groups: [String], peers: [GroupMember], why: String?) {
        self.name = name
        self.path = path
        self.hidden = hidden
        self.toAll = toAll
        self.groups = groups
        self.peers = peers
        self.why = why
    }
}

/// The body of `POST /v1/shares`, which shares a folder.
public struct ShareRequest: JSONShape, Sendable, Equatable {
    /// The absolute path of the folder.
    public var path: String
    /// The name of the share, as peers see it; defaults to the name of the folder.
    public var name: String?
    /// PEER and `@GROUP` arguments; defaults to every trusted peer.
    public var to: [String]?
    /// Whether entries with names that begin with a dot are shared too.
    public var hidden: Bool?

    private enum CodingKeys: String, RequestKey {
        case path, name, to, hidden
    }

    public init(path: String, name: String? = nil, to: [String]? = nil, hidden: Bool? = nil) {
        self.path = path
        self.name = name
        self.to = to
        self.hidden = hidden
    }
}
