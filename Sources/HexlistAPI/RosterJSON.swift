public import HexlistJSON

/// One peer of a roster, a line of `GET /v1/roster` and of what `POST /v1/roster` takes.
public struct RosterPeer: JSONShape, Sendable, Equatable {
    public var uuid: String
    /// 64 hexadecimal digits, from which the UUID follows.
    public var fingerprint: String
    /// The name the peer gives itself. Text of a peer: clean it where it is shown.
    public var name: String
    public var alias: String?
    /// `trusted`, `blocked` or `stranger`.
    public var trust: String
    /// `host:port` each, where it was reached.
    @LeftOutEmpty public var addresses: [String]
    /// The names of its groups.
    @LeftOutEmpty public var groups: [String]

    private enum CodingKeys: String, RequestKey {
        case uuid, fingerprint, name, alias, trust, addresses, groups
    }

    public init(
        uuid: String, fingerprint: String, name: String, alias: String? = nil, trust: String, addresses: [String] = [],
        groups: [String] = []
    ) {
        self.uuid = uuid
        self.fingerprint = fingerprint
        self.name = name
        self.alias = alias
        self.trust = trust
        self.addresses = addresses
        self.groups = groups
    }
}

/// The result of an import: `{"changed","unchanged","own","refused":[{"line","code","message"}]}`.
public struct RosterImport: JSONShape, Sendable, Equatable {
    public var changed: Int
    /// Peers that were so before the import.
    public var unchanged: Int
    /// Entries of this machine itself; they are passed over.
    public var own: Int
    /// Refused lines, in their order. Codes are `malformed`, `tooLarge`, `wrongKey`, `aliasTaken` and `tooManyGroups`.
    public var refused: [BulkRefusal]

    public init(changed: Int = 0, unchanged: Int = 0, own: Int = 0, refused: [BulkRefusal] = []) {
        self.changed = changed
        self.unchanged = unchanged
        self.own = own
        self.refused = refused
    }
}
