public import HexlistJSON
public import HexlistModel

/// A folder of this machine that some peers may read.
public struct ShareView: JSONShape, Sendable, Equatable {
    /// The name peers know it by.
    public var name: String
    public var path: String
    public var hidden: Bool
    /// Whether every trusted peer may read it.
    public var toAll: Bool
    /// The audience, if not all: names of groups without `@`, and peers.
    @LeftOutEmpty public var groups: [String]
    @LeftOutEmpty public var peers: [GroupMember]
    /// Why nobody can read it now; `nil` where it is there.
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

/// The body of `POST /v1/shares`.
public struct ShareRequest: JSONShape, Sendable, Equatable {
    /// The absolute path of the folder.
    public var path: String
    /// The name peers know it by; that of the folder where it is missing.
    public var name: String?
    /// PEERs and `@GROUP`s; every trusted peer where it is missing.
    public var to: [String]?
    /// Whether names that begin with a dot are shared too.
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
