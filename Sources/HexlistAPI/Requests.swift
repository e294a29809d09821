/// The body of `POST /v1/peers/{peer}/trust`: what the person compared. A trust request that names neither is refused
/// unless the path has the whole UUID.
public struct TrustRequest: JSONShape, Sendable, Equatable {
    /// The whole fingerprint that was shown; another one in the meantime is refused.
    public var fingerprint: String?
    /// The name that was shown: it makes the alias, whatever the peer calls itself in the meantime.
    public var name: String?

    public init(fingerprint: String? = nil, name: String? = nil) {
        self.fingerprint = fingerprint
        self.name = name
    }

    public func write(to json: inout JSONWriter) {
        json.object {
            $0.member("fingerprint", fingerprint)
            $0.member("name", name)
        }
    }

    public init(json: JSONValue) throws(JSONFault) {
        let object = try JSONObject(json, allowing: ["fingerprint", "name"])
        fingerprint = try object.optional("fingerprint")
        name = try object.optional("name")
    }
}

/// The body of `PATCH /v1/peers/{peer}`.
public struct PeerPatch: JSONShape, Sendable, Equatable {
    /// `null` takes the alias away.
    public var alias: String?

    public init(alias: String?) { self.alias = alias }

    public func write(to json: inout JSONWriter) {
        json.object { $0.nullableMember("alias", alias) }
    }

    public init(json: JSONValue) throws(JSONFault) {
        let object = try JSONObject(json, allowing: ["alias"])
        guard object["alias"] != nil else { throw JSONFault("`alias` is missing") }
        alias = try object.optional("alias")
    }
}

/// The body of `PATCH /v1/hexes` and `PATCH /v1/hexes/{id}`: marks as read, or as unread again.
public struct HexPatch: JSONShape, Sendable, Equatable {
    /// Which ones, where the path names none.
    public var hexes: HexSelection?
    public var unread: Bool

    public init(hexes: HexSelection? = nil, unread: Bool) {
        self.hexes = hexes
        self.unread = unread
    }

    public func write(to json: inout JSONWriter) {
        json.object {
            hexes?.writeMembers(to: &$0)
            $0.member("unread", unread)
        }
    }

    public init(json: JSONValue) throws(JSONFault) {
        let object = try JSONObject(json, allowing: ["ids", "all", "unread"])
        hexes = try HexSelection(object)
        unread = try object.value("unread")
    }
}

/// Some hexes by id, `{"ids":[1,2]}`, or all of the inbox, `{"all":true}`.
public enum HexSelection: JSONEncodable, Sendable, Equatable {
    case ids([Int64])
    case all

    public func write(to json: inout JSONWriter) {
        json.object { writeMembers(to: &$0) }
    }

    func writeMembers(to json: inout JSONWriter) {
        switch self {
        case .ids(let ids): json.member("ids", ids)
        case .all: json.member("all", true)
        }
    }

    /// `nil` where the object names none.
    init?(_ object: JSONObject) throws(JSONFault) {
        let all: Bool? = try object.optional("all")
        let ids: [Int64]? = try object.optional("ids")
        switch (all ?? false, ids) {
        case (true, nil): self = .all
        case (false, let ids?): self = .ids(ids)
        case (false, nil): return nil
        case (true, _?): throw JSONFault("`ids` and `all` do not go together")
        }
    }
}

/// The body of `POST /v1/hexes/accept`: `{"ids":[1,2]}`.
public struct HexIDs: JSONShape, Sendable, Equatable {
    public var ids: [Int64]

    public init(ids: [Int64]) { self.ids = ids }

    public func write(to json: inout JSONWriter) {
        json.object { $0.member("ids", ids) }
    }

    public init(json: JSONValue) throws(JSONFault) { ids = try JSONObject(json, allowing: ["ids"]).value("ids") }
}
