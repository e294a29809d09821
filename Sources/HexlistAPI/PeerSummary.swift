public import HexlistJSON
public import HexlistModel

/// The peer as a person knows it, beside the UUID that a row names it by: `name`?, `alias`? and `trust`, as they are now.
public struct PeerSummary: MemberGroup, Sendable, Equatable {
    /// The name the peer gives itself; `nil` where it never said one. Text of a peer: clean it where it is shown.
    public var name: String?
    public var alias: String?
    public var trust: ForwardCompatibleEnum<Trust>

    public static let mark = "trust"

    public init(name: String? = nil, alias: String? = nil, trust: Trust) {
        self.name = name
        self.alias = alias
        self.trust = ForwardCompatibleEnum(trust)
    }

    /// `nil` where there is none: of this machine itself, or from an older daemon.
    init?(_ object: JSONObject) throws(JSONFault) {
        guard let trust: ForwardCompatibleEnum<Trust> = try object.optional(Self.mark) else { return nil }
        self.trust = trust
        name = try object.optional("name")
        alias = try object.optional("alias")
    }

    public init(_ label: PeerDisplayName) {
        name = label.name.isEmpty ? nil : label.name
        alias = label.alias
        trust = ForwardCompatibleEnum(text: label.trust)
    }
}

extension PeerDisplayName {
    /// - Parameter tag: `nil` for a peer of which the row says nothing but the UUID.
    public init(_ peer: PeerID, _ tag: PeerSummary?) {
        self.init(uuid: peer.description, name: tag?.name ?? "", alias: tag?.alias, trust: tag?.trust.text ?? "")
    }
}
