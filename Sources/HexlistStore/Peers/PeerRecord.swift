public import HexlistModel

/// An address at which a peer was reached.
public struct PeerEndpoint: Sendable, Hashable {
    /// A numeric address, with its scope if it has one, or a configured name.
    public var host: String
    public var port: Int
    public var interface: String?
    /// The source of the endpoint, as discovery names it.
    public var via: String
    /// The time at which a session last proved the peer's key there, in milliseconds since 1970; 0 for never.
    public var lastOKAt: Int64

    public init(host: String, port: Int, interface: String?, via: String, lastOKAt: Int64) {
        self.host = host
        self.port = port
        self.interface = interface
        self.via = via
        self.lastOKAt = lastOKAt
    }
}

/// A recorded peer: trusted, blocked, with an alias, in a group, with settings of its own, or with hexes in the store or the outbox.
public struct PeerRecord: Sendable, Equatable {
    public var peer: PeerID
    /// `nil` until a session proved the key. A trusted peer always has a fingerprint.
    public var fingerprint: Fingerprint?
    /// The peer's own name, as last seen. Peer text.
    public var name: String
    public var alias: String?
    public var trust: Trust
    public var version: String?
    public var boot: BootNonce?
    /// Milliseconds since 1970.
    public var lastSeenAt: Int64?
    /// The number of its hexes, in the inbox or held.
    public var hexes: Int
    /// The number of its unread hexes in the inbox.
    public var unread: Int
    public var held: Int
    public var heldBytes: Int
    /// The number of queued outbox rows.
    public var queued: Int
    /// Up to `endpointLimit` endpoints, most recently successful first.
    public var endpoints: [PeerEndpoint]
    /// The names of its groups.
    public var groups: [String] = []
    public var receive = PeerReceive.inbox
    /// Whether it causes desktop notifications.
    public var notify = true
    /// Maximum bytes of its files that are fetched automatically, for each hex and for each day; `nil` disables automatic fetching.
    public var fetchLimit: Int64?
    /// The last day of automatic fetching, in days since 1970 (UTC).
    public var fetchDay: Int64 = 0
    /// Bytes fetched or reserved on this day.
    public var fetchDayBytes: Int64 = 0

    /// Bytes of automatically fetched files on the day of `now`, including reserved ones.
    public func fetchedBytes(at now: Int64) -> Int64 { fetchDay == now / 86_400_000 ? fetchDayBytes : 0 }

    /// Maximum number of endpoints of one peer, because peers provide them. The oldest are deleted.
    public static let endpointLimit = 16

    public var label: PeerDisplayName { PeerDisplayName(peer, name: name, alias: alias, trust: trust) }
}

/// Information about a peer from one contact.
public struct ContactInfo: Sendable {
    public var peer: PeerID
    public var fingerprint: Fingerprint?
    public var name: String
    public var version: String?
    public var boot: BootNonce?
    /// Milliseconds since 1970.
    public var seenAt: Int64
    /// The endpoints at which the peer was reached, best last; empty for a session that the peer dialled.
    public var endpoints: [PeerEndpoint]

    public init(
        peer: PeerID, fingerprint: Fingerprint?, name: String, version: String?, boot: BootNonce?, seenAt: Int64,
        endpoints: [PeerEndpoint] = []
    ) {
        self.peer = peer
        self.fingerprint = fingerprint
        self.name = name
        self.version = version
        self.boot = boot
        self.seenAt = seenAt
        self.endpoints = endpoints
    }
}

/// The effect of a change of trust on the peer's held hexes.
public struct TrustChange: Sendable, Equatable {
    /// The hexes moved into the inbox, in order of arrival.
    public var moved: [Int64]
    /// The number of deleted held hexes.
    public var deleted: Int
}
