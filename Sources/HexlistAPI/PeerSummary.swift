public import HexlistJSON
public import HexlistModel

/// The current `name`, `alias` and `trust` of a peer, as members beside its UUID.
public struct PeerSummary: MemberGroup, Sendable, Equatable {
    /// The name the peer gives itself; `nil` if unknown. Text of a peer: clean it before display.
    public var name: String?
    public var alias: String?
    public var trust: ForwardCompatibleEnum<Trust>

    public static let marker = "trust"

    public init(name: String? = nil, alias: String? = nil, trust: Trust) {
        self.name = name
        self.alias = alias
        self.trust = ForwardCompatibleEnum(trust)
    }

    /// Reads the members; `nil` if they are missing, as for this machine or from an older daemon.
    init?(_ object: JSONObject) throws(JSONFault) {
        guard let trust: ForwardCompatibleEnum<Trust> = try object.optional(Self.marker) else { return nil }
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
    /// Makes the display name of a peer.
    /// - Parameter tag: `nil` if only the UUID is known.
    public init(_ peer: PeerID, _ tag: PeerSummary?) {
        self.init(uuid: peer.description, name: tag?.name ?? "", alias: tag?.alias, trust: tag?.trust.text ?? "")
    }
}
