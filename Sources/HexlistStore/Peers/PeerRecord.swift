public import HexlistModel

/// An address and port at which a peer was reached, or may be reached.
public struct PeerEndpoint: Sendable, Hashable {
    /// A numeric address (an IPv6 address may have a scope, such as `%eth0`), or a configured host name.
    public var host: String
    public var port: Int
    public var interface: String?
    /// How the endpoint became known: a raw value of `Endpoint.Source` (HexlistDiscovery), such as `lastKnown`.
    public var via: String
    /// The time at which a session at this endpoint last proved the peer's key, in milliseconds since 1970; 0 for never.
    public var lastOKAt: Int64

    public init(host: String, port: Int, interface: String?, via: String, lastOKAt: Int64) {
        self.host = host
        self.port = port
        self.interface = interface
        self.via = via
        self.lastOKAt = lastOKAt
    }
}

/// The record of a peer in the store. A peer has a record if it is trusted or blocked, has an alias, groups or settings, or if hexes,
/// tombstones or outbox rows refer to it.
public struct PeerRecord: Sendable, Equatable {
    public var peer: PeerID
    public var kind = PeerKind.hexlist
    /// The fingerprint of the peer's key, or of a device's certificate (`PeerKind`); `nil` until a connection proved it. A trusted peer
    /// always has one.
    public var fingerprint: Fingerprint?
    /// The name that the peer gives itself, as last received. Untrusted text of a peer.
    public var name: String
    public var alias: String?
    public var trust: Trust
    public var version: String?
    public var boot: BootNonce?
    /// The time of the last contact with the peer, in milliseconds since 1970.
    public var lastSeenAt: Int64?
    /// The number of the peer's hexes in the inbox and held.
    public var hexes: Int
    /// The number of the peer's unread hexes in the inbox.
    public var unread: Int
    public var held: Int
    public var heldBytes: Int
    /// The number of queued outbox rows for the peer.
    public var queued: Int
    /// The known endpoints, most recently successful first; at most `endpointLimit`.
    public var endpoints: [PeerEndpoint]
    /// The names of the groups to which the peer belongs.
    public var groups: [String] = []
    public var receive = PeerReceiveSetting.inbox
    /// Whether hexes of the peer cause desktop notifications.
    public var notify = true
    /// Maximum bytes of automatically fetched files, for each hex and for each day; `nil` if automatic fetching is disabled.
    public var fetchLimit: Int64?
    /// The day for which `fetchDayBytes` counts, in days since 1970 (UTC).
    public var fetchDay: Int64 = 0
    /// Bytes that were automatically fetched or reserved on `fetchDay`.
    public var fetchDayBytes: Int64 = 0
    public var fetchTo = AutomaticFetchDestination.cache
    /// Maximum number of links of a hex that are opened in the browser when it arrives.
    public var openLinks = 0
    public var routes = RouteSelection.any
    /// Whether it is one of the user's own machines (`OwnMachine`).
    public var isOwn = false
    /// The card with the peer's public keys; only of trusted peers.
    public var card: PeerCard?

    /// Returns the bytes that were automatically fetched or reserved on the day of `now`; 0 if that is not `fetchDay`.
    public func fetchedBytes(at now: Int64) -> Int64 { fetchDay == now / 86_400_000 ? fetchDayBytes : 0 }

    /// Maximum number of endpoints of one peer. The oldest are deleted. Bounded because peers can cause any number of endpoints.
    public static let endpointLimit = 16

    public var label: PeerDisplayName { PeerDisplayName(peer, kind: kind, name: name, alias: alias, trust: trust) }
}

/// Information about a peer from one contact with it, such as a session.
public struct PeerContact: Sendable {
    public var peer: PeerID
    /// The kind of peer, which the protocol of the connection shows. If the peer's record has another kind, the contact does not change it.
    public var kind: PeerKind
    public var fingerprint: Fingerprint?
    public var name: String
    public var version: String?
    public var boot: BootNonce?
    /// The time of the contact, in milliseconds since 1970.
    public var seenAt: Int64
    /// The endpoints at which the peer was reached, the preferred one last; empty for a session that the peer dialled.
    public var endpoints: [PeerEndpoint]

    public init(
        peer: PeerID, kind: PeerKind = .hexlist, fingerprint: Fingerprint?, name: String, version: String?, boot: BootNonce?,
        seenAt: Int64, endpoints: [PeerEndpoint] = []
    ) {
        self.peer = peer
        self.kind = kind
        self.fingerprint = fingerprint
        self.name = name
        self.version = version
        self.boot = boot
        self.seenAt = seenAt
        self.endpoints = endpoints
    }
}

/// The effect of a change of trust on the held hexes of the peer.
public struct TrustChange: Sendable, Equatable {
    /// The ids of the hexes that moved into the inbox, in order of arrival.
    public var moved: [Int64]
    /// The number of held hexes that were deleted.
    public var deleted: Int
}

/// A peer's card (HexlistEnvelope), whose form and signature were checked.
public struct PeerCard: Sendable, Equatable {
    public var bytes: [UInt8]
    /// The serial number. Of several cards of a peer, the one with the greatest serial is used.
    public var serial: UInt32

    public init(bytes: [UInt8], serial: UInt32) {
        self.bytes = bytes
        self.serial = serial
    }
}
