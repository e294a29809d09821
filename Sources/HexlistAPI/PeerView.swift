public import HexlistJSON
public import HexlistModel

/// A peer, or a ghost, in lists and by itself.
public struct PeerView: JSONShape, Sendable, Equatable {
    public enum State: String, JSONWord, Sendable {
        case verified, away, ghost
    }

    /// `nil` for a ghost whose announcement carries none.
    public var uuid: PeerID?
    /// The name the peer gives itself, or its announcement gives. Text of a peer: clean it where it is shown.
    public var name: String
    public var alias: String?
    public var state: State
    /// The reason why a ghost is hidden: `self`, `duplicate`, `stale`, `conflict`, `impostor`, `invalid`, `unverified`; a newer daemon may
    /// know more.
    public var reason: String?
    /// One line for people: the reason for the state.
    public var why: String?
    public var trust: ForwardCompatibleEnum<Trust>
    /// Proved by a session; `nil` for what never was verified.
    public var fingerprint: Fingerprint?
    public var version: String?
    public var boot: BootNonce?
    public var endpoints: [EndpointView]
    public var lastSeen: Timestamp?
    public var unread: Int
    /// The names of its groups.
    @LeftOutEmpty public var groups: [String]
    /// What is done with its hexes; `nil` as trust and `receiveFrom` say.
    public var receive: ForwardCompatibleEnum<PeerReceive>?
    /// `false` where desktop notifications do not tell of it, otherwise `nil`.
    public var notify: Bool?
    /// Bytes of a hex, and of a day, up to which files that it offers are fetched by themselves; `nil`: none. And the bytes of today.
    public var fetchLimit: Int64?
    public var fetchedToday: Int64?

    public init(
        uuid: PeerID?, name: String, alias: String? = nil, state: State, reason: String? = nil, why: String? = nil, trust: Trust,
        fingerprint: Fingerprint? = nil, version: String? = nil, boot: BootNonce? = nil, endpoints: [EndpointView] = [],
        lastSeen: Timestamp? = nil, unread: Int = 0, groups: [String] = [], receive: PeerReceive = .inbox, notify: Bool = true,
        fetchLimit: Int64? = nil, fetchedToday: Int64? = nil
    ) {
        self.uuid = uuid
        self.name = name
        self.alias = alias
        self.state = state
        self.reason = reason
        self.why = why
        self.trust = ForwardCompatibleEnum(trust)
        self.fingerprint = fingerprint
        self.version = version
        self.boot = boot
        self.endpoints = endpoints
        self.lastSeen = lastSeen
        self.unread = unread
        self.groups = groups
        self.receive = receive == .inbox ? nil : ForwardCompatibleEnum(receive)
        self.notify = notify ? nil : false
        self.fetchLimit = fetchLimit
        self.fetchedToday = fetchLimit == nil ? nil : fetchedToday
    }

    public var label: PeerDisplayName { PeerDisplayName(uuid: uuid?.description, name: name, alias: alias, trust: trust.text) }

    /// - Throws: `notFound` where nothing says whose announcement it is.
    public func requiredID() throws(HexlistError) -> PeerID {
        guard let uuid else { throw HexlistError(.notFound, "This peer announces no UUID.") }
        return uuid
    }
}

/// Where a peer can be reached.
public struct EndpointView: JSONShape, Sendable, Equatable {
    public var host: String
    public var port: Int
    public var interface: String?
    /// `mdns`, `dns`, `static`, `lastKnown` or `inbound`; a newer daemon may know more.
    public var via: String
    /// When a session last came up over it.
    public var lastOK: Timestamp?

    public init(host: String, port: Int, interface: String? = nil, via: String, lastOK: Timestamp? = nil) {
        self.host = host
        self.port = port
        self.interface = interface
        self.via = via
        self.lastOK = lastOK
    }
}
