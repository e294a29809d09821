public import HexlistJSON

/// One peer of a roster (the trust list): a line in the reply to `GET /v1/roster` and in the body of `POST /v1/roster`.
public struct RosterPeer: JSONShape, Sendable, Equatable {
    public var uuid: String
    /// The kind of the peer: `localsend` for a LocalSend device; `nil` for a Hexlist peer.
    public var kind: String?
    /// The fingerprint, as 64 hexadecimal digits. The UUID is derived from it.
    public var fingerprint: String
    /// The name the peer gives itself. Text of a peer: clean it before display.
    public var name: String
    public var alias: String?
    /// The trust in the peer: `trusted`, `blocked` or `stranger`.
    public var trust: String
    /// The addresses at which the peer was reached, as `host:port`.
    @OmittedIfEmpty public var addresses: [String]
    /// The names of the groups that the peer is in.
    @OmittedIfEmpty public var groups: [String]
    /// The card of a trusted peer, in base64. It has the public keys with which envelopes for the peer are encrypted.
    public var card: String?

    private enum CodingKeys: String, RequestKey {
        case uuid, kind, fingerprint, name, alias, trust, addresses, groups, card
    }

    public init(
        uuid: String, kind: String? = nil, fingerprint: String, name: String, alias: String? = nil, trust: String, addresses: [String] = [],
        groups: [String] = [], card: String? = nil
    ) {
        self.uuid = uuid
        self.kind = kind
        self.fingerprint = fingerprint
        self.name = name
        self.alias = alias
        self.trust = trust
        self.addresses = addresses
        self.groups = groups
        self.card = card
    }
}

/// The result of a roster import: `{"changed","unchanged","own","refused":[{"line","code","message"}]}`.
public struct RosterImportResult: JSONShape, Sendable, Equatable {
    public var changed: Int
    /// Number of peers that were equal to the stored ones.
    public var unchanged: Int
    /// Number of entries for this machine, which are ignored.
    public var own: Int
    /// Refused lines, in their order. Codes are `malformed`, `unknownKind`, `tooLarge`, `wrongKey`, `aliasTaken` and `tooManyGroups`.
    public var refused: [BulkRefusal]

    public init(changed: Int = 0, unchanged: Int = 0, own: Int = 0, refused: [BulkRefusal] = []) {
        self.changed = changed
        self.unchanged = unchanged
        self.own = own
        self.refused = refused
    }
}
