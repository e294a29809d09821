public import HexlistJSON
public import HexlistModel

/// A peer, or a ghost: an announcement that is no usable peer.
public struct PeerView: JSONShape, Sendable, Equatable {
    public enum State: String, JSONWord, Sendable {
        case verified, away, ghost
    }

    /// `nil` for a ghost whose announcement carries none.
    public var uuid: PeerID?
    /// The name given by the peer or its announcement. Text of a peer: clean it before display.
    public var name: String
    public var alias: String?
    public var state: State
    /// Why a ghost is not a peer: `self`, `duplicate`, `stale`, `conflict`, `impostor`, `invalid`, `unverified`; a newer daemon may
    /// have more.
    public var reason: String?
    /// The reason for the state, in one line for people.
    public var why: String?
    public var trust: ForwardCompatibleEnum<Trust>
    /// The fingerprint proven by a session; `nil` if never verified.
    public var fingerprint: Fingerprint?
    public var version: String?
    public var boot: BootNonce?
    public var endpoints: [EndpointView]
    public var lastSeen: Timestamp?
    public var unread: Int
    /// The names of its groups.
    @LeftOutEmpty public var groups: [String]
    /// Where its hexes go; `nil` for the default by trust and `receiveFrom`.
    public var receive: ForwardCompatibleEnum<PeerReceive>?
    /// `false` if there are no desktop notifications for it, otherwise `nil`.
    public var notify: Bool?
    /// Bytes per hex and per day up to which offered files are fetched automatically; `nil` for never. And the bytes fetched today.
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

    /// - Throws: `notFound` for a ghost without a UUID.
    public func requiredID() throws(HexlistError) -> PeerID {
        guard let uuid else { throw HexlistError(.notFound, "This peer announces no UUID.") }
        return uuid
    }
}

/// An address of a peer.
public struct EndpointView: JSONShape, Sendable, Equatable {
    public var host: String
    public var port: Int
    public var interface: String?
    /// `mdns`, `dns`, `static`, `lastKnown` or `inbound`; a newer daemon may know more.
    public var via: String
    /// When a session was last established over it.
    public var lastOK: Timestamp?

    public init(host: String, port: Int, interface: String? = nil, via: String, lastOK: Timestamp? = nil) {
        self.host = host
        self.port = port
        self.interface = interface
        self.via = via
        self.lastOK = lastOK
    }
}
