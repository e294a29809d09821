public import HexlistJSON
public import HexlistModel

/// A peer, or a ghost: an announcement that does not belong to a usable peer.
public struct PeerView: JSONShape, Sendable, Equatable {
    public enum State: String, JSONWord, Sendable {
        case verified, away, ghost
    }

    /// The UUID; `nil` for a ghost whose announcement has none.
    public var uuid: PeerID?
    /// The protocol that the peer speaks; `nil` for a Hexlist peer.
    public var kind: ForwardCompatibleEnum<PeerKind>?
    /// The name given by the peer or its announcement. Text of a peer: clean it before display.
    public var name: String
    public var alias: String?
    public var state: State
    /// The reason why a ghost is not a peer: `self`, `duplicate`, `stale`, `conflict`, `impostor`, `invalid`, `unverified`, `unencrypted`;
    /// a newer daemon may have more.
    public var reason: String?
    /// The reason for the state, in one line of text.
    public var why: String?
    public var trust: ForwardCompatibleEnum<Trust>
    /// Whether the peer is one of the user's own machines, with which My Hexlist is exchanged.
    @OmittedIfEmpty public var own: Bool
    /// The fingerprint of the key that the peer proved in a session; `nil` if the peer was never verified.
    public var fingerprint: Fingerprint?
    public var version: String?
    public var boot: BootNonce?
    public var endpoints: [EndpointView]
    public var lastSeen: Timestamp?
    public var unread: Int
    /// The names of the groups that the peer is in.
    @OmittedIfEmpty public var groups: [String]
    /// The user's setting for hexes from the peer; `nil` for the default, which depends on the trust and on the setting `receiveFrom`.
    public var receive: ForwardCompatibleEnum<PeerReceiveSetting>?
    /// `false` if desktop notifications for the peer are off, otherwise `nil`.
    public var notify: Bool?
    /// Maximum bytes, per hex and per day, of offered files that are fetched automatically; `nil` if none are. `fetchedToday` is the number
    /// of bytes fetched today.
    public var fetchLimit: Int64?
    public var fetchedToday: Int64?
    /// The destination of automatically fetched files; `nil` if no files are fetched, or if they are fetched into the cache.
    public var fetchTo: ForwardCompatibleEnum<AutomaticFetchDestination>?
    /// Maximum number of links that are opened in the browser when a hex of the peer arrives; `nil` if none are.
    public var openLinks: Int?
    /// The routes that may be used for the peer: `none`, or their names separated by spaces; `nil` for any.
    public var routes: String?

    public init(
        uuid: PeerID?, kind: PeerKind = .hexlist, name: String, alias: String? = nil, state: State, reason: String? = nil,
        why: String? = nil, trust: Trust,
        fingerprint: Fingerprint? = nil, version: String? = nil, boot: BootNonce? = nil, endpoints: [EndpointView] = [],
        lastSeen: Timestamp? = nil, unread: Int = 0, groups: [String] = [], receive: PeerReceiveSetting = .inbox, notify: Bool = true,
        fetchLimit: Int64? = nil, fetchedToday: Int64? = nil, fetchTo: AutomaticFetchDestination = .cache, openLinks: Int = 0,
        routes: RouteSelection = .any, own: Bool = false
    ) {
        self.uuid = uuid
        self.kind = kind == .hexlist ? nil : ForwardCompatibleEnum(kind)
        self.name = name
        self.alias = alias
        self.state = state
        self.reason = reason
        self.why = why
        self.trust = ForwardCompatibleEnum(trust)
        self.own = own
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
        self.openLinks = openLinks == 0 ? nil : openLinks
        self.fetchTo = fetchLimit == nil || fetchTo == .cache ? nil : ForwardCompatibleEnum(fetchTo)
        self.routes = routes == .any ? nil : routes.text
    }

    public var label: PeerDisplayName { PeerDisplayName(uuid: uuid?.description, name: name, alias: alias, trust: trust.text) }

    /// Returns the UUID.
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
    /// The source of the address: `mdns`, `dns`, `static`, `lastKnown`, `inbound` or `localsend`; a newer daemon may have more.
    public var via: String
    /// The time at which a session was last established with this address.
    public var lastOK: Timestamp?

    public init(host: String, port: Int, interface: String? = nil, via: String, lastOK: Timestamp? = nil) {
        self.host = host
        self.port = port
        self.interface = interface
        self.via = via
        self.lastOK = lastOK
    }
}
