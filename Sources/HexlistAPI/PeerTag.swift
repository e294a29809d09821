import HexlistJSON
public import HexlistModel

/// Who a peer is to a person, beside the UUID that a row names it by: `name`?, `alias`? and `trust`, as they are now.
public struct PeerTag: Sendable, Equatable {
    /// What it calls itself; `nil` where it never said. Text of a peer: clean it where it is shown.
    public var name: String?
    public var alias: String?
    /// `trusted`, `blocked` or `stranger`.
    public var trust: String

    public init(name: String? = nil, alias: String? = nil, trust: String) {
        self.name = name
        self.alias = alias
        self.trust = trust
    }

    public init(_ label: PeerLabel) { self.init(name: label.name.isEmpty ? nil : label.name, alias: label.alias, trust: label.trust) }

    /// The member names; those of a hex stand beside the names of its claim.
    struct Members {
        var name = "name"
        var alias = "alias"
        static let plain = Members()
        static let ofSender = Members(name: "peerName", alias: "peerAlias")
    }

    func writeMembers(to json: inout JSONWriter, _ members: Members = .plain) {
        json.member(members.name, name)
        json.member(members.alias, alias)
        json.member("trust", trust)
    }

    /// `nil` where there is none: of this machine itself, or from an older daemon.
    init?(_ object: JSONObject, _ members: Members = .plain) throws(JSONFault) {
        guard let trust: String = try object.optional("trust") else { return nil }
        self.init(name: try object.optional(members.name), alias: try object.optional(members.alias), trust: trust)
    }
}

extension PeerLabel {
    /// - Parameter tag: `nil` for a peer of which the row says nothing but the UUID.
    public init(_ uuid: String, _ tag: PeerTag?) {
        self.init(uuid: uuid, name: tag?.name ?? "", alias: tag?.alias, trust: tag?.trust ?? "")
    }
}
