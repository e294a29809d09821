public import HexlistJSON

/// One peer of a roster, a line of `GET /v1/roster` and of what `POST /v1/roster` takes.
public struct RosterPeer: JSONShape, Sendable, Equatable {
    public var uuid: String
    /// 64 hexadecimal digits, from which the UUID follows.
    public var fingerprint: String
    /// What it calls itself. Text of a peer: clean it where it is shown.
    public var name: String
    public var alias: String?
    /// `trusted`, `blocked` or `stranger`.
    public var trust: String
    /// `host:port` each, where it was reached.
    public var addresses: [String]

    public init(uuid: String, fingerprint: String, name: String, alias: String? = nil, trust: String, addresses: [String] = []) {
        self.uuid = uuid
        self.fingerprint = fingerprint
        self.name = name
        self.alias = alias
        self.trust = trust
        self.addresses = addresses
    }

    public func write(to json: inout JSONWriter) {
        json.object {
            $0.member("uuid", uuid)
            $0.member("fingerprint", fingerprint)
            $0.member("name", name)
            $0.member("alias", alias)
            $0.member("trust", trust)
            if !addresses.isEmpty { $0.member("addresses", addresses) }
        }
    }

    public init(json: JSONValue) throws(JSONFault) {
        let object = try JSONObject(json, allowing: ["uuid", "fingerprint", "name", "alias", "trust", "addresses"])
        uuid = try object.value("uuid")
        fingerprint = try object.value("fingerprint")
        name = try object.value("name")
        alias = try object.optional("alias")
        trust = try object.value("trust")
        addresses = try object.optional("addresses") ?? []
    }
}

/// What came of an import: `{"changed","unchanged","own","refused":[{"line","code","message"}]}`.
public struct RosterImport: JSONShape, Sendable, Equatable {
    public var changed: Int
    /// Those that were so before.
    public var unchanged: Int
    /// Entries of this machine itself; they are passed over.
    public var own: Int
    /// In the order of their lines. Codes are `malformed`, `tooLarge`, `wrongKey` and `aliasTaken`.
    public var refused: [BulkRefusal]

    public init(changed: Int = 0, unchanged: Int = 0, own: Int = 0, refused: [BulkRefusal] = []) {
        self.changed = changed
        self.unchanged = unchanged
        self.own = own
        self.refused = refused
    }

    public func write(to json: inout JSONWriter) {
        json.object {
            $0.member("changed", changed)
            $0.member("unchanged", unchanged)
            $0.member("own", own)
            $0.member("refused", refused)
        }
    }

    public init(json: JSONValue) throws(JSONFault) {
        let object = try JSONObject(json)
        changed = try object.value("changed")
        unchanged = try object.value("unchanged")
        own = try object.value("own")
        refused = try object.value("refused")
    }
}
